"""Pods that start together and run to an end, as a job of their framework's Kubeflow operator. Pure.

Used if the cluster has that kind of job. The operator then sets the pods' names and the variables by which they find
each other.
"""

from collections.abc import Sequence

import msgspec

from fairlead.engines.kubernetes.client.resources import (
    CONFIG_MAP,
    JAX,
    MPI,
    PYTORCH,
    TENSORFLOW,
    XGBOOST,
    Manifest,
    Resource,
)
from fairlead.engines.kubernetes.render.context import LaunchChoices, RenderContext, metadata_of
from fairlead.engines.kubernetes.render.labels import ATTEMPT_LABEL, FAILURES
from fairlead.engines.kubernetes.render.runners import LONGEST_LIFETIME, PodTemplate, metadata_of_runner
from fairlead.kinds.frameworks import PYTORCH_PORT
from fairlead.model.pods.podset import OperatorOptions, PodSet, RestartScope

#: Our variables, which no operator sets.
_OURS = "RUNAI_"


class Operator(msgspec.Struct, frozen=True):
    """How the job of one framework is rendered."""

    resource: Resource
    #: The member that holds the pods by their type.
    member: str
    #: The name that the container must have; empty if any name will do.
    container: str
    #: From our role to the operator's type; the job needs those in `needed`.
    types: dict[str, str]
    needed: frozenset[str] = frozenset()


_MASTER = {"master": "Master", "worker": "Worker"}
OPERATORS = {
    "PyTorch": Operator(PYTORCH, "pytorchReplicaSpecs", "pytorch", _MASTER),
    "TF": Operator(TENSORFLOW, "tfReplicaSpecs", "tensorflow", {"master": "Chief", "worker": "Worker"}),
    "XGBoost": Operator(XGBOOST, "xgbReplicaSpecs", "xgboost", _MASTER, frozenset({"master"})),
    "JAX": Operator(JAX, "jaxReplicaSpecs", "jax", {"worker": "Worker"}),
    "MPI": Operator(MPI, "mpiReplicaSpecs", "", {"launcher": "Launcher", "worker": "Worker"}),
}
#: From an operator's type, in lower case, to our role.
ROLE_BY_REPLICA_TYPE = {type.lower(): role for operator in OPERATORS.values() for role, type in operator.types.items()}


def operator_of(podsets: Sequence[PodSet]) -> Operator | None:
    """The operator that could run these pods, if the cluster has it."""
    options = podsets[0].operated
    operator = OPERATORS.get(options.framework) if options is not None else None
    if operator is None or not operator.needed <= {podset.role for podset in podsets}:
        return None
    return operator


def render_job(context: RenderContext, shapes: Sequence[PodTemplate], operator: Operator) -> Manifest:
    podsets = [shape.podset for shape in shapes]
    options = podsets[0].operated or OperatorOptions(framework="")
    spec: Manifest = {
        "runPolicy": _run_policy(context, podsets, options),
        operator.member: {operator.types[shape.podset.role]: _replicas(context, shape, operator) for shape in shapes},
    }
    if operator.resource is MPI:
        spec |= {"slotsPerWorker": options.slots, "sshAuthMountPath": options.keys_path}
        spec["launcherCreationPolicy"] = "WaitForWorkersReady" if _waits(podsets[0]) else "AtStartup"
    if operator.resource is TENSORFLOW and "master" not in {podset.role for podset in podsets}:
        # Otherwise the job would end with its first worker.
        spec["successPolicy"] = "AllWorkers"
    if operator.resource is PYTORCH and _least(podsets) < _most(podsets):
        spec["elasticPolicy"] = _elastic_policy(context, podsets)
    metadata = metadata_of_runner(context, shapes[0])
    metadata["name"] = context.name
    metadata["labels"] = {**metadata["labels"], **_attempt(context)}
    if context.launch.failures:
        metadata["annotations"] = {**metadata.get("annotations", {}), FAILURES: str(context.launch.failures)}
    return {
        "apiVersion": operator.resource.api,
        "kind": operator.resource.kind,
        "metadata": metadata,
        "spec": spec,
    }


def _waits(launcher: PodSet) -> bool:
    """Whether the launcher is created when its workers are ready: also if it has one try only, because the workers'
    names cannot be resolved before, and mpirun would fail."""
    return bool(launcher.starts_after) or launcher.restart_scope is RestartScope.GROUP


def _attempt(context: RenderContext) -> dict[str, str]:
    return {ATTEMPT_LABEL: str(context.launch.attempt)} if context.ownership_labels else {}


def _run_policy(context: RenderContext, podsets: Sequence[PodSet], options: OperatorOptions) -> Manifest:
    policy: Manifest = {"cleanPodPolicy": options.cleans}
    if podsets[0].restart_scope is not RestartScope.GROUP:
        policy["backoffLimit"] = podsets[0].backoff_limit
    elif podsets[0].may_exec_in:
        # The whole job restarts when it has failed, not its launcher alone.
        policy["backoffLimit"] = 0
    if context.lifetime is not None:
        policy["ttlSecondsAfterFinished"] = min(context.lifetime, LONGEST_LIFETIME)
    if _least(podsets) < _most(podsets):
        policy["schedulingPolicy"] = {"minAvailable": _least(podsets)}
    return policy


def _least(podsets: Sequence[PodSet]) -> int:
    return sum(podset.min_count for podset in podsets)


def _most(podsets: Sequence[PodSet]) -> int:
    return sum(podset.count for podset in podsets)


def _elastic_policy(context: RenderContext, podsets: Sequence[PodSet]) -> Manifest:
    """The rendezvous is at the first pod."""
    return {
        "minReplicas": _least(podsets),
        "maxReplicas": _most(podsets),
        "rdzvBackend": "c10d",
        "rdzvHost": f"{context.name}-{podsets[0].role}-0",
        "rdzvPort": PYTORCH_PORT,
        "rdzvId": context.name,
    }


def _replicas(context: RenderContext, shape: PodTemplate, operator: Operator) -> Manifest:
    podset, template = shape.podset, shape.template
    pod = {name: value for name, value in template["spec"].items() if name != "restartPolicy"}
    main, *others = pod["containers"]
    own = {name: value for name, value in podset.variables.items() if name.startswith(_OURS)}
    given = main.get("env", [])
    known = {variable["name"] for variable in given}
    variables = [*({"name": name, "value": value} for name, value in own.items() if name not in known), *given]
    main = {**main, "name": operator.container or main["name"]} | ({"env": variables} if variables else {})
    if podset.is_idle:
        # The operator makes them listen for the launcher.
        main = {name: value for name, value in main.items() if name not in ("command", "args")}
    labels = {**template["metadata"]["labels"], **_attempt(context)}
    return {
        "replicas": podset.count,
        "restartPolicy": podset.restart.value,
        "template": {
            "metadata": {**template["metadata"], "labels": labels},
            "spec": {**pod, "containers": [main, *others]},
        },
    }


def note_name(workload: str) -> str:
    return f"{workload}-attempts"


def render_note(context: RenderContext, again: LaunchChoices) -> Manifest:
    data = {"attempt": str(again.attempt), "failures": str(again.failures)}
    metadata = metadata_of(context, note_name(context.name))
    return {"apiVersion": CONFIG_MAP.api, "kind": CONFIG_MAP.kind, "metadata": metadata, "data": data}
