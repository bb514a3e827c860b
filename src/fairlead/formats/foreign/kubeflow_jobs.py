"""Reads the jobs of Kubeflow's operators as the spec of a distributed training. Called by `manifests.py`.

On a cluster with that operator such a workload becomes a job of the same kind again, with the labels that the scheduler
needs. As for other manifests, a member that a workload does not have is a violation with its path.
"""

from collections.abc import Iterable

import msgspec

from fairlead.formats.foreign.pod_templates import (
    SPEC,
    invalid,
    read_mapping,
    read_template,
    refuse_unknown,
    take_shared,
)
from fairlead.formats.plain import Plain
from fairlead.kinds.distributed import DISTRIBUTED
from fairlead.kinds.frameworks import JAX_PORT, PYTORCH_PORT, TENSORFLOW_PORT, XGBOOST_PORT
from fairlead.kinds.kind import Kind

_WORKER = "Worker"
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_RUN_POLICY = {
    "cleanPodPolicy": "cleanPodPolicy",
    "backoffLimit": "backoffLimit",
    "ttlSecondsAfterFinished": "autoDeletionTimeAfterCompletionSeconds",
}
_BOUNDS = ("minReplicas", "maxReplicas")
#: The variable that the operator sets for `nprocPerNode`.
_PROCESSES = "PET_NPROC_PER_NODE"


