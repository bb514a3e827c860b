"""Pods that were taken away, by the scheduler or with their node: what is said of them, and that they did not fail."""

from typing import Any

import msgspec
import pytest

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.disruptions import find_disruption, job_that_counts
from fairlead.engines.kubernetes.observe.pod_group import has_failed
from fairlead.engines.kubernetes.observe.pods import render_pod
from fairlead.engines.kubernetes.observe.report import find_controller_ahead_of_pods, render_report
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload
from fairlead.engines.kubernetes.plan.recreate import find_wrongly_ended_jobs
from fairlead.engines.kubernetes.render.context import LaunchChoices
from fairlead.engines.kubernetes.render.workload import render_objects
from fairlead.model.pods.podset import RestartPolicy
from fairlead.model.records.phase import Phase
from tests import builders
from tests.unit.engines.golden_place import GOLDEN_PLACE

LABELS = {"fairlead/run": "1", "fairlead/role": "main", "batch.kubernetes.io/controller-uid": "job-1"}
PODSETS = (builders.podset(backoff_limit=1, restart=RestartPolicy.ON_FAILURE),)


def pod(disruption: str = "", message: str = "", *, policy: str = "OnFailure", **status: Any) -> objects.Pod:
    told = {"type": "DisruptionTarget", "status": "True", "reason": disruption, "message": message}
    status = {"phase": "Failed", "conditions": [told] if disruption else [], **status}
    spec = {"nodeName": "spot-1", "restartPolicy": policy}
    return msgspec.convert({"metadata": {"name": "p", "labels": LABELS}, "spec": spec, "status": status}, objects.Pod)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param(pod(), None, id="failed by itself"),
        pytest.param(pod(reason="Evicted"), None, id="failed for another reason"),
        pytest.param(pod("PreemptionByScheduler", "made room"), ("made room", False), id="preempted"),
        pytest.param(
            pod("DeletionByPodGC", "PodGC: node no longer exists"),
            ("Node spot-1 no longer exists (PodGC: node no longer exists)", True),
            id="its node was deleted",
        ),
        pytest.param(
            pod("DeletionByTaintManager"),
            ("Node spot-1 is unreachable or being removed: its taints evict pods", True),
            id="its node is tainted",
        ),
        pytest.param(pod("EvictionByEvictionAPI"), ("Evicted from node spot-1, as by a drain", True), id="drained"),
        pytest.param(
            pod("TerminationByKubelet", "imminent node shutdown"),
            ("Node spot-1 ended the pod (imminent node shutdown)", True),
            id="its node shuts down",
        ),
        pytest.param(
            pod(reason="NodeShutdown", message="Pod was rejected"),
            ("Node spot-1 is shutting down: NodeShutdown", True),
            id="rejected by a node that shuts down",
        ),
        pytest.param(pod(reason="NodeShutdown", phase="Running"), None, id="not over yet"),
    ],
)
def test_what_is_said(given: objects.Pod, want: tuple[str, bool] | None) -> None:
    found = find_disruption(given)
    assert (None if found is None else (found.message, found.is_of_node)) == want
    rendered = render_pod(given)
    assert (rendered.eviction, rendered.has_lost_node) == (want or ("", False))
    assert has_failed(given) is (want is None and given.status.phase == "Failed")


DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param(pod("DeletionByPodGC"), "job-1", id="a pod that may restart"),
        pytest.param(pod("DeletionByPodGC", policy="Never"), "", id="the Job ignores it"),
        pytest.param(pod(reason="NodeShutdown", policy="Never"), "job-1", id="the Job cannot ignore it"),
        pytest.param(pod(), "", id="failed by itself"),
        pytest.param(pod("DeletionByTaintManager", phase="Running"), "", id="it still runs"),
        pytest.param(pod("DeletionByTaintManager", phase="Succeeded"), "", id="it succeeded"),
    ],
)
def test_which_losses_a_job_counts(given: objects.Pod, want: str) -> None:
    assert job_that_counts(given) == want


def test_a_job_counts_a_loss_as_soon_as_the_pod_terminates() -> None:
    ending = msgspec.structs.replace(
        pod("DeletionByTaintManager", phase="Running"),
        metadata=msgspec.convert({"name": "p", "labels": LABELS, **DELETED}, objects.Metadata),
    )
    assert job_that_counts(ending) == "job-1"


def job(*, failed: int, before: int = 0, reason: str = "BackoffLimitExceeded") -> objects.Runner:
    noted = {"annotations": {"fairlead/failures": str(before)}} if before else {}
    over = [{"type": "Failed", "status": "True", "reason": reason}] if reason else []
    body = {
        "metadata": {"name": "j", "uid": "job-1", "labels": LABELS, **noted},
        "status": {"failed": failed, "conditions": over},
    }
    return msgspec.convert(body, objects.Runner)


@pytest.mark.parametrize(
    ("runner", "lost", "want"),
    [
        pytest.param(job(failed=2), 0, (Phase.FAILED, 2, None), id="failed by itself"),
        pytest.param(job(failed=2), 1, (None, 1, 1), id="one loss among the failures"),
        pytest.param(job(failed=2), 2, (None, 0, 0), id="only losses"),
        pytest.param(job(failed=3), 1, (Phase.FAILED, 2, None), id="too many failures beside a loss"),
        pytest.param(job(failed=2, before=1), 1, (Phase.FAILED, 2, None), id="with failures of an earlier Job"),
        pytest.param(job(failed=1, before=1), 1, (None, 1, 1), id="an earlier Job's failure and a loss"),
        pytest.param(job(failed=1, reason="DeadlineExceeded"), 1, (Phase.FAILED, 0, None), id="failed otherwise"),
        pytest.param(job(failed=1, reason=""), 1, (None, 0, None), id="goes on by itself"),
    ],
)
def test_a_job_that_failed_because_of_losses_starts_again(
    runner: objects.Runner, lost: int, want: tuple[Phase | None, int, int | None]
) -> None:
    seen = ObservedWorkload(runners=(runner,), lost=("job-1",) * lost, settled=frozenset({"job-1"}))
    report, again = render_report("w", seen, PODSETS), find_wrongly_ended_jobs(PODSETS, seen)
    found = report.ended, report.failed.get("main", 0), again[0].failures if again else None
    assert found == want


def test_an_end_waits_for_the_watch_on_pods() -> None:
    """The pods that were lost may not be seen yet."""
    seen = ObservedWorkload(runners=(job(failed=2),))
    assert find_controller_ahead_of_pods(seen, PODSETS) is not None
    assert render_report("w", seen, PODSETS).ended is None


def test_the_next_job_has_the_failures_that_are_left() -> None:
    context = msgspec.structs.replace(GOLDEN_PLACE, launch=LaunchChoices(failures=1))
    [made] = render_objects(context, (builders.podset(backoff_limit=3),)).runners
    assert made["spec"]["backoffLimit"] == 2
    assert made["metadata"]["annotations"]["fairlead/failures"] == "1"
