"""What follows for one workload: tables of a situation and what is wanted of it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import pytest

from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.decide.phases import PhaseInputs
from fairlead.control.decide.placement.missing_pods import count_missing_pods
from fairlead.control.decide.review import decide_review
from fairlead.engines.base import Forget, PodReport, PodState, Review, Start, Stop
from fairlead.kinds.kind import Outcome, SetState
from fairlead.model.pods.podset import RestartPolicy
from fairlead.model.records.phase import DesiredPhase, Phase, PodPhase
from fairlead.model.records.workload import Pod, Tally, Workload
from tests import builders
from tests.builders import decide_pods

NOW = 1_000_000


def outcome(states: Sequence[SetState]) -> Outcome | None:
    """A kind in small: enough to see that its word is followed."""
    (state,) = states
    if state.failed > state.podset.backoff_limit:
        return Outcome(Phase.FAILED, state.last_failure)
    if state.podset.completions is not None and state.succeeded >= state.podset.completions:
        return Outcome(Phase.COMPLETED)
    if state.running:
        return Outcome(Phase.RUNNING, f"{state.running} running")
    return Outcome(Phase.INITIALIZING) if state.starting else None


RULES = builders.rules(outcome=outcome)


def turn(workload: Workload, *pods: Pod, reports: Sequence[PodReport] = (), **podset: Any) -> Draft:
    entry = WorkloadEntry(workload=workload, pods=pods, podsets=(builders.podset(**podset),), lifetime_after_end=60_000)
    return decide_pods(entry, reports, NOW, RULES)


def report(pod: Pod, state: PodState, **members: Any) -> PodReport:
    return PodReport(pod_id=pod.id, workload_id=pod.workload_id, attempt=pod.attempt, state=state, **members)


def exited(pod: Pod, code: int, **members: Any) -> PodReport:
    return report(pod, PodState.EXITED, exit_code=code, ended_at=NOW, **members)


def test_what_a_starting_pod_waits_for_is_the_message_until_it_runs() -> None:
    pod = builders.pod("train-0-0", phase=PodPhase.STARTING)
    workload = builders.workload(phase=Phase.INITIALIZING)
    pulls = report(pod, PodState.STARTING, reason="ContainerCreating", message="podman pulls the image x")
    draft = turn(workload, pod, reports=[pulls])
    assert draft.workload.phase_message == "Pod train-0-0: podman pulls the image x"
    after = turn(draft.workload, draft.pods[pod.id], reports=[report(pod, PodState.RUNNING)])
    assert (after.workload.phase, after.workload.phase_message) == (Phase.RUNNING, "1 running")


def test_how_far_an_upload_is_becomes_the_message() -> None:
    pod = builders.pod("train-0-0")
    far = report(pod, PodState.RUNNING, reason="Uploading", message="Uploading to bucket b: 1 of 2 files, 1 MB of 9 MB")
    draft = turn(builders.workload(phase=Phase.RUNNING), pod, reports=[far])
    assert draft.workload.phase_message == far.message
    after = turn(draft.workload, draft.pods[pod.id], reports=[exited(pod, 0)])
    assert (after.workload.phase, after.pods[pod.id].reason) == (Phase.COMPLETED, "Completed")


class Exit(NamedTuple):
    name: str
    code: int
    restart: RestartPolicy
    want_phase: Phase
    want_pod: PodPhase
    want_failed: int
    reason: str = ""
    failed_before: int = 0
    backoff_limit: int = 6
    stopping_for: str = ""


EXITS = [
    Exit("ends well", 0, RestartPolicy.NEVER, Phase.COMPLETED, PodPhase.SUCCEEDED, 0),
    Exit("fails and is retried", 1, RestartPolicy.NEVER, Phase.DEGRADED, PodPhase.FAILED, 1),
    Exit("fails for the last time", 1, RestartPolicy.NEVER, Phase.FAILED, PodPhase.FAILED, 7, failed_before=6),
    Exit("no retry allowed", 3, RestartPolicy.NEVER, Phase.FAILED, PodPhase.FAILED, 1, backoff_limit=0),
    Exit("cannot start", 127, RestartPolicy.NEVER, Phase.FAILED, PodPhase.FAILED, 1, reason="StartError"),
    Exit("restarts in place", 1, RestartPolicy.ON_FAILURE, Phase.DEGRADED, PodPhase.STARTING, 1),
    Exit("restarted too often", 1, RestartPolicy.ON_FAILURE, Phase.FAILED, PodPhase.FAILED, 7, failed_before=6),
    Exit("on failure, ends well", 0, RestartPolicy.ON_FAILURE, Phase.COMPLETED, PodPhase.SUCCEEDED, 0),
    Exit("always, ends well", 0, RestartPolicy.ALWAYS, Phase.DEGRADED, PodPhase.STARTING, 0),
    Exit("always, never counted", 1, RestartPolicy.ALWAYS, Phase.DEGRADED, PodPhase.STARTING, 6, failed_before=6),
]


@pytest.mark.parametrize("case", EXITS, ids=lambda case: case.name)
def test_how_the_end_of_a_running_pod_is_read(case: Exit) -> None:
    pod = builders.pod()
    before = builders.workload(phase=Phase.RUNNING, tallies={"main": Tally(failed=case.failed_before)})
    draft = turn(
        before,
        pod,
        reports=[exited(pod, case.code, reason=case.reason)],
        restart=case.restart,
        backoff_limit=case.backoff_limit,
    )
    assert draft.workload.phase is case.want_phase
    assert draft.pods[pod.id].phase is case.want_pod
    assert draft.workload.failed == case.want_failed


def test_the_delay_doubles_with_every_failure() -> None:
    pod = builders.pod()
    for failed, want in ((0, 1000), (1, 2000), (4, 16_000), (12, 300_000)):
        draft = turn(
            builders.workload(phase=Phase.RUNNING, tallies={"main": Tally(failed=failed)}),
            pod,
            reports=[exited(pod, 1)],
            backoff_limit=99,
        )
        assert draft.workload.retry_at == NOW + want
        assert draft.wake_at == draft.workload.retry_at


def test_a_failed_pod_is_not_replaced_before_its_time() -> None:
    waiting = builders.workload(phase=Phase.DEGRADED, tallies={"main": Tally(failed=1, retry_at=NOW + 5)})
    entry = WorkloadEntry(workload=waiting, podsets=(builders.podset(),))
    assert count_missing_pods(entry, NOW) == {}
    assert count_missing_pods(entry, NOW + 5) == {("main", 0): 1}


def test_a_restart_in_place_starts_the_next_attempt_when_due() -> None:
    pod = builders.pod(phase=PodPhase.STARTING, attempt=2, restart_at=NOW)
    draft = turn(builders.workload(phase=Phase.DEGRADED), pod, restart=RestartPolicy.ON_FAILURE)
    (start,) = builders.orders(draft)
    assert isinstance(start, Start)
    assert start.pod.attempt == 2
    assert draft.pods[pod.id].restart_at is None


@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.DEGRADED])
@pytest.mark.parametrize(
    ("restart", "want"),
    [
        pytest.param(RestartPolicy.NEVER, "exit code 3; retry 1 of 6 in 1.0 s", id="new pod"),
        pytest.param(RestartPolicy.ALWAYS, "exit code 3; restarting in 1.0 s", id="in place"),
    ],
)
def test_what_waits_for_its_next_try_says_why_also_after_the_first(
    phase: Phase, restart: RestartPolicy, want: str
) -> None:
    pod = builders.pod(phase=PodPhase.STARTING)
    before = builders.workload(phase=phase, phase_message="1 pod starting")
    draft = turn(before, pod, reports=[exited(pod, 3)], restart=restart)
    assert (draft.workload.phase, draft.workload.phase_message) == (Phase.DEGRADED, want)
    # The seconds that are left do not change the record again and again.
    later = WorkloadEntry(
        workload=draft.workload, pods=tuple(draft.pods.values()), podsets=(builders.podset(restart=restart),)
    )
    assert decide_pods(later, (), NOW + 400, RULES).workload.phase_message == want
    # Another failure is told, also if both sentences begin alike.
    told = msgspec.structs.replace(later.workload, phase_message="Cannot read a in b; retrying in 1.0 s")
    restarting = tuple(
        msgspec.structs.replace(one, message="Cannot read c in d", restart_at=NOW + 1000) for one in later.pods
    )
    other = msgspec.structs.replace(later, workload=told, pods=restarting)
    assert decide_pods(other, (), NOW, RULES).workload.phase_message.startswith("Cannot read c in d; re")
    # A failure that is known no more, because its pod was removed, stays in the message.
    without = msgspec.structs.replace(later, pods=())
    assert decide_pods(without, (), NOW + 400, RULES).workload.phase_message == want


class Ask(NamedTuple):
    name: str
    phase: Phase
    desired: DesiredPhase
    has_pod: bool
    want_phase: Phase
    want_stop: bool = False
    want_gone: bool = False


ASKS = [
    Ask("new", Phase.CREATING, DesiredPhase.RUNNING, False, Phase.PENDING),
    Ask("suspend while pending", Phase.PENDING, DesiredPhase.STOPPED, False, Phase.STOPPED),
    Ask("suspend while running", Phase.RUNNING, DesiredPhase.STOPPED, True, Phase.STOPPING, want_stop=True),
    Ask("suspend while starting", Phase.INITIALIZING, DesiredPhase.STOPPED, True, Phase.STOPPING, want_stop=True),
    Ask("suspended stays", Phase.STOPPED, DesiredPhase.STOPPED, False, Phase.STOPPED),
    Ask("resume", Phase.STOPPED, DesiredPhase.RUNNING, False, Phase.PENDING),
    Ask("resume while stopping", Phase.STOPPING, DesiredPhase.RUNNING, True, Phase.STOPPING, want_stop=True),
    Ask("suspend a finished one", Phase.COMPLETED, DesiredPhase.STOPPED, False, Phase.COMPLETED),
    Ask("delete while creating", Phase.CREATING, DesiredPhase.DELETED, False, Phase.DELETING, want_gone=True),
    Ask("delete while running", Phase.RUNNING, DesiredPhase.DELETED, True, Phase.DELETING, want_stop=True),
    Ask("delete while stopping", Phase.STOPPING, DesiredPhase.DELETED, False, Phase.DELETING, want_gone=True),
    Ask("delete a finished one", Phase.FAILED, DesiredPhase.DELETED, False, Phase.DELETING, want_gone=True),
    Ask("delete a suspended one", Phase.STOPPED, DesiredPhase.DELETED, False, Phase.DELETING, want_gone=True),
]


@pytest.mark.parametrize("case", ASKS, ids=lambda case: case.name)
def test_what_was_asked_is_done_in_any_phase(case: Ask) -> None:
    pods = [builders.pod()] if case.has_pod else []
    draft = turn(builders.workload(phase=case.phase, desired_phase=case.desired), *pods)
    assert draft.workload.phase is case.want_phase
    assert draft.workload.gone is case.want_gone
    assert any(isinstance(order, Stop) for order in builders.orders(draft)) is case.want_stop


def test_resume_begins_a_new_run_from_nothing() -> None:
    stopped = builders.workload(phase=Phase.STOPPED, tallies={"main": Tally(succeeded=2, failed=3, made=5)})
    draft = turn(stopped)
    assert (draft.workload.run, draft.workload.tallies, draft.workload.groups) == (2, {}, {})
    assert [event.phase for event in draft.events] == ["Resuming", "Pending"]


def _stopping() -> Workload:
    return builders.workload(
        phase=Phase.STOPPING,
        desired_phase=DesiredPhase.STOPPED,
        phase_message="Stopping its pods",
        running_pods=1,
    )


def test_a_stop_is_ordered_once() -> None:
    stopping = builders.pod(phase=PodPhase.STOPPING, stopping_for="suspend")
    draft = turn(_stopping(), stopping)
    assert builders.orders(draft) == []
    assert not draft.is_changed


@pytest.mark.parametrize(
    ("code", "by_itself", "want"),
    [
        pytest.param(0, False, PodPhase.STOPPED, id="left-after-the-signal"),
        pytest.param(143, False, PodPhase.STOPPED, id="ended-by-the-signal"),
        pytest.param(0, True, PodPhase.SUCCEEDED, id="succeeded-before-the-signal"),
        pytest.param(1, True, PodPhase.STOPPED, id="failed-before-the-signal"),
    ],
)
def test_what_ends_while_it_is_suspended_has_neither_succeeded_nor_failed(
    code: int, by_itself: bool, want: PodPhase
) -> None:
    pod = builders.pod(phase=PodPhase.STOPPING, stopping_for="suspend")
    draft = turn(
        builders.workload(phase=Phase.STOPPING, desired_phase=DesiredPhase.STOPPED),
        pod,
        reports=[exited(pod, code, by_itself=by_itself)],
        completions=2,
        count=2,
    )
    assert draft.workload.phase is Phase.STOPPED
    assert (draft.workload.failed, draft.workload.succeeded) == (0, int(want is PodPhase.SUCCEEDED))
    assert draft.pods[pod.id].phase is want


@pytest.mark.parametrize(
    ("by_itself", "want"), [(False, Phase.PENDING), (True, Phase.COMPLETED)], ids=["after-the-signal", "before-it"]
)
def test_what_ends_with_0_while_it_is_evicted_runs_again(by_itself: bool, want: Phase) -> None:
    pod = builders.pod(phase=PodPhase.STOPPING, stopping_for="evict")
    draft = turn(
        builders.workload(phase=Phase.TERMINATING, preemptions=1, started_at=5),
        pod,
        reports=[exited(pod, 0, by_itself=by_itself)],
    )
    assert draft.workload.phase is want


def test_a_lost_pod_is_started_again_without_counting() -> None:
    pod = builders.pod()
    lost = report(pod, PodState.LOST, reason="NodeRebooted", message="the machine was restarted")
    draft = turn(builders.workload(phase=Phase.RUNNING), pod, reports=[lost])
    assert draft.workload.failed == 0
    assert draft.pods[pod.id].attempt == 2
    assert [order.pod.attempt for order in builders.orders(draft) if isinstance(order, Start)] == [2]


def test_reports_of_an_earlier_attempt_change_nothing() -> None:
    pod = builders.pod(attempt=2)
    old = PodReport(pod_id=pod.id, workload_id=pod.workload_id, attempt=1, state=PodState.EXITED, exit_code=0)
    assert not turn(
        builders.workload(phase=Phase.RUNNING, phase_message="1 running", running_pods=1, started_at=5),
        pod,
        reports=[old],
    ).is_changed


def test_a_finished_workload_knows_when_it_deletes_itself_and_forgets_its_pod() -> None:
    pod = builders.pod()
    draft = turn(builders.workload(phase=Phase.RUNNING), pod, reports=[exited(pod, 0)])
    assert draft.workload.completed_at == NOW
    assert draft.workload.delete_at == NOW + 60_000
    assert Forget(pod.id) in builders.orders(draft)


def test_waiting_and_running_time_add_up_over_the_phases() -> None:
    draft = turn(builders.workload(phase=Phase.PENDING, phase_updated_at=NOW - 500, pending_time=100), builders.pod())
    assert draft.workload.phase is Phase.RUNNING
    assert (draft.workload.pending_time, draft.workload.running_time) == (600, 0)


def test_an_illegal_move_marks_the_workload_unknown_and_lists_its_moves() -> None:
    draft = Draft(WorkloadEntry(workload=builders.workload(phase=Phase.COMPLETED), podsets=(builders.podset(),)), NOW)
    draft.set_phase(Phase.RUNNING)
    assert draft.workload.phase is Phase.UNKNOWN
    assert "Completed to Running" in draft.workload.phase_message


@pytest.mark.parametrize(
    ("completions", "count", "succeeded", "active", "want"),
    [(1, 1, 0, 0, 1), (10, 3, 0, 0, 3), (10, 3, 0, 2, 1), (10, 3, 8, 1, 1), (10, 3, 9, 1, 0), (10, 3, 10, 0, 0)],
)
def test_how_many_pods_want_a_place(completions: int, count: int, succeeded: int, active: int, want: int) -> None:
    entry = WorkloadEntry(
        workload=builders.workload(phase=Phase.RUNNING, tallies={"main": Tally(succeeded=succeeded)}),
        pods=tuple(builders.pod(f"p{i}") for i in range(active)),
        podsets=(builders.podset(completions=completions, count=count),),
    )
    assert count_missing_pods(entry, NOW).get(("main", 0), 0) == want


def test_what_the_engine_cannot_provide_fails_the_workload_before_its_start() -> None:
    review = Review(refused=(("storage.nfs", "no NFS here"),), advisory=(("image", "recorded, not used"),))
    rules = msgspec.structs.replace(RULES, review=lambda podset: review)
    entry = WorkloadEntry(workload=builders.workload(), podsets=(builders.podset(),))
    draft = decide_pods(entry, (), NOW, rules)
    assert draft.workload.phase is Phase.FAILED
    assert "storage.nfs: no NFS here" in draft.workload.phase_message
    assert [(c.type, c.reason) for c in draft.workload.conditions] == [
        ("NotEnforced", "image"),
        ("NotProvided", "storage.nfs"),
    ]


def test_what_has_no_effect_is_reported_once() -> None:
    """While it is new, every report is a reason to look at it again."""
    rules = msgspec.structs.replace(RULES, review=lambda podset: Review(advisory=(("image", "not used"),)))
    first = decide_review_of(builders.workload(), rules)
    assert decide_review_of(first, rules).conditions == first.conditions
    assert [condition.reason for condition in first.conditions] == ["image"]


def decide_review_of(workload: Workload, rules: PhaseInputs) -> Workload:
    draft = Draft(WorkloadEntry(workload=workload, podsets=(builders.podset(),)), NOW)
    decide_review(draft, rules.review, rules.expose)
    return draft.workload


@pytest.mark.parametrize(("name", "want_status"), [("Namespaces", "True"), ("None", "False")])
def test_a_condition_names_the_isolation(name: str, want_status: str) -> None:
    rules = msgspec.structs.replace(RULES, review=lambda podset: Review(isolation=(name, "words")))
    entry = WorkloadEntry(workload=builders.workload(), podsets=(builders.podset(),))
    [told] = decide_pods(entry, (), NOW, rules).workload.conditions
    assert (told.type, told.status, told.reason, told.message) == ("Isolation", want_status, name, "words")


@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.INITIALIZING, Phase.DEGRADED])
def test_a_lost_pod_whose_node_is_gone_waits_for_another_place(phase: Phase) -> None:
    pod = builders.pod(node="gone")
    entry = WorkloadEntry(workload=builders.workload(phase=phase), pods=(pod,), podsets=(builders.podset(),))
    rules = msgspec.structs.replace(RULES, has_node=lambda node: node != "gone")
    draft = decide_pods(entry, [report(pod, PodState.LOST, reason="SupervisorLost", message="lost")], NOW, rules)
    assert draft.workload.phase is Phase.PENDING
    assert "no longer declared" in draft.workload.phase_message
    assert draft.pods[pod.id].phase is PodPhase.STOPPED
    assert not any(isinstance(order, Start) for order in builders.orders(draft))
    after = WorkloadEntry(workload=draft.workload, pods=(), podsets=entry.podsets)
    assert sum(count_missing_pods(after, NOW).values()) == 1
    there = msgspec.structs.replace(RULES, has_node=lambda node: True)
    again = decide_pods(entry, [report(pod, PodState.LOST, reason="SupervisorLost", message="lost")], NOW, there)
    assert [order.pod.node for order in builders.orders(again) if isinstance(order, Start)] == ["gone"]
