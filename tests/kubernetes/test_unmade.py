"""Workloads whose pods the cluster does not let be made: they say so in the cluster's words, and go on when it does."""

from typing import Any

import pytest

from tests.e2e.server import until
from tests.kubernetes.room import PATIENCE, Room

pytestmark = pytest.mark.kubernetes
#: Of a framework for which no operator is installed.
_PAIR = {"numWorkers": 1, "distributedFramework": "JAX"}


def groups(leader: dict[str, Any]) -> dict[str, Any]:
    return {"leader": leader, "worker": leader, "workers": 1}


@pytest.mark.parametrize("kind", ["training", "inference", "groups", "distributed"])
def test_a_quota_on_pods_is_what_it_waits_for(room: Room, kind: str) -> None:
    """By a Job, by a Deployment, by the StatefulSets of a LeaderWorkerSet, and by ourselves for a group of ours."""
    spec = room.spec(gpus=0)
    serving = {"servingPort": {"container": 8080}, "autoscaling": {"minReplicas": 1, "maxReplicas": 1}}
    given = {"training": spec, "inference": spec | serving, "groups": groups(spec), "distributed": spec | _PAIR}[kind]
    with room.no_pods():
        workload = room.submit(kind, f"kept-out-{kind}", given)
        until(lambda: "exceeded quota: none" in room.server.message(workload), "the quota's words", PATIENCE)
        assert room.server.phase(workload) == "Pending"
        if kind == "distributed":
            return  # nobody else says anything of it
        events = room.server.call("GET", f"/api/v1/workloads/{workload}/events").json["events"]
        assert "FailedCreate" in {event["reason"] for event in events}


def test_it_goes_on_when_the_quota_is_gone(room: Room) -> None:
    with room.no_pods():
        workload = room.train("let-in", gpus=0, seconds=1)
        until(lambda: "exceeded quota" in room.server.message(workload), "the quota's words", PATIENCE)
    done = room.until_phase(workload, "Completed")
    assert "quota" not in done["phaseMessage"]


def test_a_group_of_which_no_pod_can_come_fails_with_the_clusters_words(room: Room) -> None:
    """A LeaderWorkerSet is taken with any template, and its controller says only that it could not go on."""
    workload = room.submit("groups", "malformed", groups(room.spec(gpus=0, labels=[{"name": "team", "value": "a b"}])))
    failed = room.until_phase(workload, "Failed")
    assert "a valid label must be" in failed["phaseMessage"]
    until(lambda: room.names("leaderworkersets") == [], "the end of its objects", PATIENCE)


def test_two_volumes_at_one_place_fail_with_the_clusters_words(room: Room) -> None:
    """To such an object the API server says 500, which is no reason to try again."""
    volumes = {"storage": {"emptyDirVolume": [{"path": "/twice"}, {"path": "/twice"}]}}
    failed = room.until_phase(room.submit("training", "twofold", room.spec(gpus=0) | volumes), "Failed")
    assert "duplicate entries" in failed["phaseMessage"]