class KubeflowJob(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of job."""

    framework: str
    #: The member that holds the pods by their type.
    member: str
    #: What the operator calls the leader; a job has one of them at most.
    leaders: tuple[str, ...] = ()
    always_leads: bool = False
    #: The restart policy of pods that name none; the workers of a job that always has a leader have Never.
    restart: str = "Never"
    #: The port at which the pods find each other, which needs no Service; 0 for none.
    port: int = 0
    #: Further members of its spec, by their names in ours.
    members: dict[str, str] = {}
    #: Members of a job whose leader is optional and missing, or always there, with their only supported value.
    fixed: dict[str, str] = {}
    is_pytorch: bool = False

    def default_restart(self, type: str) -> str:
        """The restart policy of pods of this type that name none."""
        return "Never" if self.always_leads and type == _WORKER else self.restart


KUBEFLOW_JOBS = {
    ("v1", "PyTorchJob"): KubeflowJob(
        framework="PyTorch",
        member="pytorchReplicaSpecs",
        leaders=("Master",),
        restart="OnFailure",
        port=PYTORCH_PORT,
        is_pytorch=True,
    ),
    ("v1", "TFJob"): KubeflowJob(
        framework="TF",
        member="tfReplicaSpecs",
        leaders=("Chief", "Master"),
        port=TENSORFLOW_PORT,
        fixed={"successPolicy": "AllWorkers"},
    ),
    ("v1", "XGBoostJob"): KubeflowJob(
        framework="XGBoost", member="xgbReplicaSpecs", leaders=("Master",), port=XGBOOST_PORT
    ),
    ("v1", "JAXJob"): KubeflowJob(framework="JAX", member="jaxReplicaSpecs", port=JAX_PORT),
    ("v2beta1", "MPIJob"): KubeflowJob(
        framework="MPI",
        member="mpiReplicaSpecs",
        leaders=("Launcher",),
        always_leads=True,
        restart="OnFailure",
        members={
            "slotsPerWorker": "slotsPerWorker",
            "sshAuthMountPath": "sshAuthMountPath",
            "launcherCreationPolicy": "mpiLauncherCreationPolicy",
        },
        fixed={"mpiImplementation": "OpenMPI"},
    ),
}


class _Replicas(msgspec.Struct, frozen=True):
    """The pods of one type."""

    path: str
    count: int
    restart: str
    spec: Plain


def read_kubeflow_job(job: KubeflowJob, spec: Plain) -> tuple[Kind, Plain]:
    types = read_mapping(spec, job.member, SPEC)
    lead = next((type for type in job.leaders if type in types), "")
    _check_types(job, types, lead)
    worker = _read_replicas(job, types, _WORKER)
    leader = _read_replicas(job, types, lead) if lead else None
    if leader is not None and leader.count != 1:
        raise invalid(f"{leader.path}.replicas", f"is {leader.count}; a job has one {lead}")
    read: Plain = {
        **worker.spec,
        "distributedFramework": job.framework,
        "numWorkers": worker.count,
        "restartPolicy": _restart_policy(job, worker, leader),
        **_read_run_policy(spec),
        **_read_others(job, spec, lead),
    }
    if leader is not None:
        take_shared(leader.spec, read, f"{leader.path}.template")
        read["masterSpec"] = leader.spec
    elif job.leaders:
        read["masterSpecSameAsWorker"] = False
    if job.is_pytorch:
        _add_processes(spec, [read, read.get("masterSpec")])
    return DISTRIBUTED, read


def _check_types(job: KubeflowJob, types: Plain, lead: str) -> None:
    path = f"{SPEC}.{job.member}"
    refuse_unknown(types, (_WORKER, lead), path)
    if _WORKER not in types:
        raise invalid(f"{path}.{_WORKER}", "must be given; a distributed workload has at least one worker")
    if job.always_leads and not lead:
        raise invalid(f"{path}.{job.leaders[0]}", "must be given")


def _read_replicas(job: KubeflowJob, types: Plain, type: str) -> _Replicas:
    path = f"{SPEC}.{job.member}.{type}"
    given = read_mapping(types, type, f"{SPEC}.{job.member}")
    refuse_unknown(given, ("replicas", "restartPolicy", "template"), path)
    count = 1 if given.get("replicas") is None else given["replicas"]
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise invalid(f"{path}.replicas", "must be a whole number of at least 1")
    restart = str(given.get("restartPolicy") or "")
    if restart and restart not in _RESTART_POLICIES:
        raise invalid(f"{path}.restartPolicy", f"is {restart[:60]}; a workload has {', '.join(_RESTART_POLICIES)}")
    spec = read_template({"template": given.get("template")}, path)
    restart = restart or job.default_restart(type)
    inner = spec.pop("restartPolicy", restart)
    if inner != restart:
        detail = f"is {str(inner)[:60]}, but the operator gives pods that of {type}, which is {restart}"
        raise invalid(f"{path}.template.spec.restartPolicy", detail)
    ports = [port for port in spec.pop("ports", ()) if port["container"] != job.port]
    return _Replicas(path, count, restart, {**spec, **({"ports": ports} if ports else {})})


def _restart_policy(job: KubeflowJob, worker: _Replicas, leader: _Replicas | None) -> str:
    """A workload has one; the workers of MPI only wait for their launcher."""
    if leader is None or worker.restart == leader.restart:
        return worker.restart
    if job.always_leads and worker.restart == job.default_restart(_WORKER):
        return leader.restart
    detail = f"is {worker.restart}, but that of {leader.path} is {leader.restart}; a workload has one"
    raise invalid(f"{worker.path}.restartPolicy", detail)


def _read_run_policy(spec: Plain) -> Plain:
    policy = read_mapping(spec, "runPolicy", SPEC)
    refuse_unknown(policy, _RUN_POLICY, f"{SPEC}.runPolicy")
    return {ours: policy[name] for name, ours in _RUN_POLICY.items() if policy.get(name) is not None}


def _read_others(job: KubeflowJob, spec: Plain, lead: str) -> Plain:
    own = ("elasticPolicy", "nprocPerNode") if job.is_pytorch else ()
    fixed = {} if lead and not job.always_leads else job.fixed
    refuse_unknown(spec, (job.member, "runPolicy", *job.members, *fixed, *own), SPEC)
    for name, value in fixed.items():
        if spec.get(name) not in (None, "", value):
            raise invalid(f"{SPEC}.{name}", f"is {str(spec[name])[:60]}; only {value} is supported")
    read = {ours: spec[name] for name, ours in job.members.items() if spec.get(name) is not None}
    return read | (_read_elastic_policy(spec, lead) if job.is_pytorch else {})


def _read_elastic_policy(spec: Plain, lead: str) -> Plain:
    path = f"{SPEC}.elasticPolicy"
    policy = read_mapping(spec, "elasticPolicy", SPEC)
    refuse_unknown(policy, (*_BOUNDS, "rdzvBackend"), path)
    if policy.get("rdzvBackend") not in (None, "c10d"):
        raise invalid(f"{path}.rdzvBackend", "must be c10d, which is what workloads use")
    read: Plain = {}
    for name in _BOUNDS:
        count = policy.get(name)
        if count is None:
            continue
        if not isinstance(count, int) or isinstance(count, bool):
            raise invalid(f"{path}.{name}", "must be a whole number")
        # The operator counts all pods, a workload its workers.
        read[name] = count - bool(lead)
    return read


def _add_processes(spec: Plain, pods: Iterable[Plain | None]) -> None:
    processes = spec.get("nprocPerNode")
    if processes is None:
        return
    for pod in filter(None, pods):
        known = pod.get("environmentVariables", [])
        if all(variable["name"] != _PROCESSES for variable in known):
            pod["environmentVariables"] = [*known, {"name": _PROCESSES, "value": str(processes)}]
