"""How an eviction is written down and told, and how a time limit ends a workload: one decision at a time."""

from typing import Any

import msgspec
import pytest

from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.decide.gpu_share import share_of
from fairlead.control.decide.placement.eviction_notices import note_eviction
from fairlead.control.decide.placement.placements import evict
from fairlead.engines.base import PodReport, PodState, Stop
from fairlead.model.pods.podset import Request
from fairlead.model.records.organization import GpuDevice, Node
from fairlead.model.records.phase import DesiredPhase, Phase, PodPhase
from fairlead.model.records.workload import Pod, Workload
from fairlead.scheduling.model.decisions import Eviction, QueueFigures
from tests import builders
from tests.builders import decide_pods

NOW = 1_000_000
FIGURES = QueueFigures(name="default", priority=100, allocated=(8, 0, 0), quota=(4, -1, -1), fair_share=(4, 0, 0))
RULES = builders.rules()


def eviction(**members: Any) -> Eviction:
    given: dict[str, Any] = {
        "task": "pod-train-0-0",
        "job": "pod-train-0-0",
        "node": "node-a",
        "action": "reclaim",
        "by_job": "id-winner/main/0",
        "rule": "reclaimed",
        "message": "Pod x was preempted by workload y.",
        "victim_queue": FIGURES,
        "over_quota": (4, 0, 0),
    }
    return Eviction(**(given | members))


def entry(workload: Workload, *pods: Pod, **members: Any) -> WorkloadEntry:
    return WorkloadEntry(workload=workload, pods=pods, podsets=(builders.podset(),), **members)


RUNNING = builders.workload(phase=Phase.RUNNING, phase_updated_at=NOW - 5000)
HOLDER = builders.pod(gpu_devices=(2,), gpu_thousandths=1000, started_at=NOW - 5000)


@pytest.mark.parametrize(
    ("members", "want"),
    [
        pytest.param(
            {},
            "Evicted: a workload of another project reclaimed what this project held above its quota",
            id="reclaim",
        ),
        pytest.param({}, "held 1 GPU on node node-a since 1970-01-01T00:16:35.000Z", id="what it had"),
        pytest.param({}, "project default was 4 GPUs over its quota of 4.", id="over quota"),
        pytest.param({"rule": "preempted", "over_quota": (0, 0, 0)}, "has a higher priority", id="preempt"),
        pytest.param({"rule": "consolidated", "moved_to": "node-b"}, "Moved to node node-b", id="consolidation"),
        pytest.param({"rule": "stale", "by_job": None}, "fewer pods were running than its gang needs", id="stale"),
    ],
)
def test_the_notice_of_an_evicted_workload(members: dict[str, Any], want: str) -> None:
    winner = builders.workload("winner", project_id="2", project_name="team-b")
    assert want in note_eviction(eviction(**members), RUNNING, HOLDER, winner, NOW).message


@pytest.mark.parametrize(
    ("project", "visible", "want"),
    [
        pytest.param("1", frozenset("1"), "workload winner of project team", id="of the same project"),
        pytest.param("2", frozenset("1"), "a workload of another project", id="of a hidden project"),
        pytest.param("2", frozenset("12"), "workload winner of project team", id="of a visible project"),
        pytest.param("2", None, "workload winner of project team", id="for readers who see all projects"),
    ],
)
def test_other_projects_are_named_only_to_those_who_may_see_them(
    project: str, visible: frozenset[str] | None, want: str
) -> None:
    winner = builders.workload("winner", project_id=project, project_name="team")
    draft = Draft(entry(RUNNING, HOLDER), NOW)
    evict(draft, HOLDER, eviction(), note_eviction(eviction(), RUNNING, HOLDER, winner, NOW))
    by_reason = {event.reason: event.message_for(visible) for event in draft.events}
    told = [draft.workload.phase_message_for(visible), by_reason["Evict"], by_reason["Terminating"]]
    assert [want in message for message in told] == [True, True, True]
    named = [name in message for message in told for name in ("winner", "workload y")].count(True)
    assert named == (0 if want.startswith("a ") else 4)
    assert ("winner" in draft.workload.phase_message) is (project == "1"), "records name nobody else by themselves"


