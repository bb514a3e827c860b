"""Groups of pods: gangs of several sets, places that are taken over, what restarts with what, and what starts first."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.decide.phases import PhaseInputs
from fairlead.control.decide.placement.missing_pods import count_missing_pods
from fairlead.control.decide.placement.placements import free_index, place
from fairlead.control.decide.placement.snapshot import render_jobs
from fairlead.control.decide.pods.specs import pod_name, render_pod
from fairlead.engines.base import PodReport, PodState, Review, Start, Stop
from fairlead.kinds.kind import Outcome, SetState
from fairlead.model.pods.container_fields import NamedValue
from fairlead.model.pods.podset import PodSet, RestartPolicy, RestartScope
from fairlead.model.records.phase import Phase, PodPhase
from fairlead.model.records.workload import GroupTally, Pod, Tally, Workload
from fairlead.scheduling.model.decisions import Bind
from tests import builders
from tests.builders import decide_pods

NOW = 10_000_000
MINUTES = 60_000


def outcome(states: Sequence[SetState]) -> Outcome | None:
    return Outcome(Phase.RUNNING) if any(state.running for state in states) else None


RULES = PhaseInputs(
    outcome=outcome,
    review=lambda podset: Review(),
)


def leader(**members: Any) -> PodSet:
    return grouped(role="leader", is_placed_first=True, naming="{workload}-{group}", **members)


def worker(**members: Any) -> PodSet:
    return grouped(**({"role": "worker", "count": 2, "offset": 1, "naming": "{workload}-{group}-{ordinal}"} | members))


def grouped(**members: Any) -> PodSet:
    given: dict[str, Any] = {
        "groups": 2,
        "gang": "group",
        "completions": None,
        "has_fixed_indices": True,
        "restart_scope": RestartScope.GROUP,
    }
    return builders.podset(**(given | members))


def running(**members: Any) -> Workload:
    return builders.workload(phase=Phase.RUNNING, started_at=1, **members)


def member(role: str, group: int, index: int = 0, **members: Any) -> Pod:
    given = {"role": role, "group": group, "index": index, "started_at": NOW - MINUTES, "ready": True}
    return builders.pod(f"{role}-{group}-{index}", **(given | members))


def whole(group: int, **members: Any) -> list[Pod]:
    return [member("leader", group, **members), *(member("worker", group, index, **members) for index in (0, 1))]


def entry(workload: Workload, pods: Sequence[Pod] = (), podsets: Sequence[PodSet] = ()) -> WorkloadEntry:
    return WorkloadEntry(workload=workload, pods=tuple(pods), podsets=tuple(podsets) or (leader(), worker()))


def ended(pod: Pod, code: int = 1, **members: Any) -> PodReport:
    return PodReport(
        pod_id=pod.id, workload_id=pod.workload_id, attempt=1, state=PodState.EXITED, exit_code=code, **members
    )


def test_each_group_is_a_job_with_a_minimum_for_each_set() -> None:
    jobs = render_jobs(entry(running(), whole(0)), "runai-default", NOW)
    assert [job.id for job in jobs] == ["id-train/group/0", "id-train/group/1"]
    assert [[(each.name, each.min_available) for each in job.pod_sets] for job in jobs] == [
        [("leader", 1), ("worker", 2)],
        [("leader", 1), ("worker", 2)],
    ]
    assert {task.status for task in jobs[0].tasks} == {"Running"}
    assert [task.id for task in jobs[1].tasks] == [
        "id-train/leader/1/0",
        "id-train/worker/1/0",
        "id-train/worker/1/1",
    ]
    assert [task.leader for task in jobs[1].tasks] == [True, False, False]


def test_an_elastic_set_needs_only_its_minimum() -> None:
    podsets = (leader(groups=1), worker(groups=1, count=4, minimum=2))
    [job] = render_jobs(entry(running(), (), podsets), "", NOW)
    assert {each.name: each.min_available for each in job.pod_sets} == {"leader": 1, "worker": 2}
    assert len(job.tasks) == 5


def test_pods_without_gang_are_jobs_of_their_own() -> None:
    lone = builders.podset(count=2, completions=None)
    jobs = render_jobs(entry(running(), (), [lone]), "", NOW)
    assert [job.id for job in jobs] == ["id-train/main/0/0", "id-train/main/0/1"]
    assert all(not job.pod_sets for job in jobs)


def test_what_starts_after_another_is_shown_to_the_scheduler_but_not_wanted() -> None:
    podsets = (leader(groups=1), worker(groups=1, starts_after="leader"))
    fresh = entry(running(), (), podsets)
    assert count_missing_pods(fresh, NOW) == {("leader", 0): 1}
    [job] = render_jobs(fresh, "", NOW)
    assert [task.id.rsplit("/", 1)[1] for task in job.tasks] == ["0", "held0", "held1"]
    started = entry(running(), [member("leader", 0, ready=False)], podsets)
    assert count_missing_pods(started, NOW) == {}
    [job] = render_jobs(started, "", NOW)
    assert [each.name for each in job.pod_sets] == ["leader"]
    assert count_missing_pods(entry(running(), [member("leader", 0)], podsets), NOW) == {("worker", 0): 2}


@pytest.mark.parametrize("code", [1, 0], ids=["fails", "ends well"])
def test_the_end_of_a_pod_ends_its_group_and_no_other(code: int) -> None:
    pods = whole(0) + whole(1)
    draft = decide_pods(entry(running(), pods), [ended(pods[1], code)], NOW, RULES)
    assert {order.pod_id for order in builders.orders(draft) if isinstance(order, Stop)} == {pods[0].id, pods[2].id}
    assert draft.workload.groups == {0: GroupTally(recreated=1, retry_at=NOW)}
    after = entry(draft.workload, draft.active_pods())
    assert count_missing_pods(after, NOW) == {}, "not while the old group still ends"
    gone = [pod for pod in draft.active_pods() if pod.group == 1]
    assert count_missing_pods(entry(draft.workload, gone), NOW) == {("leader", 0): 1, ("worker", 0): 2}


@pytest.mark.parametrize(
    ("before", "ran", "want_wait", "want_count"),
    [
        pytest.param(0, 1000, 0, 1, id="the first at once"),
        pytest.param(1, 1000, 1000, 2, id="the second waits"),
        pytest.param(2, 1000, 2000, 3, id="longer and longer"),
        pytest.param(30, 1000, 5 * MINUTES, 31, id="up to five minutes"),
        pytest.param(30, 10 * MINUTES, 0, 1, id="at once again after ten minutes of health"),
    ],
)
def test_a_group_is_made_again_with_a_growing_delay(before: int, ran: int, want_wait: int, want_count: int) -> None:
    pods = whole(0, started_at=NOW - ran)
    workload = running(groups={0: GroupTally(recreated=before)})
    draft = decide_pods(entry(workload, pods), [ended(pods[0])], NOW, RULES)
    assert draft.workload.groups[0] == GroupTally(recreated=want_count, retry_at=NOW + want_wait)
    if want_wait:
        assert draft.wake_at == NOW + want_wait
        assert count_missing_pods(entry(draft.workload), NOW + want_wait - 1) == {("leader", 1): 1, ("worker", 1): 2}


def test_a_lost_pod_of_a_group_takes_the_others_with_it() -> None:
    pods = whole(0)
    lost = PodReport(pod_id=pods[2].id, workload_id="id-train", attempt=1, state=PodState.LOST)
    draft = decide_pods(entry(running(), pods), [lost], NOW, RULES)
    assert {pod.phase for pod in draft.pods.values()} == {PodPhase.STOPPING, PodPhase.STOPPED}


def test_with_scope_pod_the_container_restarts_in_place() -> None:
    podsets = (
        leader(restart=RestartPolicy.ALWAYS, restart_scope=RestartScope.POD),
        worker(restart=RestartPolicy.ALWAYS, restart_scope=RestartScope.POD),
    )
    pods = whole(0)
    draft = decide_pods(entry(running(), pods, podsets), [ended(pods[1])], NOW, RULES)
    assert not [order for order in builders.orders(draft) if isinstance(order, Stop)]
    assert draft.pods[pods[1].id].attempt == 2
    assert draft.workload.groups == {}


def test_a_counted_group_starts_from_nothing_and_counts_one_failure() -> None:
    podsets = (
        leader(groups=1, completions=1),
        worker(groups=1, completions=2),
    )
    pods = [member("leader", 0), member("worker", 0, 1)]
    workload = running(tallies={"worker": Tally(succeeded=1, made=2, done=(0,))})
    draft = decide_pods(entry(workload, pods, podsets), [ended(pods[0])], NOW, RULES)
    assert draft.workload.tally("leader").failed == 1
    assert draft.workload.tally("worker") == Tally(made=2)
    assert count_missing_pods(entry(draft.workload, (), podsets), NOW) == {("leader", 0): 1, ("worker", 0): 2}


def test_fewer_groups_end_the_highest_and_forget_their_counts() -> None:
    podsets = (leader(groups=1), worker(groups=1))
    workload = running(groups={0: GroupTally(recreated=1), 1: GroupTally(recreated=2)})
    draft = decide_pods(entry(workload, whole(0) + whole(1), podsets), (), NOW, RULES)
    assert {pod.group for pod in draft.pods.values() if pod.stopping_for == "surplus"} == {1}
    assert draft.workload.groups == {0: GroupTally(recreated=1)}


def test_no_groups_want_nothing() -> None:
    podsets = (leader(groups=0), worker(groups=0))
    assert count_missing_pods(entry(running(), (), podsets), NOW) == {}
    draft = decide_pods(entry(running(), whole(0), podsets), (), NOW, RULES)
    assert all(pod.stopping_for == "surplus" for pod in draft.pods.values())


def bind() -> Bind:
    return Bind(task="", job="", node="node-a", node_pool="default")


def test_a_replacement_takes_the_place_and_the_name_of_the_old_one() -> None:
    podsets = (leader(groups=2), worker(groups=2, completions=None))
    pods = [member("worker", 1, 1)]
    draft = Draft(entry(running(tallies={"worker": Tally(made=9)}), pods, podsets), NOW)
    assert free_index(draft, podsets[1], 1) == 0
    place(draft, podsets[1], 1, "new", bind(), None)
    assert (draft.pods["new"].index, draft.pods["new"].group, draft.pods["new"].name) == (0, 1, "train-1-1")
    assert draft.workload.tally("worker").made == 10
    assert isinstance(builders.orders(draft)[0], Start)


def test_a_pod_that_ended_is_marked_as_replaced_when_a_new_one_has_its_name() -> None:
    podsets = (leader(groups=1, count=1),)
    old = builders.pod("train-0", role="leader", index=0)
    workload = running(tallies={"leader": Tally(made=1)})
    draft = decide_pods(entry(workload, [old], podsets), [ended(old)], NOW, RULES)
    assert draft.names_used_again() == []
    place(draft, podsets[0], 0, "new", bind(), None)
    by_id = {pod.id: pod for pod in draft.changed_pods()}
    assert (by_id[old.id].is_replaced, by_id[old.id].phase) == (True, PodPhase.FAILED)
    assert (by_id["new"].is_replaced, by_id["new"].name) == (False, "train-0")


def test_a_pod_that_ended_earlier_is_looked_up_by_the_name_that_is_used_again() -> None:
    podsets = (leader(groups=1, count=1), worker(groups=1))
    first = Draft(entry(running(), (), podsets), NOW)
    place(first, podsets[0], 0, "first", bind(), None)
    assert first.names_used_again() == [], "nothing can have had the name of the first pod"
    draft = Draft(entry(running(tallies={"leader": Tally(made=1)}), (), podsets), NOW)
    place(draft, podsets[0], 0, "new", bind(), None)
    assert draft.names_used_again() == ["train-0"]
    draft.replaced = [builders.pod("train-0", role="leader", index=0, phase=PodPhase.FAILED, version=4)]
    [old] = [pod for pod in draft.changed_pods() if pod.id != "new"]
    assert (old.version, old.is_replaced, old.phase) == (5, True, PodPhase.FAILED)


def test_a_place_whose_pod_ended_well_is_not_given_again() -> None:
    podset = worker(groups=1, count=3, completions=3)
    draft = Draft(entry(running(tallies={"worker": Tally(succeeded=1, done=(0,))}), (), [podset]), NOW)
    assert free_index(draft, podset, 0) == 1


def test_names_variables_and_labels_are_filled_in() -> None:
    podset = worker(
        variables={"RANK": "{ordinal}", "LEADER": "{host:{workload}-{group}}", "JSON": '{"a":{"b":{index}}}'},
        labels={"group": "{group}"},
        addressed=True,
    )
    workload = running(run=3)
    assert pod_name(workload, podset, 1, 0) == "train-1-1"
    assert pod_name(workload, builders.podset(), 0, 4) == "train-2-4"
    made = render_pod(workload, member("worker", 1, 1), podset, None)
    assert made.variables == {"RANK": "2", "LEADER": "{host:train-1}", "JSON": '{"a":{"b":1}}'}
    assert made.container.fields.labels == (NamedValue(name="group", value="1"),)
    assert (made.addressed, made.group) == (True, 1)


def test_pods_that_outlive_the_workload_are_left_alone() -> None:
    podsets = [builders.podset(role="leader"), builders.podset(role="worker", keeps_running=True)]
    pods = [member("leader", 0), member("worker", 0)]
    finished = builders.workload(phase=Phase.COMPLETED)
    draft = decide_pods(entry(finished, pods, podsets), (), NOW, RULES)
    assert [order.pod_id for order in builders.orders(draft) if isinstance(order, Stop)] == [pods[0].id]


def test_states_distinguish_the_groups() -> None:
    seen: list[SetState] = []
    rules = msgspec.structs.replace(RULES, outcome=lambda states: seen.extend(states))
    pods = [*whole(0), member("leader", 1, phase=PodPhase.STARTING, ready=False)]
    decide_pods(entry(running(), pods), (), NOW, rules)
    assert [(group.starting, group.running, group.ready) for group in seen[0].groups] == [(0, 1, 1), (1, 0, 0)]
    assert [(group.starting, group.running, group.ready) for group in seen[1].groups] == [(0, 2, 2), (0, 0, 0)]
