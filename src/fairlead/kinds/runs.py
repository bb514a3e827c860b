"""How pods of workspaces and trainings run: containers and their grace period, retries, outcome.

Called by the files of those kinds.
"""

from collections.abc import Sequence

from msgspec import UNSET

from fairlead.kinds.kind import Outcome, SetState
from fairlead.kinds.pods import SPELT_OUT, container_of
from fairlead.model.pods.podset import PodContainer, RestartPolicy
from fairlead.model.records.phase import Phase
from fairlead.model.spec.fields import value_or
from fairlead.model.spec.lifecycle import AUTO_DELETION_SECONDS, BACKOFF_LIMIT, GRACE_SECONDS
from fairlead.model.spec.run_fields import RUN_FIELD_NAMES, RunFields


def running_container(spec: RunFields, without: frozenset[str] = frozenset()) -> PodContainer:
    """The container of one pod; `without` names further fields of the kind that are not part of it."""
    return container_of(
        spec,
        SPELT_OUT | RUN_FIELD_NAMES | without,
        tty=value_or(spec.tty, False),
        stdin=value_or(spec.stdin, False),
        termination_grace_seconds=value_or(spec.termination_grace_period_seconds, GRACE_SECONDS),
    )


def restart_policy(spec: RunFields, default: RestartPolicy = RestartPolicy.NEVER) -> RestartPolicy:
    policy = value_or(spec.restart_policy, None)
    return default if policy is None else RestartPolicy(policy)


def backoff_limit(spec: RunFields) -> int:
    return int(value_or(spec.backoff_limit, BACKOFF_LIMIT))


def lifetime_after_end(spec: RunFields) -> int | None:
    return int(value_or(spec.auto_deletion_time_after_completion_seconds, AUTO_DELETION_SECONDS))


def max_preemptions(spec: RunFields) -> int | None:
    """None for any number; 0 for a workload that ends when it is preempted."""
    if spec.terminate_after_preemption is True:
        return 0
    limit: int | None = value_or(getattr(spec, "preemption_limit", UNSET), None)
    return limit


def pods(number: int) -> str:
    return "1 pod" if number == 1 else f"{number} pods"


def _of_role(state: SetState) -> str:
    count = state.podset.count
    return f"{count} {state.role}{'' if count == 1 else 's'}"


def _ready(state: SetState) -> str:
    """Said only if not all running pods are ready."""
    return "" if state.ready == state.running else f" ({state.ready} ready)"


def _as_sentence(text: str) -> str:
    """With a capital, unless it begins with the path of a field, as `storage.git[0]`."""
    is_word = text.partition(" ")[0].isalpha()
    return f"{text[0].upper() if is_word else text[0]}{text[1:]}."


def failed_outcome(state: SetState, failed: int) -> Outcome | None:
    """Failed if there were more failures than the backoff limit allows."""
    limit = state.podset.backoff_limit
    if failed <= limit:
        return None
    last = state.last_failure
    # What went wrong comes first: a list at 80 columns shows no more.
    cause = f"{_as_sentence(last)} " if last else ""
    return Outcome(Phase.FAILED, f"{cause}{pods(failed)} failed, more than the backoff limit of {limit}")


def outcome_of_one(states: Sequence[SetState]) -> Outcome | None:
    """The outcome of a single set that runs to completion: Running while at least one pod runs; None while no pod runs
    and some are still to come."""
    [state] = states
    wanted = state.podset.completions or 1
    if failed := failed_outcome(state, state.failed):
        return failed
    if state.succeeded >= wanted:
        return Outcome(Phase.COMPLETED, f"{pods(state.succeeded)} succeeded")
    counts = f"{pods(state.running)} running{_ready(state)}"
    if wanted > 1:
        counts += f", {state.succeeded} of {wanted} succeeded"
    if state.failed:
        counts += f", {state.failed} failed"
    if state.lapsed:
        return Outcome(Phase.DEGRADED, f"The readiness probe fails for {pods(state.lapsed)}: {counts}")
    if state.ready:
        return Outcome(Phase.RUNNING, counts)
    if state.running:
        return Outcome(Phase.INITIALIZING, f"Waiting for the readiness probe: {counts}")
    if state.starting:
        has_failed = state.failed and state.last_failure
        before = f" after {pods(state.failed)} failed: {state.last_failure}" if has_failed else ""
        return Outcome(Phase.INITIALIZING, f"{pods(state.starting)} starting{before}")
    return None


def outcome_of_gang(states: Sequence[SetState]) -> Outcome | None:
    """The outcome of a gang: completed with its first set, Running if the minimum of pods of every set runs."""
    if failed := failed_outcome(states[0], sum(state.failed for state in states)):
        return failed
    decisive = states[0]
    if decisive.succeeded >= (decisive.podset.completions or 1):
        return Outcome(Phase.COMPLETED, f"{pods(decisive.succeeded)} ({decisive.role}) succeeded")
    counts = ", ".join(f"{state.running} of {_of_role(state)} running{_ready(state)}" for state in states)
    if any(state.lapsed for state in states):
        return Outcome(Phase.DEGRADED, f"The readiness probe fails for some pods: {counts}")
    if all(state.ready + state.succeeded >= state.podset.min_count for state in states):
        return Outcome(Phase.RUNNING, counts)
    if any(state.starting or state.running > state.ready for state in states):
        return Outcome(Phase.INITIALIZING, f"Waiting for all pods: {counts}")
    if any(state.running for state in states):
        return Outcome(Phase.DEGRADED, f"Some pods are missing: {counts}")
    return None