def test_the_quota_of_a_department_is_not_shown_as_that_of_the_project() -> None:
    theirs = msgspec.structs.replace(FIGURES, name="research")
    note = note_eviction(eviction(victim_queue=theirs), RUNNING, HOLDER, None, NOW)
    assert note.quota_gpus is None
    assert note.message.endswith("over its quota.")


def evicted(draft: Draft, pod: Pod) -> Draft:
    note = note_eviction(eviction(), draft.workload, pod, None, NOW)
    evict(draft, pod, eviction(), note)
    return draft


def test_an_eviction_stops_the_pod_and_counts_once() -> None:
    second = builders.pod("train-0-1", gpu_devices=(3,), gpu_thousandths=1000)
    draft = Draft(entry(RUNNING, HOLDER, second), NOW)
    evicted(draft, HOLDER)
    phases = [draft.workload.phase]
    evicted(draft, second)
    phases.append(draft.workload.phase)
    assert phases == [Phase.RUNNING, Phase.TERMINATING], "it runs on as long as one of its pods does"
    assert draft.workload.preemptions == 1
    assert draft.workload.last_eviction is not None
    assert [order for order in builders.orders(draft) if isinstance(order, Stop)]
    assert draft.wake_at is None, "the engine reports their end"


def test_an_evicted_pod_without_process_needs_no_report() -> None:
    """It waited for its restart: nothing will end, so the workload looks at itself again at once."""
    waiting = builders.pod(phase=PodPhase.STARTING, restart_at=NOW + 9000, gpu_devices=(2,), gpu_thousandths=1000)
    draft = evicted(Draft(entry(RUNNING, waiting), NOW), waiting)
    assert draft.active_pods() == []
    assert draft.wake_at == NOW
    after = decide_pods(entry(draft.workload), (), NOW, RULES)
    assert after.workload.phase is Phase.PENDING


@pytest.mark.parametrize(
    ("code", "by_itself", "borne", "want"),
    [
        pytest.param(143, False, None, Phase.PENDING, id="waits for its next turn"),
        pytest.param(0, False, None, Phase.PENDING, id="left with 0 and waits for its next turn"),
        pytest.param(143, False, 1, Phase.PENDING, id="bears one"),
        pytest.param(143, False, 0, Phase.FAILED, id="asked to end"),
        pytest.param(0, False, 0, Phase.FAILED, id="asked to end and left with 0"),
        pytest.param(0, True, 0, Phase.COMPLETED, id="had succeeded before the signal"),
    ],
)
def test_what_follows_an_eviction(code: int, by_itself: bool, borne: int | None, want: Phase) -> None:
    draft = evicted(Draft(entry(RUNNING, HOLDER), NOW), HOLDER)
    pod = draft.pods[HOLDER.id]
    report = PodReport(
        pod_id=pod.id,
        workload_id=pod.workload_id,
        attempt=1,
        state=PodState.EXITED,
        exit_code=code,
        ended_at=NOW,
        by_itself=by_itself,
    )
    after = decide_pods(entry(draft.workload, pod, max_preemptions=borne), (report,), NOW, RULES)
    assert after.workload.phase is want


def limited(**members: Any) -> Workload:
    return builders.workload(phase=Phase.RUNNING, time_limit=60_000, **members)


def test_a_time_limit_is_waited_for() -> None:
    draft = decide_pods(entry(limited(running_time=10_000, phase_updated_at=NOW - 20_000), HOLDER), (), NOW, RULES)
    assert draft.workload.desired_phase is DesiredPhase.RUNNING
    assert draft.wake_at == NOW + 30_000


def test_a_time_limit_stops_as_a_suspend_would() -> None:
    draft = decide_pods(entry(limited(running_time=40_000, phase_updated_at=NOW - 20_000), HOLDER), (), NOW, RULES)
    assert draft.workload.desired_phase is DesiredPhase.STOPPED
    assert draft.workload.phase is Phase.STOPPING
    assert "TimeLimit" in [event.reason for event in draft.events]


def test_the_message_of_a_stop_at_the_time_limit() -> None:
    stopping = msgspec.structs.replace(limited(running_time=60_000), phase=Phase.STOPPING)
    draft = decide_pods(entry(stopping), (), NOW, RULES)
    assert draft.workload.phase is Phase.STOPPED
    assert draft.workload.phase_message == "Its time limit of 60 s is used up; it cannot be resumed"


