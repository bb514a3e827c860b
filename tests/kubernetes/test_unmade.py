"""Workloads whose pods the cluster does not let be made: they say so in the cluster's words, and go on when it does."""

from typing import Any

import pytest

from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness

pytestmark = pytest.mark.kubernetes
#: Of a framework for which no operator is installed.
_PAIR = {"numWorkers": 1, "distributedFramework": "JAX"}


def groups(leader: dict[str, Any]) -> dict[str, Any]:
    return {"leader": leader, "worker": leader, "workers": 1}


@pytest.mark.parametrize("kind", ["training", "inference", "groups", "distributed"])
def test_a_quota_on_pods_is_what_it_waits_for(harness: ClusterHarness, kind: str) -> None:
    """By a Job, by a Deployment, by the StatefulSets of a LeaderWorkerSet, and by ourselves for a group of ours."""
    spec = harness.spec(gpus=0)
    serving = {"servingPort": {"container": 8080}, "autoscaling": {"minReplicas": 1, "maxReplicas": 1}}
    given = {"training": spec, "inference": spec | serving, "groups": groups(spec), "distributed": spec | _PAIR}[kind]
    with harness.no_pods():
        workload = harness.submit(kind, f"kept-out-{kind}", given)
        until(lambda: "exceeded quota: none" in harness.server.message(workload), "the quota's words", PATIENCE)
        assert harness.server.phase(workload) == "Pending"
        if kind == "distributed":
            return  # nobody else says anything of it
        events = harness.server.call("GET", f"/api/v1/workloads/{workload}/events").json["events"]
        assert "FailedCreate" in {event["reason"] for event in events}


def test_it_continues_when_the_quota_is_gone(harness: ClusterHarness) -> None:
    with harness.no_pods():
        workload = harness.train("let-in", gpus=0, seconds=1)
        until(lambda: "exceeded quota" in harness.server.message(workload), "the quota's words", PATIENCE)
    done = harness.until_phase(workload, "Completed")
    assert "quota" not in done["phaseMessage"]


def test_pods_that_the_cluster_could_never_make_are_refused_at_submission(harness: ClusterHarness) -> None:
    """A LeaderWorkerSet is taken with any template, and the API server answers two volumes at one place with 500."""
    malformed = groups(harness.spec(gpus=0, labels=[{"name": "team", "value": "a b"}]))
    volumes = {"storage": {"emptyDirVolume": [{"path": "/twice"}, {"path": "/twice"}]}}
    with pytest.raises(AssertionError, match="not the value of a label"):
        harness.submit("groups", "malformed", malformed)
    with pytest.raises(AssertionError, match="mounted already"):
        harness.submit("training", "twofold", harness.spec(gpus=0) | volumes)
    assert harness.names("leaderworkersets,jobs") == []
