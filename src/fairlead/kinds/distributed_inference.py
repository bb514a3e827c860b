"""Distributed inference: equal groups of a leader and its workers, as in LeaderWorkerSet."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta
from msgspec.structs import replace

from fairlead.kinds.kind import Kind, Outcome, SetState
from fairlead.kinds.pods import container_of, request_of
from fairlead.kinds.serving import served, serving_violations
from fairlead.model.pods.podset import PodSet, RestartPolicy, RestartScope
from fairlead.model.records.phase import Phase
from fairlead.model.spec.canonical import items
from fairlead.model.spec.fields import FieldInfo, FlagDeclaration, Maybe, PortNumber, Spec, is_given, value_or
from fairlead.model.spec.placement import Category, NodePools, Preemptibility, PriorityClass
from fairlead.model.spec.pod_fields import PodFields
from fairlead.model.spec.rules import SubmissionLimits, Violation, class_violations, pod_violations
from fairlead.model.spec.security import BasicSecurity
from fairlead.model.spec.storage import BasicStorage
from fairlead.model.syntax import Syntax

LEADER, WORKER, _GANG = "leader", "worker", "group"
_LABELS = "leaderworkerset.sigs.k8s.io"
Number = Annotated[int, Meta(ge=0, le=1000, extra_json_schema={"format": "int32"})]
Replicas = Annotated[
    Maybe[Number],
    FieldInfo(
        text="The number of groups.",
        is_common=True,
        default=1,
        origin="contract",
        flags=(FlagDeclaration(name="--replicas"),),
    ),
]


class RoleSpec(PodFields, frozen=True, kw_only=True):
    """The spec of the pods of one role."""

    storage: Annotated[Maybe[BasicStorage], FieldInfo(text="The volumes of each pod.")] = UNSET
    security: Annotated[Maybe[BasicSecurity], FieldInfo(text="The user and the privileges of the pods.")] = UNSET


class GroupServingPort(Spec, frozen=True, kw_only=True):
    """The port that serves requests, and who may send them."""

    port: Annotated[
        Maybe[PortNumber], FieldInfo(text="The port that leaders listen on.", mandatory=True, part="container")
    ] = UNSET
    protocol: Annotated[
        Maybe[Literal["http"]],
        FieldInfo(text="The protocol.", default="http", origin="contract", part="protocol"),
    ] = UNSET
    authorization_type: Annotated[
        Maybe[Literal["public", "authenticatedUsers", "authorizedUsers", "authorizedGroups"]],
        FieldInfo(text="Who may send requests.", default_text="public", part="authorization-type"),
    ] = UNSET
    authorized_users: Annotated[
        Maybe[tuple[str, ...]],
        FieldInfo(
            text="Users and service accounts who may send requests; not together with authorizedGroups.",
            part="authorized-users",
        ),
    ] = UNSET
    authorized_groups: Annotated[
        Maybe[tuple[str, ...]],
        FieldInfo(
            text="Groups whose members may send requests; not together with authorizedUsers.", part="authorized-groups"
        ),
    ] = UNSET
    expose_externally: Annotated[
        Maybe[bool],
        FieldInfo(
            text="Whether it can be reached from outside the cluster.",
            default=True,
            origin="contract",
            part="expose-externally",
        ),
    ] = UNSET
    exposed_url: Annotated[
        Maybe[str], FieldInfo(text="The URL.", default_text="generated", part="exposed-url", syntax=Syntax.OWN_URL)
    ] = UNSET


class DistributedInferenceSpec(Spec, frozen=True, kw_only=True):
    leader: Annotated[Maybe[RoleSpec], FieldInfo(text="The spec of the leader of each group.", mandatory=True)] = UNSET
    worker: Annotated[
        Maybe[RoleSpec], FieldInfo(text="The spec of the workers; mandatory if there are any.", role=WORKER)
    ] = UNSET
    workers: Annotated[
        Maybe[Number],
        FieldInfo(
            text="The number of workers in each group, without the leader.",
            is_common=True,
            default=0,
            origin="contract",
            flags=(FlagDeclaration(name="--workers"),),
        ),
    ] = UNSET
    replicas: Replicas = UNSET
    startup_policy: Annotated[
        Maybe[Literal["LeaderCreated", "LeaderReady"]],
        FieldInfo(
            text="Whether workers start together with their leader or when it is ready.",
            default="LeaderCreated",
            origin="contract",
            flags=(FlagDeclaration(name="--startup-policy"),),
        ),
    ] = UNSET
    restart_policy: Annotated[
        Maybe[Literal["RecreateGroupOnPodRestart", "None"]],
        FieldInfo(
            text="What happens when a pod exits: its whole group is recreated, or only its container restarts.",
            default="RecreateGroupOnPodRestart",
            origin="contract",
            flags=(FlagDeclaration(name="--restart-policy"),),
        ),
    ] = UNSET
    serving_port: Annotated[
        Maybe[GroupServingPort],
        FieldInfo(
            text="The port on which leaders serve requests.",
            is_common=True,
            flags=(
                FlagDeclaration(name="--serving-port", form="object"),
                FlagDeclaration(name="--serving-port", form="members"),
            ),
        ),
    ] = UNSET
    node_pools: NodePools = UNSET
    priority_class: PriorityClass = UNSET
    preemptibility: Preemptibility = UNSET
    category: Category = UNSET


class DistributedInferenceChanges(Spec, frozen=True, kw_only=True):
    """What can be changed while it runs."""

    replicas: Annotated[Maybe[Number], FieldInfo(text="The number of groups.")] = UNSET


def podsets(spec: DistributedInferenceSpec) -> tuple[PodSet, ...]:
    """Leaders and, if there are any, workers, in the same number of groups; each group is a gang."""
    workers = value_or(spec.workers, 0)
    leader_spec = spec.leader if isinstance(spec.leader, RoleSpec) else RoleSpec()
    leader = replace(_podset(spec, leader_spec, LEADER, workers), is_placed_first=True, naming="{workload}-{group}")
    port = spec.serving_port
    if isinstance(port, GroupServingPort):
        is_outside, url = value_or(port.expose_externally, True), value_or(port.exposed_url, "")
        leader = replace(leader, container=served(leader.container, port, value_or(port.port, 0), is_outside, url))
    if not workers:
        return (leader,)
    worker_spec = spec.worker if isinstance(spec.worker, RoleSpec) else leader_spec
    worker = replace(
        _podset(spec, worker_spec, WORKER, workers),
        count=workers,
        offset=1,
        naming="{workload}-{group}-{ordinal}",
        starts_after=LEADER if spec.startup_policy == "LeaderReady" else "",
    )
    return leader, worker


def _podset(spec: DistributedInferenceSpec, pod: RoleSpec, role: str, workers: int) -> PodSet:
    in_place = spec.restart_policy == "None"
    index = "0" if role == LEADER else "{ordinal}"
    return PodSet(
        role=role,
        member=LEADER if pod is spec.leader else WORKER,
        container=container_of(pod),
        request=request_of(pod.compute),
        groups=value_or(spec.replicas, 1),
        completions=None,
        gang=_GANG,
        restart=RestartPolicy.ALWAYS if in_place else RestartPolicy.NEVER,
        restart_scope=RestartScope.POD if in_place else RestartScope.GROUP,
        has_fixed_indices=True,
        addressed=True,
        variables={
            "LWS_LEADER_ADDRESS": "{fqdn:{workload}-{group}}",
            "LWS_GROUP_SIZE": str(workers + 1),
            "LWS_WORKER_INDEX": index,
        },
        labels={
            f"{_LABELS}/name": "{workload}",
            f"{_LABELS}/group-index": "{group}",
            f"{_LABELS}/worker-index": index,
            f"{_LABELS}/group-key": "{workload}-{group}",
        },
        annotations={f"{_LABELS}/size": str(workers + 1), f"{_LABELS}/leader-name": "{workload}-{group}"},
        infix="" if role == LEADER else f"-{role}",
    )


def outcome(states: Sequence[SetState]) -> Outcome | None:
    """Running if all groups are available, Degraded if some are and others cannot be."""
    total = states[0].podset.groups
    if total == 0:
        remaining = sum(state.starting + state.running + state.ending for state in states)
        rest = f"; {remaining} of its pods {'is' if remaining == 1 else 'are'} still stopping" if remaining else ""
        return Outcome(Phase.RUNNING, f"Scaled to 0 groups{rest}")
    available = [all(_is_complete(state, group) for state in states) for group in range(total)].count(True)
    message = f"{available} of {total} {'group' if total == 1 else 'groups'} available"
    if available == total:
        return Outcome(Phase.RUNNING, message)
    started = [any(_has_started(state, group) for state in states) for group in range(total)]
    if any(state.lapsed for state in states):
        return Outcome(Phase.DEGRADED, f"{message}; the readiness probe fails for some pods")
    ending = any(group.ending for state in states for group in state.groups)
    if available and (ending or (states[0].blocked and not all(started))):
        return Outcome(Phase.DEGRADED, f"{message}; {started.count(False)} waiting to be started")
    if available or any(started):
        return Outcome(Phase.INITIALIZING, f"{message}, starting the others")
    return None


def _is_complete(state: SetState, group: int) -> bool:
    return state.groups[group].ready >= state.podset.count


def _has_started(state: SetState, group: int) -> bool:
    return bool(state.groups[group].starting or state.groups[group].running)


def _violations(spec: DistributedInferenceSpec, path: str, limits: SubmissionLimits) -> list[Violation]:
    broken = class_violations(spec, path) + serving_violations(spec.serving_port, f"{path}.servingPort")
    if value_or(spec.workers, 0) > 0 and not is_given(spec.worker):
        broken.append(Violation(f"{path}.worker", f"is missing; it must be given, because workers is {spec.workers}"))
    for name, role in (("leader", spec.leader), ("worker", spec.worker)):
        if isinstance(role, RoleSpec):
            broken += pod_violations(role, f"{path}.{name}") + _storage_violations(role.storage, f"{path}.{name}")
    return broken


def _storage_violations(storage: Maybe[BasicStorage], path: str) -> list[Violation]:
    claims = items(storage.pvc) if is_given(storage) else ()
    details = "is true; pods of a group can be recreated at any time, so their claims cannot be ephemeral"
    return [
        Violation(f"{path}.storage.pvc[{number}].ephemeral", details)
        for number, claim in enumerate(claims)
        if claim.ephemeral is True
    ]


def _never(spec: DistributedInferenceSpec) -> None:
    """It never ends by itself."""


DISTRIBUTED_INFERENCE = Kind(
    key="distributed-inference",
    title="DistributedInference",
    noun="distributed inference",
    rest="distributed-inferences",
    resource="DistributedInferenceWorkload",
    own_api="workloads.fairlead.dev/v1alpha1",
    command=("inference", "distributed"),
    command_member=LEADER,
    mirrored_members=((WORKER, LEADER),),
    meant_for="inference",
    resource_type="inferences",
    category="Deploy",
    priority="very-high",
    can_suspend=False,
    spec=DistributedInferenceSpec,
    changes=DistributedInferenceChanges,
    lists_issues=False,
    podsets=podsets,
    outcome=outcome,
    violations=_violations,
    lifetime_after_end=_never,
    max_preemptions=lambda spec: None,
)
