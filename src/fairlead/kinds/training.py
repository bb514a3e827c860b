"""Training: pods that run to an end. Some at a time, each on its own, until enough of them have ended well."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import UNSET

from fairlead.kinds.kind import Kind, Outcome, SetState
from fairlead.kinds.pods import SPELT_OUT, container_of, request_of
from fairlead.model.fields import About, Flag, Int32, Maybe, value_or
from fairlead.model.lifecycle import (
    AUTO_DELETION_SECONDS,
    BACKOFF_LIMIT,
    GRACE_SECONDS,
    AutoDeletionTime,
    BackoffLimit,
    PreemptionLimit,
    RestartPolicyField,
    Stdin,
    TerminateAfterPreemption,
    TerminationGracePeriod,
    Tty,
)
from fairlead.model.metadata import Username
from fairlead.model.network import ExposedUrls, Ports, RelatedUrls
from fairlead.model.phase import Phase
from fairlead.model.placement import Category, NodePools, Preemptibility, PriorityClass
from fairlead.model.pod_fields import PodFields
from fairlead.model.podset import PodSet, RestartPolicy
from fairlead.model.rules import Limits, Violation, command_violations, priority_violations
from fairlead.model.security import Security
from fairlead.model.storage import Storage

#: A century in seconds, and more failed pods than anybody waits for.
MOST = 3_155_760_000
ROLE = "worker"
#: Members that say how pods are run rather than what is in them.
_AROUND = SPELT_OUT | frozenset(
    {
        "tty",
        "stdin",
        "termination_grace_period_seconds",
        "completions",
        "parallelism",
        "backoff_limit",
        "restart_policy",
        "terminate_after_preemption",
        "preemption_limit",
        "auto_deletion_time_after_completion_seconds",
        "priority_class",
        "preemptibility",
        "category",
        "username",
    }
)


class TrainingSpec(PodFields, frozen=True, kw_only=True):
    storage: Annotated[Maybe[Storage], About(text="What is mounted into each pod.")] = UNSET
    security: Annotated[Maybe[Security], About(text="Under which identity and with which rights pods run.")] = UNSET
    node_pools: NodePools = UNSET
    priority_class: PriorityClass = UNSET
    preemptibility: Preemptibility = UNSET
    category: Category = UNSET
    tty: Tty = UNSET
    stdin: Stdin = UNSET
    ports: Ports = UNSET
    exposed_urls: ExposedUrls = UNSET
    related_urls: RelatedUrls = UNSET
    completions: Annotated[
        Maybe[Int32],
        About(
            text="How many pods must end well.",
            default=1,
            origin="prose",
            yaml="completions",
            yaml_kinds="TJ",
            flags=(Flag(name="--runs", aliases=("--completions",)),),
        ),
    ] = UNSET
    parallelism: Annotated[
        Maybe[Int32],
        About(
            text="How many pods run at the same time; at most as many as must end well.",
            default=1,
            origin="prose",
            yaml="parallelism",
            yaml_kinds="TJ",
            flags=(Flag(name="--parallelism"),),
        ),
    ] = UNSET
    backoff_limit: BackoffLimit = UNSET
    restart_policy: RestartPolicyField = UNSET
    termination_grace_period_seconds: TerminationGracePeriod = UNSET
    terminate_after_preemption: TerminateAfterPreemption = UNSET
    preemption_limit: PreemptionLimit = UNSET
    auto_deletion_time_after_completion_seconds: AutoDeletionTime = UNSET
    username: Username = UNSET


def podsets(spec: TrainingSpec) -> tuple[PodSet, ...]:
    """One set of equal pods without gang: each starts when a node has room for it alone."""
    completions = value_or(spec.completions, 1)
    policy = value_or(spec.restart_policy, None)
    container = container_of(
        spec,
        _AROUND,
        tty=value_or(spec.tty, False),
        stdin=value_or(spec.stdin, False),
        termination_grace_seconds=value_or(spec.termination_grace_period_seconds, GRACE_SECONDS),
    )
    return (
        PodSet(
            role=ROLE,
            container=container,
            request=request_of(spec.compute),
            count=min(value_or(spec.parallelism, 1), completions),
            completions=completions,
            restart=RestartPolicy(policy) if policy is not None else RestartPolicy.NEVER,
            backoff_limit=value_or(spec.backoff_limit, BACKOFF_LIMIT),
        ),
    )


def outcome(states: Sequence[SetState]) -> Outcome | None:
    """Running while at least one pod runs, with the counts; None while nothing runs and something is still to do."""
    [state] = states
    wanted = state.podset.completions or 1
    if state.failed > state.podset.backoff_limit:
        last = f" The last one: {state.last_failure}" if state.last_failure else ""
        return Outcome(
            Phase.FAILED,
            f"{_pods(state.failed)} failed, more than the backoff limit of {state.podset.backoff_limit}.{last}",
        )
    if state.succeeded >= wanted:
        return Outcome(Phase.COMPLETED, f"{state.succeeded} of {_pods(wanted)} ended well.")
    counts = f"{_pods(state.running)} running ({state.ready} ready), {state.succeeded} of {wanted} ended well"
    if state.failed:
        counts += f", {state.failed} failed"
    if state.lapsed:
        return Outcome(Phase.DEGRADED, f"{_pods(state.lapsed)} stopped answering the readiness probe: {counts}.")
    if state.ready:
        return Outcome(Phase.RUNNING, f"{counts}.")
    if state.running:
        return Outcome(Phase.INITIALIZING, f"Waiting for the readiness probe: {counts}.")
    if state.starting:
        return Outcome(Phase.INITIALIZING, f"{_pods(state.starting)} starting.")
    return None


def _pods(number: int) -> str:
    return "1 pod" if number == 1 else f"{number} pods"


def _lifetime_after_end(spec: TrainingSpec) -> int | None:
    return int(value_or(spec.auto_deletion_time_after_completion_seconds, AUTO_DELETION_SECONDS))


def _violations(spec: TrainingSpec, path: str, limits: Limits) -> list[Violation]:
    completions, parallelism = value_or(spec.completions, 1), value_or(spec.parallelism, 1)
    found = command_violations(spec, path) + priority_violations(spec, path)
    if not 1 <= completions <= limits.completions:
        details = f"is {completions}; between 1 and {limits.completions} are allowed"
        found.append(Violation(f"{path}.completions", details))
    if not 1 <= parallelism <= max(completions, 1):
        details = f"is {parallelism}; between 1 and completions ({completions}) are allowed"
        found.append(Violation(f"{path}.parallelism", details))
    for rest, value in (
        ("backoffLimit", spec.backoff_limit),
        ("terminationGracePeriodSeconds", spec.termination_grace_period_seconds),
        ("autoDeletionTimeAfterCompletionSeconds", spec.auto_deletion_time_after_completion_seconds),
    ):
        if isinstance(value, int) and not 0 <= value <= MOST:
            found.append(Violation(f"{path}.{rest}", f"is {value}; between 0 and {MOST} are allowed"))
    if spec.tty is True and spec.stdin is not True:
        found.append(Violation(f"{path}.tty", "is true, but stdin is not; a terminal needs stdin"))
    return found


def _ends_when_preempted(spec: TrainingSpec) -> bool:
    return spec.terminate_after_preemption is True


TRAINING = Kind(
    key="training",
    title="Training",
    rest="trainings",
    resource="TrainingWorkload",
    letter="T",
    resources_before=(("Job", "J"), ("RunaiJob", "J")),
    command=("training",),
    category="Train",
    priority="low",
    can_suspend=True,
    spec=TrainingSpec,
    podsets=podsets,
    outcome=outcome,
    violations=_violations,
    lifetime_after_end=_lifetime_after_end,
    ends_when_preempted=_ends_when_preempted,
)
