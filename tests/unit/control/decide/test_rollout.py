"""Revisions: when a change makes one, when it takes over, when it has failed, and what becomes of those before it."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from fairlead.control.decide.autoscale import NO_LOAD, Load
from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.decide.expand import podsets_of
from fairlead.control.decide.phases import PhaseInputs
from fairlead.control.decide.placement.missing_pods import count_missing_pods
from fairlead.engines.base import PodReport, PodState, Review, Stop
from fairlead.kinds import KINDS
from fairlead.model.pods.scaling import INITIALIZATION
from fairlead.model.records.phase import TERMINAL, Phase, PodPhase
from fairlead.model.records.revision import Revision, Stage
from fairlead.model.records.workload import Pod, Workload
from tests import builders
from tests.builders import decide_pods

NOW = 10_000_000
KIND = "inference-service"
ID = "11111111-1111-4111-8111-111111111111"


def rules(load: Load = NO_LOAD, refused: tuple[tuple[str, str], ...] = ()) -> PhaseInputs:
    return PhaseInputs(
        outcome=KINDS[KIND].outcome,
        review=lambda podset: Review(refused=refused),
        load=lambda workload_id: load,
    )


def spec(**members: Any) -> msgspec.Raw:
    given = {"image": "model", "command": "serve", "servingPort": {"container": 8000}}
    return msgspec.Raw(msgspec.json.encode(given | members))


def service(**members: Any) -> Workload:
    given = {"id": ID, "kind": KIND, "spec": spec(), "phase": Phase.PENDING, "urls": ("",)}
    return builders.workload("model", **(given | members))


def entry(workload: Workload, pods: Sequence[Pod] = ()) -> WorkloadEntry:
    return WorkloadEntry(workload=workload, pods=tuple(pods), podsets=podsets_of(workload), revises=True)


def after(draft: Draft) -> WorkloadEntry:
    """What the loop holds when the draft is recorded."""
    return entry(msgspec.structs.replace(draft.workload, version=2), draft.active_pods())


def pod(revision: Revision, index: int = 0, **members: Any) -> Pod:
    name = f"{revision.name}-{index}"
    role = f"predictor@{revision.number}"
    given = {"role": role, "revision_id": revision.id, "index": index, "workload_id": ID, "ready": True}
    return builders.pod(name, **(given | members))


def serving(**members: Any) -> tuple[WorkloadEntry, Revision]:
    """A service whose first revision serves with one pod."""
    first = decide_pods(entry(service(**members)), (), NOW, rules())
    [revision] = first.workload.revisions
    begun = msgspec.structs.replace(after(first), pods=tuple(pod(revision, i) for i in range(revision.replicas)))
    ready = decide_pods(begun, (), NOW, rules())
    [revision] = ready.workload.revisions
    assert (revision.stage, ready.workload.phase) == (Stage.SERVING, Phase.RUNNING)
    return after(ready), revision


def changed(held: WorkloadEntry, **members: Any) -> WorkloadEntry:
    """The service with another spec, as PATCH leaves it."""
    return entry(msgspec.structs.replace(held.workload, spec=spec(**members)), held.pods)


def stages(draft: Draft) -> list[tuple[int, Stage, Phase]]:
    return [(each.number, each.stage, each.phase) for each in draft.workload.revisions]


def test_the_first_revision_is_made_with_the_workload() -> None:
    draft = decide_pods(entry(service()), (), NOW, rules())
    [revision] = draft.workload.revisions
    assert (revision.number, revision.name, revision.stage, revision.replicas) == (1, "model-00001", Stage.STARTING, 1)
    assert list(draft.revisions.values()) == [revision]
    assert count_missing_pods(after(draft), NOW) == {("predictor@1", 0): 1}


def test_a_change_of_what_runs_makes_a_revision_beside_the_one_that_serves() -> None:
    held, _ = serving()
    draft = decide_pods(changed(held, command="other"), (), NOW, rules())
    assert stages(draft) == [(1, Stage.SERVING, Phase.RUNNING), (2, Stage.STARTING, Phase.PENDING)]
    assert draft.workload.phase is Phase.UPDATING
    assert count_missing_pods(after(draft), NOW) == {("predictor@2", 0): 1}
    assert builders.orders(draft) == []


def test_a_change_of_numbers_is_only_taken_over() -> None:
    held, _ = serving()
    draft = decide_pods(changed(held, autoscaling={"minReplicas": 3}), (), NOW, rules())
    [revision] = draft.workload.revisions
    assert (revision.number, revision.replicas, bytes(revision.spec)) == (1, 3, bytes(draft.workload.spec))
    assert count_missing_pods(after(draft), NOW) == {("predictor@1", 0): 2}


def test_a_change_of_node_pools_makes_a_revision() -> None:
    held, _ = serving()
    moved = msgspec.structs.replace(held.workload, spec=spec(nodePools=["fast"]), node_pools=("fast",))
    assert len(decide_pods(entry(moved, held.pods), (), NOW, rules()).workload.revisions) == 2


def updating() -> tuple[WorkloadEntry, Revision, Revision]:
    held, _ = serving(spec=spec(autoscaling={"minReplicas": 2}))
    draft = decide_pods(changed(held, command="other", autoscaling={"minReplicas": 2}), (), NOW, rules())
    first, second = draft.workload.revisions
    return after(draft), first, second


def test_it_takes_over_when_all_its_pods_are_ready_and_the_others_get_no_more_requests() -> None:
    held, first, second = updating()
    pods = [*held.pods, pod(second, 0), pod(second, 1, ready=False)]
    draft = decide_pods(entry(held.workload, pods), (), NOW, rules())
    assert stages(draft)[1][1] is Stage.STARTING
    ready = PodReport(pod_id=pods[-1].id, workload_id=ID, attempt=1, state=PodState.RUNNING, ready=True)
    draft = decide_pods(after(draft), [ready], NOW, rules())
    assert stages(draft) == [(1, Stage.DRAINING, Phase.STOPPED), (2, Stage.SERVING, Phase.RUNNING)]
    draining = [each for each in draft.active_pods() if each.revision_id == first.id]
    assert [(each.stopping_for, each.phase) for each in draining] == [("surplus", PodPhase.RUNNING)] * 2
    assert builders.orders(draft) == []
    assert draft.wake_at == NOW


def test_pods_that_leave_end_when_they_have_answered() -> None:
    held, first, second = updating()
    held = entry(held.workload, [*held.pods, pod(second, 0), pod(second, 1)])
    held = after(decide_pods(held, (), NOW, rules()))
    busy = next(each.id for each in held.pods if each.revision_id == first.id)
    draft = decide_pods(held, (), NOW, rules(Load(busy={busy: 1})))
    stopped = [order.pod_id for order in builders.orders(draft) if isinstance(order, Stop)]
    assert len(stopped) == 1
    assert busy not in stopped
    held = after(draft)
    assert builders.orders(decide_pods(held, (), NOW + 1000, rules(Load(busy={busy: 1})))) == []
    late = decide_pods(held, (), NOW + 300_000, rules(Load(busy={busy: 1})))
    assert [order.pod_id for order in builders.orders(late) if isinstance(order, Stop)] == [busy]
    answered = decide_pods(held, (), NOW + 1000, rules())
    assert [order.pod_id for order in builders.orders(answered) if isinstance(order, Stop)] == [busy]


def test_a_revision_without_pods_is_history() -> None:
    held, _, second = updating()
    held = entry(held.workload, [pod(second, 0), pod(second, 1)])
    draft = decide_pods(held, (), NOW, rules())
    assert stages(draft) == [(2, Stage.SERVING, Phase.RUNNING)]
    assert {each.number: each.phase for each in draft.revisions.values()} == {1: Phase.STOPPED, 2: Phase.RUNNING}


def test_what_is_not_ready_in_its_time_has_failed_and_the_one_before_serves_on() -> None:
    held, _, second = updating()
    held = entry(held.workload, [*held.pods, pod(second, 0, ready=False, message="exit code 1")])
    assert decide_pods(held, (), NOW, rules()).wake_at == NOW + 600_000
    draft = decide_pods(held, (), NOW + 600_000, rules())
    assert stages(draft) == [(1, Stage.SERVING, Phase.RUNNING), (2, Stage.DRAINING, Phase.FAILED)]
    assert draft.workload.phase is Phase.RUNNING
    [condition] = draft.workload.conditions
    assert (condition.type, condition.message) == (
        "RevisionFailed",
        "Revision 2 failed: 0 of 2 pods were ready after 600 s. Pod model-00002-0: exit code 1. "
        "Revision 1 keeps serving",
    )
    # It is not tried again by itself.
    again = decide_pods(after(draft), (), NOW + 700_000, rules())
    assert [each.number for each in again.workload.revisions] == [1, 2]


def test_what_the_engine_refuses_fails_before_it_starts() -> None:
    held, _ = serving()
    draft = decide_pods(changed(held, command="other"), (), NOW, rules(refused=(("image", "no such"),)))
    assert stages(draft)[1] == (2, Stage.DRAINING, Phase.FAILED)
    assert count_missing_pods(after(draft), NOW) == {}


def test_the_first_that_fails_is_the_end_of_the_workload() -> None:
    draft = decide_pods(entry(service()), (), NOW, rules())
    [revision] = draft.workload.revisions
    begun = decide_pods(entry(draft.workload, [pod(revision, ready=False)]), (), NOW, rules())
    failed = decide_pods(after(begun), (), NOW + 600_000, rules())
    assert failed.workload.phase is Phase.FAILED
    assert failed.workload.phase_message.startswith("Revision 1 failed: 0 of 1 pod were ready")


def test_waiting_for_a_place_does_not_count_against_the_first() -> None:
    draft = decide_pods(entry(service()), (), NOW, rules())
    waited = decide_pods(after(draft), (), NOW + 86_400_000, rules())
    assert waited.workload.phase is Phase.PENDING
    assert waited.workload.revisions[0].stage is Stage.STARTING


@pytest.mark.parametrize("phase", [Phase.STOPPED, Phase.PENDING], ids=["suspended", "taken away"])
def test_the_time_for_a_start_begins_anew_with_the_pods_after_a_pause(phase: Phase) -> None:
    first = decide_pods(entry(service()), (), NOW, rules())
    [revision] = first.workload.revisions
    starting = msgspec.structs.replace(after(first), pods=(pod(revision, ready=False),))
    begun = decide_pods(starting, (), NOW, rules())
    assert begun.workload.revisions[0].started_at == NOW
    later = NOW + 10 * INITIALIZATION
    paused = entry(msgspec.structs.replace(begun.workload, phase=phase))
    resumed = decide_pods(paused, (), later, rules())
    assert resumed.workload.phase not in TERMINAL
    again = msgspec.structs.replace(after(resumed), pods=(pod(revision, ready=False),))
    assert decide_pods(again, (), later + 1, rules()).workload.revisions[0].started_at == later + 1


def test_only_the_last_of_several_changes_counts() -> None:
    held, _, second = updating()
    held = entry(held.workload, [*held.pods, pod(second, 0, ready=False)])
    draft = decide_pods(changed(held, command="third"), (), NOW, rules())
    assert [(number, stage) for number, stage, _ in stages(draft)] == [
        (1, Stage.SERVING),
        (2, Stage.DRAINING),
        (3, Stage.STARTING),
    ]


def test_a_new_revision_begins_with_as_many_pods_as_serve() -> None:
    bounds = {"minReplicas": 1, "maxReplicas": 5, "metric": "concurrency", "metricThreshold": 1}
    held, first = serving(spec=spec(autoscaling=bounds))
    grown = msgspec.structs.replace(first, replicas=4)
    workload = msgspec.structs.replace(held.workload, revisions=(grown,))
    busy = Load(in_flight=9, counted_since=NOW)
    draft = decide_pods(changed(entry(workload, held.pods), command="other", autoscaling=bounds), (), NOW, rules(busy))
    assert draft.workload.revisions[1].replicas == 4


def test_load_is_followed_and_reported() -> None:
    bounds = {"minReplicas": 0, "maxReplicas": 1}
    held, _ = serving(spec=spec(autoscaling=bounds))
    idle = Load(counted_since=NOW - 60_000)
    asleep = decide_pods(held, (), NOW + 60_000, rules(idle))
    assert asleep.workload.revisions[0].replicas == 0
    assert asleep.workload.phase is Phase.RUNNING
    assert [event.message for event in asleep.events if event.reason == "Scaled"] == ["From 1 pod to 0: no requests"]
    awake = decide_pods(entry(asleep.workload), (), NOW + 61_000, rules(Load(in_flight=1)))
    assert awake.workload.revisions[0].replicas == 1
    assert awake.workload.phase is Phase.RUNNING
    assert count_missing_pods(after(awake), NOW) == {("predictor@1", 0): 1}


def test_a_pod_that_is_wanted_again_before_it_ended_stays() -> None:
    held, first = serving(spec=spec(autoscaling={"minReplicas": 2}))
    leaving = [held.pods[0], msgspec.structs.replace(held.pods[1], stopping_for="surplus", drain_until=NOW + 1)]
    draft = decide_pods(entry(held.workload, leaving), (), NOW, rules())
    assert [each.stopping_for for each in draft.active_pods()] == ["", ""]
    assert first.number == 1


def test_pods_from_before_there_were_revisions_belong_to_the_first() -> None:
    older = builders.pod("model-0-0", role="predictor", workload_id=ID, ready=True)
    workload = service(phase=Phase.RUNNING, started_at=1)
    draft = decide_pods(entry(workload, [older]), (), NOW, rules())
    [revision] = draft.workload.revisions
    assert [(each.role, each.revision_id) for each in draft.active_pods()] == [("predictor@1", revision.id)]
    assert revision.stage is Stage.SERVING
