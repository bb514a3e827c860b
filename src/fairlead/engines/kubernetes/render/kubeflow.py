"""Pods that start together and run to an end, as the job of their framework's Kubeflow operator. Pure.

`render.py` calls it where the cluster has that kind of job. Names, addresses and the variables by which pods find each
other are the operator's business then.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from fairlead.engines.kubernetes.client.resources import CONFIG_MAP, JAX, MPI, PYTORCH, TENSORFLOW, XGBOOST, Resource
from fairlead.engines.kubernetes.render.context import LaunchChoices, RenderContext, metadata_of
from fairlead.engines.kubernetes.render.labels import ATTEMPT_LABEL, FAILURES
from fairlead.engines.kubernetes.render.runners import LONGEST_LIFETIME, PodTemplate, metadata_of_runner
from fairlead.kinds.frameworks import PYTORCH_PORT
from fairlead.model.pods.podset import OperatorOptions, PodSet, RestartScope

#: Variables of ours that no operator sets.
_OURS = "RUNAI_"


class Operator(msgspec.Struct, frozen=True):
    """How one framework's job is written."""

    resource: Resource
    #: The member that holds the pods by their type.
    member: str
    #: What the container must be called; empty where any name will do.
    container: str
    #: From our role to the operator's type; the job cannot do without those in `needed`.
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
#: From an operator's type, in small letters, to our role.
ROLES = {type.lower(): role for operator in OPERATORS.values() for role, type in operator.types.items()}


def operator_of(podsets: Sequence[PodSet]) -> Operator | None:
    """The operator that could run these pods, if the cluster has it."""
    told = podsets[0].operated
    operator = OPERATORS.get(told.framework) if told is not None else None
    if operator is None or not operator.needed <= {podset.role for podset in podsets}:
        return None
    return operator


def render_job(place: RenderContext, shapes: Sequence[PodTemplate], operator: Operator) -> dict[str, Any]:
    podsets = [shape.podset for shape in shapes]
    told = podsets[0].operated or OperatorOptions(framework="")
    spec: dict[str, Any] = {
        "runPolicy": _run_policy(place, podsets, told),
        operator.member: {operator.types[shape.podset.role]: _replicas(place, shape, operator) for shape in shapes},
    }
    if operator.resource is MPI:
        spec |= {"slotsPerWorker": told.slots, "sshAuthMountPath": told.keys_path}
        spec["launcherCreationPolicy"] = "WaitForWorkersReady" if _waits(podsets[0]) else "AtStartup"
    if operator.resource is TENSORFLOW and "master" not in {podset.role for podset in podsets}:
        # Otherwise the job would be over with its first worker.
        spec["successPolicy"] = "AllWorkers"
    if operator.resource is PYTORCH and _least(podsets) < _most(podsets):
        spec["elasticPolicy"] = _elastic_policy(place, podsets)
    metadata = metadata_of_runner(place, shapes[0])
    metadata["name"] = place.name
    metadata["labels"] = {**metadata["labels"], **_attempt(place)}
    if place.begun.failures:
        metadata["annotations"] = {**metadata.get("annotations", {}), FAILURES: str(place.begun.failures)}
    return {
        "apiVersion": operator.resource.api,
        "kind": operator.resource.kind,
        "metadata": metadata,
        "spec": spec,
    }


def _waits(launcher: PodSet) -> bool:
    """Whether the launcher is made when its workers are ready: also where it has one try only, because their names
    are not known before, and mpirun would end with an error."""
    return bool(launcher.starts_after) or launcher.restart_scope is RestartScope.GROUP


def _attempt(place: RenderContext) -> dict[str, str]:
    return {ATTEMPT_LABEL: str(place.begun.attempt)} if place.ownership_labels else {}


def _run_policy(place: RenderContext, podsets: Sequence[PodSet], told: OperatorOptions) -> dict[str, Any]:
    policy: dict[str, Any] = {"cleanPodPolicy": told.cleans}
    if podsets[0].restart_scope is not RestartScope.GROUP:
        policy["backoffLimit"] = podsets[0].backoff_limit
    elif podsets[0].may_exec_in:
        # All of it begins again when it has failed, not its launcher alone.
        policy["backoffLimit"] = 0
    if place.lifetime is not None:
        policy["ttlSecondsAfterFinished"] = min(place.lifetime, LONGEST_LIFETIME)
    if _least(podsets) < _most(podsets):
        policy["schedulingPolicy"] = {"minAvailable": _least(podsets)}
    return policy


def _least(podsets: Sequence[PodSet]) -> int:
    return sum(podset.min_count for podset in podsets)


def _most(podsets: Sequence[PodSet]) -> int:
    return sum(podset.count for podset in podsets)


def _elastic_policy(place: RenderContext, podsets: Sequence[PodSet]) -> dict[str, Any]:
    """They meet at the first pod."""
    return {
        "minReplicas": _least(podsets),
        "maxReplicas": _most(podsets),
        "rdzvBackend": "c10d",
        "rdzvHost": f"{place.name}-{podsets[0].role}-0",
        "rdzvPort": PYTORCH_PORT,
        "rdzvId": place.name,
    }


def _replicas(place: RenderContext, shape: PodTemplate, operator: Operator) -> dict[str, Any]:
    podset, template = shape.podset, shape.template
    pod = {name: value for name, value in template["spec"].items() if name != "restartPolicy"}
    main, *others = pod["containers"]
    own = {name: value for name, value in podset.variables.items() if name.startswith(_OURS)}
    given = main.get("env", [])
    known = {variable["name"] for variable in given}
    variables = [*({"name": name, "value": value} for name, value in own.items() if name not in known), *given]
    main = {**main, "name": operator.container or main["name"]} | ({"env": variables} if variables else {})
    if podset.is_idle:
        # The operator has them listen for the launcher.
        main = {name: value for name, value in main.items() if name not in ("command", "args")}
    labels = {**template["metadata"]["labels"], **_attempt(place)}
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


def render_note(place: RenderContext, again: LaunchChoices) -> dict[str, Any]:
    data = {"attempt": str(again.attempt), "failures": str(again.failures)}
    metadata = metadata_of(place, note_name(place.name))
    return {"apiVersion": CONFIG_MAP.api, "kind": CONFIG_MAP.kind, "metadata": metadata, "data": data}
