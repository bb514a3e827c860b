"""Distributed training: workers, and usually a master, that find each other, start together and end together.

`frameworks.py` says which variables each pod gets.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta
from msgspec.structs import replace

from fairlead.kinds.frameworks import FRAMEWORKS, Framework, Members, operated_by
from fairlead.kinds.kind import Kind
from fairlead.kinds.pods import request_of
from fairlead.kinds.runs import (
    backoff_limit,
    lifetime_after_end,
    max_preemptions,
    outcome_of_gang,
    restart_policy,
    running_container,
)
from fairlead.model.pods.podset import PodSet, RestartPolicy, RestartScope
from fairlead.model.spec.fields import FieldInfo, FlagDeclaration, Maybe, is_given, value_or
from fairlead.model.spec.rules import SubmissionLimits, Violation
from fairlead.model.spec.run_fields import RunFields, run_violations
from fairlead.model.syntax import Syntax

MAX_WORKERS = 10_000
#: Processes that one worker starts.
MAX_SLOTS = 10_000
_KEYS_PATH = "/root/.ssh"
Positive = Annotated[int, Meta(ge=1)]


class DistributedSpec(RunFields, frozen=True, kw_only=True):
    distributed_framework: Annotated[
        Maybe[Literal["MPI", "PyTorch", "TF", "XGBoost", "JAX"]],
        FieldInfo(
            text="The framework, which decides how the pods find each other.",
            is_common=True,
            default_text="PyTorch",
            yaml="jobType",
            yaml_kinds="D",
            flags=(FlagDeclaration(name="--framework"),),
        ),
    ] = UNSET
    num_workers: Annotated[
        Maybe[Positive],
        FieldInfo(
            text="The number of workers, without the master.",
            is_common=True,
            default_text="1",
            yaml="workers",
            yaml_kinds="D",
            flags=(FlagDeclaration(name="--workers"),),
        ),
    ] = UNSET
    min_replicas: Annotated[
        Maybe[int],
        FieldInfo(
            text="The minimum number of workers to start and keep running with; only with PyTorch.",
            flags=(FlagDeclaration(name="--min-replicas"),),
        ),
    ] = UNSET
    max_replicas: Annotated[
        Maybe[int],
        FieldInfo(
            text="The maximum number of workers if there is room; only with PyTorch.",
            flags=(FlagDeclaration(name="--max-replicas"),),
        ),
    ] = UNSET
    slots_per_worker: Annotated[
        Maybe[Positive],
        FieldInfo(
            text="The number of processes that MPI starts on each worker.",
            default=1,
            origin="contract",
            yaml="slotsPerWorker",
            yaml_kinds="TD",
            flags=(FlagDeclaration(name="--slots-per-worker"),),
        ),
    ] = UNSET
    clean_pod_policy: Annotated[
        Maybe[Literal["None", "All", "Running"]],
        FieldInfo(
            text="Which pods are deleted when the workload has ended: none, all, or those that still run.",
            default_text="Running with MPI, otherwise None",
            flags=(FlagDeclaration(name="--clean-pod-policy"),),
        ),
    ] = UNSET
    ssh_auth_mount_path: Annotated[
        Maybe[str],
        FieldInfo(
            text="The path at which MPI images expect their SSH keys; only the MPI operator of a cluster uses it.",
            default=_KEYS_PATH,
            syntax=Syntax.ABSOLUTE_PATH,
            origin="contract",
        ),
    ] = UNSET
    mpi_launcher_creation_policy: Annotated[
        Maybe[Literal["AtStartup", "WaitForWorkersReady"]],
        FieldInfo(
            text="Whether the MPI launcher starts together with its workers or when they are ready.",
            default_text="AtStartup",
            flags=(FlagDeclaration(name="--mpi-launcher-creation-policy"),),
        ),
    ] = UNSET


class DistributedSpecWithMaster(DistributedSpec, frozen=True, kw_only=True):
    master_spec_same_as_worker: Annotated[
        Maybe[bool],
        FieldInfo(
            text="True: the master has the same spec as the workers. False without a masterSpec: there is no master.",
            default_text="true without a masterSpec",
            flags=(
                FlagDeclaration(
                    name="--no-master", form="switch", constant=False, help="Workers only, without a master."
                ),
            ),
        ),
    ] = UNSET
    master_spec: Annotated[
        Maybe[RunFields], FieldInfo(text="The spec of the master, if it differs from the workers'.", role="master")
    ] = UNSET


#: The fields of the whole workload, which are not part of a pod.
_OWN = frozenset(DistributedSpecWithMaster.__struct_fields__) - frozenset(RunFields.__struct_fields__)


def _framework(spec: DistributedSpecWithMaster) -> Framework:
    return FRAMEWORKS[value_or(spec.distributed_framework, "PyTorch")]


def _has_master(spec: DistributedSpecWithMaster) -> bool:
    framework = _framework(spec)
    if framework.always_leads or not framework.leader:
        return framework.always_leads
    return is_given(spec.master_spec) or spec.master_spec_same_as_worker is not False


def podsets(spec: DistributedSpecWithMaster) -> tuple[PodSet, ...]:
    """One gang: the master if there is one, and the workers."""
    framework = _framework(spec)
    fixed = value_or(spec.num_workers, 1)
    workers = value_or(spec.max_replicas, fixed)
    min_workers = value_or(spec.min_replicas, fixed)
    slots = value_or(spec.slots_per_worker, 1)
    leader_role = framework.leader if _has_master(spec) else ""
    members = Members(leader=leader_role, workers=workers, min_workers=min_workers, slots=slots)
    worker = _podset(spec, spec, framework, members, framework.worker)
    worker = replace(worker, count=workers, completions=workers, minimum=min_workers if min_workers < workers else None)
    if not members.leader:
        return (worker,)
    own = value_or(spec.master_spec, None)
    leader = replace(_podset(own or spec, spec, framework, members, members.leader), is_placed_first=True)
    if framework.is_launched:
        worker = replace(_idle(worker, own is not None), offset=0)
        if own is None and spec.master_spec_same_as_worker is not True:
            leader = replace(leader, request=replace(leader.request, gpu_devices=0))
        if spec.mpi_launcher_creation_policy == "WaitForWorkersReady":
            leader = replace(leader, starts_after=worker.role, is_placed_first=False)
    return leader, worker


def _podset(
    pod: RunFields, spec: DistributedSpecWithMaster, framework: Framework, members: Members, role: str
) -> PodSet:
    restart = restart_policy(spec)
    cleans = value_or(spec.clean_pod_policy, "Running" if framework.is_launched else "None")
    return PodSet(
        role=role,
        member="" if pod is spec else "masterSpec",
        container=running_container(pod, _OWN),
        request=request_of(pod.compute),
        gang="workload",
        restart=restart,
        # A job cannot continue without one of its ranks: without restarts in place, all pods start again.
        restart_scope=RestartScope.GROUP if restart is RestartPolicy.NEVER else RestartScope.POD,
        backoff_limit=backoff_limit(spec),
        has_fixed_indices=True,
        offset=1 if members.leader and role != members.leader else 0,
        keeps_running=cleans == "None" and role != members.leader,
        operated=operated_by(framework, members, cleans, value_or(spec.ssh_auth_mount_path, _KEYS_PATH)),
        naming="{workload}-{role}-{index}",
        addressed=True,
        may_exec_in=framework.worker if framework.is_launched and role == members.leader else "",
        files=framework.files(members, role),
        variables=framework.variables(members, role),
        infix=f"-{role}",
    )


def _idle(worker: PodSet, has_own_command: bool) -> PodSet:
    """Workers on which the launcher starts processes: they sleep unless they have a command of their own."""
    if has_own_command and (worker.container.command or worker.container.args):
        return worker
    container = replace(worker.container, command=("sleep", "infinity"), args=())
    return replace(worker, container=container, is_idle=True)


def _violations(spec: DistributedSpecWithMaster, path: str, limits: SubmissionLimits) -> list[Violation]:
    broken = run_violations(spec, path) + _elastic_violations(spec, path)
    framework = _framework(spec)
    if is_given(spec.num_workers) and spec.num_workers > MAX_WORKERS:
        broken.append(Violation(f"{path}.numWorkers", f"is {spec.num_workers}; at most {MAX_WORKERS} are allowed"))
    if value_or(spec.slots_per_worker, 1) > MAX_SLOTS:
        broken.append(Violation(f"{path}.slotsPerWorker", f"is {spec.slots_per_worker}; at most {MAX_SLOTS} can start"))
    if is_given(spec.master_spec):
        broken += run_violations(spec.master_spec, f"{path}.masterSpec")
        if spec.master_spec_same_as_worker is True:
            details = "is given, but masterSpecSameAsWorker is true; give only one of them"
            broken.append(Violation(f"{path}.masterSpec", details))
        if not framework.leader:
            broken.append(Violation(f"{path}.masterSpec", f"is given, but {framework.name} has no master"))
    elif framework.always_leads and spec.master_spec_same_as_worker is False:
        details = f"is false, but {framework.name} always has a {framework.leader}; give a masterSpec or leave it out"
        broken.append(Violation(f"{path}.masterSpecSameAsWorker", details))
    return broken


def _elastic_violations(spec: DistributedSpecWithMaster, path: str) -> list[Violation]:
    workers = value_or(spec.num_workers, 1)
    bounds = (
        ("minReplicas", spec.min_replicas, f"between 1 and numWorkers ({workers})", 1, workers),
        ("maxReplicas", spec.max_replicas, f"between numWorkers ({workers}) and {MAX_WORKERS}", workers, MAX_WORKERS),
    )
    framework, broken = _framework(spec), []
    for rest, given, allowed, minimum, maximum in bounds:
        if is_given(given) and not framework.is_elastic:
            details = f"is given, but {framework.name} does not support it; only PyTorch does"
            broken.append(Violation(f"{path}.{rest}", details))
        elif is_given(given) and not minimum <= given <= maximum:
            broken.append(Violation(f"{path}.{rest}", f"is {given}; {allowed} are allowed"))
    return broken


DISTRIBUTED = Kind(
    key="distributed-training",
    title="Distributed",
    noun="distributed training",
    rest="distributed",
    resource="DistributedWorkload",
    older_policy="DistributedPolicy",
    letter="D",
    command=("training", "distributed"),
    subtypes=tuple(
        (words, ("distributedFramework", framework.name))
        for framework in FRAMEWORKS.values()
        for word in framework.commands
        for words in (("training", word), (word,))
    ),
    mirrored_members=(("masterSpec", ""),),
    meant_for="distributed",
    resource_type="trainings",
    category="Train",
    priority="low",
    can_suspend=True,
    spec=DistributedSpecWithMaster,
    framework=lambda spec: _framework(spec).name,
    rest_spec=DistributedSpec,
    outside_spec=("master_spec_same_as_worker", "master_spec"),
    podsets=podsets,
    outcome=outcome_of_gang,
    violations=_violations,
    lifetime_after_end=lifetime_after_end,
    max_preemptions=max_preemptions,
)
