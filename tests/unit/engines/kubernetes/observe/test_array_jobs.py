"""Jobs of an array that ended too early: the next one runs the tasks that are left, and no other."""

from typing import Any

import msgspec
import pytest

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.operator_jobs import launch_choices_of
from fairlead.engines.kubernetes.observe.report import render_report
from fairlead.engines.kubernetes.observe.signalled_ends import SignalledSuccess, count_signalled, signalled_success
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload
from fairlead.engines.kubernetes.plan.recreate import find_wrongly_ended_jobs
from fairlead.engines.kubernetes.render.context import LaunchChoices
from fairlead.engines.kubernetes.render.runners import tasks_of
from fairlead.engines.kubernetes.render.workload import render_objects
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.phase import Phase
from tests.builders import array_podset
from tests.unit.engines.golden_place import GOLDEN_PLACE

COMPLETE = {"type": "Complete", "status": "True"}
EXCEEDED = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}


def job(podset: PodSet, launch: LaunchChoices, completed: str, number: int, end: dict[str, str]) -> objects.Runner:
    """The Job that is rendered with these choices, as the cluster has it after its end."""
    [body] = render_objects(msgspec.structs.replace(GOLDEN_PLACE, launch=launch), (podset,)).runners
    body["metadata"]["uid"] = "job-1"
    status = {"succeeded": number, "completedIndexes": completed, "conditions": [end]}
    return msgspec.convert({"metadata": body["metadata"], "status": status}, objects.Runner)


def stopped(*indices: int, uid: str = "job-1") -> tuple[SignalledSuccess, ...]:
    return tuple(SignalledSuccess("main", uid, 0, index) for index in indices)


@pytest.mark.parametrize(
    ("launch", "completed", "signalled", "want_done", "want_left"),
    [
        pytest.param(LaunchChoices(), ("0-5", 6), stopped(1, 4), "0,2-3,5", (1, 4), id="two were stopped"),
        pytest.param(
            LaunchChoices(succeeded=3, tasks_done="0,2-3"),
            ("0-2", 3),
            stopped(1),
            "0-3,5",
            (4,),
            id="stopped in the second Job",
        ),
        pytest.param(LaunchChoices(), ("0-5", 6), stopped(3, 3), "0-2,4-5", (3,), id="one index was stopped twice"),
    ],
)
def test_stopped_tasks_run_again(
    launch: LaunchChoices,
    completed: tuple[str, int],
    signalled: tuple[SignalledSuccess, ...],
    want_done: str,
    want_left: tuple[int, ...],
) -> None:
    podset = array_podset("10-15", 6)
    seen = ObservedWorkload(runners=(job(podset, launch, *completed, COMPLETE),), signalled=signalled)
    report = render_report("w", seen, (podset,))
    assert report.ended is None
    assert report.succeeded == {"main": 6 - len(want_left)}
    [wrong] = find_wrongly_ended_jobs((podset,), seen)
    again = wrong.next_launch(launch)
    assert (again.tasks_done, again.succeeded) == (want_done, 6 - len(want_left))
    assert tasks_of(podset, again.tasks_done) == want_left


def test_tasks_that_are_done_stay_done_when_a_node_was_lost() -> None:
    podset = array_podset("0-5", 6)
    failed = job(podset, LaunchChoices(), "0,3", 2, EXCEEDED)
    seen = ObservedWorkload(runners=(failed,), lost=("job-1",) * 7)
    [wrong] = find_wrongly_ended_jobs((podset,), seen)
    assert tasks_of(podset, wrong.next_launch(LaunchChoices()).tasks_done) == (1, 2, 4, 5)


def test_without_a_command_the_tasks_that_are_left_run_one_by_one() -> None:
    podset, launch, ran = array_podset("0-5", 6, ()), LaunchChoices(succeeded=3, tasks_done="0,2-3"), []
    for _ in range(3):
        [task] = tasks_of(podset, launch.tasks_done)
        ran.append(task)
        seen = ObservedWorkload(runners=(job(podset, launch, "0", 1, COMPLETE),))
        report = render_report("w", seen, (podset,))
        assert report.succeeded == {"main": 3 + len(ran)}
        assert report.ended is (Phase.COMPLETED if len(ran) == 3 else None)
        for wrong in find_wrongly_ended_jobs((podset,), seen):
            launch = wrong.next_launch(launch)
    assert ran == [1, 4, 5]
    assert find_wrongly_ended_jobs((podset,), seen) == []


def test_the_launch_choices_of_a_job_are_found_on_it() -> None:
    launch = LaunchChoices(succeeded=3, tasks_done="0,2-3")
    choices = launch_choices_of(job(array_podset("1-6", 6), launch, "", 0, COMPLETE).metadata)
    assert (choices.succeeded, choices.tasks_done) == (3, "0,2-3")


def test_a_stopped_pod_names_its_index() -> None:
    metadata: dict[str, Any] = {
        "labels": {"fairlead/role": "main", "batch.kubernetes.io/controller-uid": "job-1"},
        "annotations": {"batch.kubernetes.io/job-completion-index": "4"},
    }
    status = {"phase": "Succeeded", "conditions": [{"type": "DisruptionTarget", "status": "True"}]}
    pod = msgspec.convert({"metadata": metadata, "status": status}, objects.Pod)
    assert (signalled_success(pod),) == stopped(4)


def test_an_index_counts_once() -> None:
    runner = objects.Runner(metadata=objects.Metadata(uid="job-1"))
    plain = SignalledSuccess("main", "job-1", 0)
    assert count_signalled((*stopped(0, 0, 2), *stopped(1, uid="job-0")), runner) == 2
    assert count_signalled((plain, plain), runner) == 2
