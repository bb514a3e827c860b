"""Quotas through the engine, on GPUs that are none: KAI lends, takes back, places groups together, and preempts."""

import json
from typing import Any

import pytest

from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness

pytestmark = pytest.mark.kubernetes


@pytest.fixture(scope="module")
def teams(harness: ClusterHarness) -> tuple[str, str]:
    """Two projects with eight of the sixteen GPUs each."""
    lender, borrower = (harness.make_project(f"{harness.project}-{name}", gpus=8) for name in "ab")
    return lender, borrower


def take(harness: ClusterHarness, project: str, name: str, gpus: int, **spec: Any) -> str:
    return harness.submit("training", name, harness.spec(gpus=gpus, **spec), project=project)


def running(harness: ClusterHarness, *workloads: str) -> list[bool]:
    return [harness.server.phase(each) == "Running" for each in workloads]


def test_borrowed_gpus_are_reclaimed(harness: ClusterHarness, teams: tuple[str, str]) -> None:
    """Whoever has quota left lends it, and gets it back: what is preemptible and over quota goes, nothing else."""
    lender, borrower = teams
    own = take(harness, borrower, "own", 8, preemptibility="non-preemptible")
    harness.until_phase(own, "Running")
    lent = take(harness, borrower, "lent", 8)
    harness.until_phase(lent, "Running")
    back = take(harness, lender, "back", 8)
    harness.until_phase(back, "Running")
    harness.until_phase(lent, "Pending")
    assert running(harness, own, back) == [True, True]
    assert harness.server.workload(own)["preemptible"] is False
    events = harness.server.call("GET", f"/api/v1/workloads/{lent}/events?limit=100").json["events"]
    assert "Evict" in {event["reason"] for event in events}


def test_what_may_not_be_taken_away_does_not_borrow(harness: ClusterHarness, teams: tuple[str, str]) -> None:
    """`preemptibility` non-preemptible stays within quota, and says so in the contract's own word."""
    workload = take(harness, teams[0], "proud", 12, preemptibility="non-preemptible", nodeAffinityRequired=None)
    waiting = until(
        lambda: (seen := harness.server.workload(workload)).get("phaseReason") and seen, "a reason", PATIENCE
    )
    assert waiting["phaseReason"] == "NonPreemptibleOverQuota"


def test_a_group_is_reclaimed_as_a_whole(harness: ClusterHarness, teams: tuple[str, str]) -> None:
    lender, borrower = teams
    spec = harness.spec(gpus=4, numWorkers=3, distributedFramework="PyTorch")
    gang = harness.submit("distributed", "gang", spec, project=borrower)
    harness.until_phase(gang, "Running")
    back = take(harness, lender, "back", 8)
    harness.until_phase(back, "Running")
    harness.until_phase(gang, "Pending")
    namespace = f"runai-{harness.project}-b"
    until(lambda: not placed(harness, namespace), "no pod of the group with a place", PATIENCE)
    harness.act("delete", back)
    harness.until_phase(gang, "Running")
    assert len(placed(harness, namespace)) == 4


def placed(harness: ClusterHarness, namespace: str) -> list[dict[str, Any]]:
    return [pod for pod in harness.objects("pods", namespace=namespace) if pod["spec"].get("nodeName")]


def test_a_preempted_workload_may_ask_to_end(harness: ClusterHarness, teams: tuple[str, str]) -> None:
    """`terminateAfterPreemption` and `preemptionLimit`."""
    lender, borrower = teams
    first = take(harness, borrower, "first", 4, terminateAfterPreemption=True, priorityClass="very-low")
    second = take(harness, borrower, "second", 4, preemptionLimit=0, priorityClass="very-low")
    for each in (first, second):
        harness.until_phase(each, "Running")
    stays = take(harness, borrower, "stays", 8)
    harness.until_phase(stays, "Running")
    harness.until_phase(take(harness, lender, "back", 8), "Running")
    for each in (first, second):
        assert "It was preempted once" in harness.until_phase(each, "Failed")["phaseMessage"]
    assert running(harness, stays) == [True]


def test_a_queue_of_somebody_else_is_left_alone_until_it_is_handed_over(harness: ClusterHarness) -> None:
    name = f"{harness.project}-theirs"
    spec = {"resources": {kind: {"quota": 0, "limit": 0, "overQuotaWeight": 1} for kind in ("gpu", "cpu", "memory")}}
    theirs = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}
    assert harness.kubectl("create", "-f", "-", stdin=json.dumps(theirs)).returncode == 0
    project = harness.make_project(name, gpus=1)
    try:
        workload = harness.submit("training", "waits", harness.spec(gpus=0), project=project)
        until(lambda: "exists and does not belong to Fairlead" in harness.server.message(workload), "a word", PATIENCE)
        assert json.loads(harness.kubectl("get", "queue", name, "-o", "json").stdout)["spec"] == spec
        handed = harness.server.message(workload).partition("kubectl ")[2].split()
        assert harness.kubectl(*handed).returncode == 0
        harness.until_phase(workload, "Running")
    finally:
        harness.delete_all()
        harness.server.call("DELETE", f"/api/v1/org-unit/projects/{project}")
