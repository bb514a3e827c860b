"""Pods that leave with exit code 0 after they were told to stop: no success, whatever their Job counts."""

from typing import Any

import msgspec
import pytest

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.pods import render_pod
from fairlead.engines.kubernetes.observe.report import find_controller_ahead_of_pods, render_report
from fairlead.engines.kubernetes.observe.signalled_ends import SignalledSuccess, has_succeeded, signalled_success
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload
from fairlead.engines.kubernetes.plan.pod_group import decide_group
from fairlead.engines.kubernetes.plan.recreate import find_wrongly_ended_jobs
from fairlead.engines.kubernetes.render.context import LaunchChoices, RenderContext
from fairlead.engines.kubernetes.render.workload import render_objects
from fairlead.model.pods.podset import RestartScope
from fairlead.model.records.phase import Phase, PodPhase
from tests import builders

LABELS = {"fairlead/run": "1", "fairlead/role": "main", "batch.kubernetes.io/controller-uid": "job-1"}
EVICTION = {"type": "DisruptionTarget", "status": "True", "reason": "EvictedByScheduler"}


def pod(
    *, ended: str = "00:00:30", deleted: str = "", evicted: str = "", grace: int = 30, phase: str = "Succeeded"
) -> objects.Pod:
    """Deleted at, evicted at: when it was asked for."""
    metadata: dict[str, Any] = {"name": "p", "uid": "p", "labels": LABELS}
    if deleted:
        minutes, seconds = divmod(int(deleted[-2:]) + grace, 60)
        metadata |= {
            "deletionTimestamp": f"2026-01-01T00:{minutes:02}:{seconds:02}Z",
            "deletionGracePeriodSeconds": grace,
        }
    end = {"terminated": {"exitCode": 0, "finishedAt": f"2026-01-01T{ended}Z"}} if phase == "Succeeded" else {}
    status = {
        "phase": phase,
        "containerStatuses": [{"name": "main", "state": end}],
        "conditions": [{**EVICTION, "lastTransitionTime": f"2026-01-01T{evicted}Z"}] if evicted else [],
    }
    spec = {"nodeName": "n", "restartPolicy": "Never"}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, objects.Pod)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param(pod(), True, id="ended-alone"),
        pytest.param(pod(deleted="00:00:20"), False, id="deleted-before-its-end"),
        pytest.param(pod(deleted="00:00:30"), False, id="in-the-same-second"),
        pytest.param(pod(deleted="00:00:40"), True, id="deleted-afterwards"),
        pytest.param(pod(evicted="00:00:20"), False, id="evicted-before-its-end"),
        pytest.param(pod(evicted="00:00:40", deleted="00:00:41"), True, id="ended-just-before-its-eviction"),
        pytest.param(pod(evicted="00:00:20", deleted="00:00:40"), False, id="killed-sooner-by-a-second-request"),
    ],
)
def test_whether_a_pod_succeeded(given: objects.Pod, want: bool) -> None:
    assert has_succeeded(given) is want
    assert render_pod(given).phase is (PodPhase.SUCCEEDED if want else PodPhase.STOPPED)
    assert signalled_success(given) == (None if want else SignalledSuccess("main", "job-1", 0))


def job(succeeded: int, before: int = 0, *, is_complete: bool = True) -> objects.Runner:
    annotations = {"fairlead/succeeded": str(before)} if before else {}
    conditions = (objects.Condition(type="Complete", status="True"),) if is_complete else ()
    return objects.Runner(
        metadata=objects.Metadata(name="j", uid="job-1", labels=LABELS, annotations=annotations),
        status=objects.RunnerStatus(succeeded=succeeded, conditions=conditions),
    )


SIGNALLED = SignalledSuccess("main", "job-1", 0)
OF_ANOTHER = SignalledSuccess("main", "job-0", 0)


@pytest.mark.parametrize(
    ("runner", "signalled", "want_end", "want_succeeded", "want_again"),
    [
        pytest.param(job(1), (), Phase.COMPLETED, 1, None, id="completed"),
        pytest.param(job(1), (SIGNALLED,), None, 0, 0, id="counts-what-was-stopped"),
        pytest.param(job(1), (OF_ANOTHER,), Phase.COMPLETED, 1, None, id="completed-the-second-time"),
        pytest.param(job(5), (SIGNALLED,), None, 4, 4, id="one-of-five"),
        pytest.param(job(1, 4), (OF_ANOTHER,), Phase.COMPLETED, 5, None, id="the-last-of-five"),
        pytest.param(job(1, 4), (OF_ANOTHER, SIGNALLED), None, 4, 4, id="stopped-twice"),
        pytest.param(job(2, is_complete=False), (SIGNALLED,), None, 1, None, id="others-still-run"),
    ],
)
def test_a_job_that_counts_a_stopped_pod_is_created_again(
    runner: objects.Runner,
    signalled: tuple[SignalledSuccess, ...],
    want_end: Phase | None,
    want_succeeded: int,
    want_again: int | None,
) -> None:
    seen = ObservedWorkload(runners=(runner,), signalled=signalled)
    report = render_report("w", seen)
    assert report.ended is want_end
    assert report.succeeded == ({"main": want_succeeded} if want_succeeded else {})
    assert [wrong.succeeded for wrong in find_wrongly_ended_jobs((), seen)] == (
        [] if want_again is None else [want_again]
    )


def test_the_next_job_asks_for_what_is_left() -> None:
    podset = builders.podset(completions=5, count=2)
    context = RenderContext(name="j", namespace="n", project="p", queue="q", priority_class="low", is_preemptible=True)
    [first] = render_objects(context, (podset,)).runners
    [again] = render_objects(msgspec.structs.replace(context, launch=LaunchChoices(succeeded=4)), (podset,)).runners
    assert (first["spec"]["completions"], again["spec"]["completions"]) == (5, 1)
    assert again["metadata"]["annotations"]["fairlead/succeeded"] == "4"


def test_an_end_waits_for_pods_that_the_watch_still_shows_running() -> None:
    running = pod(phase="Running", deleted="00:00:20")
    seen = ObservedWorkload(runners=(job(1),), pods=(running,))
    assert find_controller_ahead_of_pods(seen, ()) is not None
    assert render_report("w", seen).ended is None
    settled = msgspec.structs.replace(seen, settled=frozenset({"job-1"}))
    assert render_report("w", settled).ended is Phase.COMPLETED


def test_a_member_of_a_group_that_was_stopped_is_created_again() -> None:
    podset = builders.podset(role="main", gang=True, completions=1, restart_scope=RestartScope.GROUP)
    stopped, succeeded = pod(evicted="00:00:20"), pod()
    assert decide_group((podset,), [succeeded], 0).delete == ()
    plan = decide_group((podset,), [stopped], 0)
    assert plan.delete == (stopped,)
    assert not plan.counts_failure
