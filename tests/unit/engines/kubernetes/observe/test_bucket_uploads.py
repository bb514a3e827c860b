"""Pods whose buckets did not get their changes back have failed, whatever Kubernetes says of them."""

from typing import Any

import msgspec
import pytest

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.bucket_uploads import with_upload_result
from fairlead.engines.kubernetes.observe.pods import render_pod
from fairlead.engines.kubernetes.observe.report import render_report
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload
from fairlead.model.pods.podset import PodContainer, PodSet
from fairlead.model.records.phase import Phase, PodPhase
from tests import builders

LABELS = {"fairlead/workload-id": "w", "fairlead/run": "1", "fairlead/role": "main"}
WELL = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": "2026-01-01T00:00:09Z"}}
BADLY = {"terminated": {"exitCode": 3, "reason": "Error"}}
REFUSED = {"terminated": {"exitCode": 1, "reason": "Error", "message": "AccessDenied: read only\n"}}
KILLED = {"terminated": {"exitCode": 137, "reason": "Error"}}


def pod(phase: str, main: dict[str, Any], *returns: dict[str, Any]) -> objects.Pod:
    beside = [{"name": f"s3-{number}-back", "state": state} for number, state in enumerate(returns)]
    filled = [{"name": f"s3-{number}-in", "state": WELL} for number, _ in enumerate(returns)]
    status = {
        "phase": phase,
        "initContainerStatuses": [*filled, *beside],
        "containerStatuses": [{"name": "main", "state": main}],
    }
    metadata = {"name": "p", "uid": "u", "labels": LABELS}
    return with_upload_result(
        msgspec.convert({"metadata": metadata, "spec": {"nodeName": "n"}, "status": status}, objects.Pod)
    )


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param(pod("Succeeded", WELL, WELL), (PodPhase.SUCCEEDED, 0, ""), id="all is back"),
        pytest.param(
            pod("Succeeded", WELL, WELL, REFUSED),
            (PodPhase.FAILED, 1, "storage.s3[1]: AccessDenied: read only"),
            id="refused by the service",
        ),
        pytest.param(
            pod("Succeeded", WELL, KILLED),
            (PodPhase.FAILED, 1, "storage.s3[0]: changes could not be uploaded within the grace period"),
            id="took too long",
        ),
        pytest.param(
            pod("Failed", BADLY, REFUSED),
            (PodPhase.FAILED, 3, "exit code 3; storage.s3[0]: AccessDenied: read only"),
            id="failed by itself as well",
        ),
        pytest.param(pod("Running", {"running": {}}, {"running": {}}), (PodPhase.RUNNING, None, ""), id="runs"),
    ],
)
def test_pods(given: objects.Pod, want: tuple[PodPhase, int | None, str]) -> None:
    seen = render_pod(given)
    assert (seen.phase, seen.exit_code, seen.message) == want


def job(**status: Any) -> objects.Runner:
    complete = [{"type": "Complete", "status": "True"}]
    metadata = {"name": "w", "uid": "j", "labels": LABELS}
    return msgspec.convert({"metadata": metadata, "status": {"conditions": complete, **status}}, objects.Runner)


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        pytest.param((pod("Succeeded", WELL, WELL),) * 2, (Phase.COMPLETED, {"main": 2}, {}), id="all is back"),
        pytest.param(
            (pod("Succeeded", WELL, WELL), pod("Succeeded", WELL, REFUSED)),
            (Phase.FAILED, {"main": 1}, {"main": 1}),
            id="one could not write back",
        ),
        pytest.param(
            (pod("Succeeded", WELL, WELL), pod("Running", WELL, {"running": {}})),
            (None, {"main": 2}, {}),
            id="the Job's end is seen before its pod's",
        ),
    ],
)
def test_jobs(pods: tuple[objects.Pod, ...], want: tuple[Phase | None, dict[str, int], dict[str, int]]) -> None:
    report = render_report("w", ObservedWorkload(runners=(job(succeeded=2),), pods=pods, kinds=frozenset({"Job"})))
    assert (report.ended, report.succeeded, report.failed) == want


BUCKET = builders.podset(
    container=PodContainer(
        image="i", fields=builders.container_fields({"storage": {"s3": [{"bucket": "b", "path": "/b"}]}})
    )
)


@pytest.mark.parametrize(
    ("podset", "pods", "want"),
    [
        pytest.param(BUCKET, (), None, id="no pod is seen"),
        pytest.param(BUCKET, (pod("Failed", BADLY, WELL), pod("Succeeded", WELL, WELL)), None, id="one of two is seen"),
        pytest.param(BUCKET, (pod("Succeeded", WELL, REFUSED),) * 2, Phase.FAILED, id="both are seen"),
        pytest.param(builders.podset(), (), Phase.COMPLETED, id="nothing is written back"),
    ],
)
def test_a_job_that_counts_more_than_is_seen(podset: PodSet, pods: tuple[objects.Pod, ...], want: Phase | None) -> None:
    held = ObservedWorkload(runners=(job(succeeded=2, failed=1),), pods=pods, kinds=frozenset({"Job"}))
    assert render_report("w", held, (podset,)).ended is want
    # Somebody may have removed its pods: once that is sure, they are not waited for.
    settled = msgspec.structs.replace(held, settled=frozenset({"j"}))
    assert render_report("w", settled, (podset,)).ended is (want or Phase.COMPLETED)


@pytest.mark.parametrize(
    ("now", "main", "want"),
    [
        (
            {"running": {}},
            {"waiting": {"reason": "PodInitializing"}},
            "container git-0 failed 3 times, last with: no such",
        ),
        ({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}, {"waiting": {}}, "last with: no such"),
        (WELL, {"running": {}}, ""),
    ],
    ids=["tried again", "waits to be tried again", "succeeded at last"],
)
def test_what_is_fetched_again_and_again_says_why_it_fails(now: Any, main: Any, want: str) -> None:
    before = {"terminated": {"exitCode": 128, "message": "no such repository"}}
    git = {"name": "git-0", "state": now, "lastState": before, "restartCount": 3}
    status = {
        "phase": "Pending",
        "initContainerStatuses": [git],
        "containerStatuses": [{"name": "main", "state": main}],
    }
    metadata = {"name": "p", "uid": "u", "labels": LABELS}
    given = msgspec.convert({"metadata": metadata, "spec": {"nodeName": "n"}, "status": status}, objects.Pod)
    message = render_pod(given).message
    assert want in message if want else message == ""