def test_used_up_time_is_not_resumed() -> None:
    stopped = limited(running_time=60_000)
    stopped = msgspec.structs.replace(stopped, phase=Phase.STOPPED)
    draft = decide_pods(entry(stopped), (), NOW, RULES)
    assert draft.workload.phase is Phase.STOPPED
    assert draft.workload.desired_phase is DesiredPhase.STOPPED


@pytest.mark.parametrize(
    ("request_members", "want"),
    [
        pytest.param({"gpu_devices": 1}, 1000, id="whole"),
        pytest.param({"gpu_devices": 1, "gpu_portion": 250}, 250, id="portion"),
        pytest.param({"gpu_devices": 1, "gpu_memory_bytes": 8192 << 20}, 180, id="memory, rounded up to hundredths"),
    ],
)
def test_the_share_of_a_device(request_members: dict[str, Any], want: int) -> None:
    node = Node(id="n", name="n", cpu_milli=1, memory_bytes=1, gpus=(GpuDevice(0, memory_mib=46 * 1024),))
    assert share_of(builders.podset(request=Request(**request_members)), node) == want


@pytest.mark.parametrize(
    ("idle", "want", "wake", "want_events"),
    [
        pytest.param(0, DesiredPhase.RUNNING, 30_000, [], id="busy"),
        pytest.param(29_000, DesiredPhase.RUNNING, 1000, [], id="idle for a while"),
        pytest.param(50_000, DesiredPhase.RUNNING, 10_000, ["IdleGpus"], id="idle for half of the time"),
        pytest.param(59_900, DesiredPhase.RUNNING, 1000, ["IdleGpus"], id="samples are late"),
        pytest.param(60_000, DesiredPhase.STOPPED, None, ["IdleLimit"], id="idle for too long"),
    ],
)
def test_a_limit_on_idle_gpus(idle: int, want: DesiredPhase, wake: int | None, want_events: list[str]) -> None:
    holder = msgspec.structs.replace(HOLDER, gpu_devices=(0,))
    rules = builders.rules(idle_time=lambda ids: idle if ids == [holder.id] else 1 << 40)
    running = builders.workload(phase=Phase.RUNNING, idle_limit=60_000)
    draft = decide_pods(entry(running, holder), (), NOW, rules)
    assert draft.workload.desired_phase is want
    assert [event.reason for event in draft.events if event.reason.startswith("Idle")] == want_events
    if wake is not None:
        assert draft.wake_at == NOW + wake


def test_a_warning_about_idle_gpus_is_given_once_and_taken_back() -> None:
    holder = msgspec.structs.replace(HOLDER, gpu_devices=(0,))
    workload = builders.workload(phase=Phase.RUNNING, idle_limit=60_000)
    found = []
    for idle in (40_000, 50_000, 1000, 45_000):
        rules = builders.rules(idle_time=lambda ids, idle=idle: idle)
        draft = decide_pods(entry(workload, holder), (), NOW, rules)
        workload = draft.workload
        warned = [event.reason for event in draft.events if event.reason == "IdleGpus"]
        found.append((len(warned), [condition.type for condition in workload.conditions]))
    assert found == [(1, ["IdleGpus"]), (0, ["IdleGpus"]), (0, []), (1, ["IdleGpus"])]


def test_a_stopped_workload_has_no_warning_about_idle_gpus() -> None:
    holder = msgspec.structs.replace(HOLDER, gpu_devices=(0,))
    rules = builders.rules(idle_time=lambda ids: 40_000)
    workload = builders.workload(phase=Phase.RUNNING, idle_limit=60_000)
    warned = decide_pods(entry(workload, holder), (), NOW, rules).workload
    stopped = msgspec.structs.replace(warned, desired_phase=DesiredPhase.STOPPED)
    draft = decide_pods(entry(stopped, holder), (), NOW, rules)
    assert ([one.type for one in warned.conditions], draft.workload.conditions) == (["IdleGpus"], ())


def test_pods_without_gpus_are_never_idle() -> None:
    rules = builders.rules(idle_time=lambda ids: 0 if not ids else 60_000)
    holder = msgspec.structs.replace(HOLDER, gpu_devices=())
    draft = decide_pods(entry(builders.workload(phase=Phase.RUNNING, idle_limit=1000), holder), (), NOW, rules)
    assert draft.workload.desired_phase is DesiredPhase.RUNNING
