"""Quotas through the engine, on GPUs that are none: KAI lends, takes back, places groups together, and preempts."""

import json
from typing import Any

import pytest

from tests.e2e.server import until
from tests.kubernetes.room import PATIENCE, Room

pytestmark = pytest.mark.kubernetes


@pytest.fixture(scope="module")
def teams(room: Room) -> tuple[str, str]:
    """Two projects with eight of the sixteen GPUs each."""
    lender, borrower = (room.make_project(f"{room.project}-{name}", gpus=8) for name in "ab")
    return lender, borrower


def take(room: Room, project: str, name: str, gpus: int, **spec: Any) -> str:
    return room.submit("training", name, room.spec(gpus=gpus, **spec), project=project)


def running(room: Room, *workloads: str) -> list[bool]:
    return [room.server.phase(each) == "Running" for each in workloads]


def test_borrowed_gpus_are_reclaimed(room: Room, teams: tuple[str, str]) -> None:
    """Whoever has quota left lends it, and gets it back: what is preemptible and over quota goes, nothing else."""
    lender, borrower = teams
    own = take(room, borrower, "own", 8, preemptibility="non-preemptible")
    room.until_phase(own, "Running")
    lent = take(room, borrower, "lent", 8)
    room.until_phase(lent, "Running")
    back = take(room, lender, "back", 8)
    room.until_phase(back, "Running")
    until(lambda: room.server.phase(lent) == "Pending", "the borrower's turn to wait", PATIENCE)
    assert running(room, own, back) == [True, True]
    assert room.server.workload(own)["preemptible"] is False
    events = room.server.call("GET", f"/api/v1/workloads/{lent}/events?limit=100").json["events"]
    assert "Evict" in {event["reason"] for event in events}


def test_what_may_not_be_taken_away_does_not_borrow(room: Room, teams: tuple[str, str]) -> None:
    """`preemptibility` non-preemptible stays within quota, and says so in the contract's own word."""
    workload = take(room, teams[0], "proud", 12, preemptibility="non-preemptible", nodeAffinityRequired=None)
    waiting = until(lambda: (seen := room.server.workload(workload)).get("phaseReason") and seen, "a reason", PATIENCE)
    assert waiting["phaseReason"] == "NonPreemptibleOverQuota"


def test_a_group_is_reclaimed_as_a_whole(room: Room, teams: tuple[str, str]) -> None:
    lender, borrower = teams
    spec = room.spec(gpus=4, numWorkers=3, distributedFramework="PyTorch")
    gang = room.submit("distributed", "gang", spec, project=borrower)
    room.until_phase(gang, "Running")
    back = take(room, lender, "back", 8)
    room.until_phase(back, "Running")
    until(lambda: room.server.phase(gang) == "Pending", "the group's turn to wait", PATIENCE)
    namespace = f"runai-{room.project}-b"
    until(lambda: not placed(room, namespace), "no pod of the group with a place", PATIENCE)
    room.act("delete", back)
    room.until_phase(gang, "Running")


def placed(room: Room, namespace: str) -> list[dict[str, Any]]:
    return [pod for pod in room.objects("pods", namespace=namespace) if pod["spec"].get("nodeName")]


def test_a_preempted_workload_may_ask_to_end(room: Room, teams: tuple[str, str]) -> None:
    """`terminateAfterPreemption` and `preemptionLimit`."""
    lender, borrower = teams
    first = take(room, borrower, "first", 4, terminateAfterPreemption=True, priorityClass="very-low")
    second = take(room, borrower, "second", 4, preemptionLimit=0, priorityClass="very-low")
    for each in (first, second):
        room.until_phase(each, "Running")
    stays = take(room, borrower, "stays", 8)
    room.until_phase(stays, "Running")
    room.until_phase(take(room, lender, "back", 8), "Running")
    for each in (first, second):
        assert "It was preempted once" in room.until_phase(each, "Failed")["phaseMessage"]
    assert running(room, stays) == [True]


def test_a_queue_of_somebody_else_is_left_alone_until_it_is_handed_over(room: Room) -> None:
    name = f"{room.project}-theirs"
    spec = {"resources": {kind: {"quota": 0, "limit": 0, "overQuotaWeight": 1} for kind in ("gpu", "cpu", "memory")}}
    theirs = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}
    assert room.kubectl("create", "-f", "-", stdin=json.dumps(theirs)).returncode == 0
    project = room.make_project(name, gpus=1)
    try:
        workload = room.submit("training", "waits", room.spec(gpus=0), project=project)
        until(lambda: "exists and does not belong to Fairlead" in room.server.message(workload), "a word", PATIENCE)
        assert json.loads(room.kubectl("get", "queue", name, "-o", "json").stdout)["spec"] == spec
        handed = room.server.message(workload).partition("kubectl ")[2].split()
        assert room.kubectl(*handed).returncode == 0
        room.until_phase(workload, "Running")
    finally:
        room.delete_all()
        room.server.call("DELETE", f"/api/v1/org-unit/projects/{project}")
