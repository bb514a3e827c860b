"""Fields that say where pods may run and what they wait for, seen from outside on nodes of a cluster."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.e2e.fields import conditions
from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness

pytestmark = pytest.mark.kubernetes
HOST = "kubernetes.io/hostname"


@pytest.fixture(scope="module", autouse=True)
def nodes(harness: ClusterHarness) -> Iterator[None]:
    """node-2 is of a type, and kept for those who tolerate it."""
    node(harness, "label", "node-2", "run.ai/type=fast", "--overwrite")
    node(harness, "taint", "node-2", "team=blue:NoSchedule", "--overwrite")
    yield
    node(harness, "label", "node-2", "run.ai/type-")
    node(harness, "taint", "node-2", "team=blue:NoSchedule-")


def node(harness: ClusterHarness, *arguments: str) -> None:
    done = harness.kubectl(arguments[0], "node", *arguments[1:])
    assert done.returncode == 0, done.stderr


TOLERATION = {"name": "t", "operator": "Equal", "key": "team", "value": "blue", "effect": "NoSchedule"}


def on(*names: str, operator: str = "In") -> dict[str, Any]:
    expression: dict[str, Any] = {"key": HOST, "operator": operator, "values": list(names)}
    return {"nodeAffinityRequired": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def reason(harness: ClusterHarness, workload: str) -> str:
    """The scheduler's words on a workload that waits."""
    words: str = until(
        lambda: (text := harness.server.message(workload)) not in ("", "Waiting to be scheduled") and text,
        "a reason to wait",
        PATIENCE,
    )
    assert harness.server.phase(workload) == "Pending"
    return words


def placed(harness: ClusterHarness, workload: str) -> set[str]:
    harness.until_phase(workload, "Running")
    return {pod["nodeName"] for pod in harness.pods(workload)}


def test_types_affinities_and_tolerations_choose_the_node(harness: ClusterHarness) -> None:
    """`nodeType`, `nodeAffinityRequired` with its `operator` and `values`, `tolerations` with `key` and `effect`."""
    tolerant = [TOLERATION, {**TOLERATION, "name": "u", "key": "x", "exclude": True}]
    fast = harness.train("fast", nodeType="fast", tolerations=tolerant)
    there = harness.train("there", tolerations=tolerant, **on("node-2"))
    elsewhere = harness.train("elsewhere", tolerations=tolerant, **on("node-2", "worker-1", operator="NotIn"))
    exists = {**TOLERATION, "operator": "Exists", "value": None}
    by_key = harness.train("by-key", tolerations=[{k: v for k, v in exists.items() if v}], **on("node-2"))
    kept_out = harness.train("kept-out", tolerations=[{**TOLERATION, "value": "red"}], **on("node-2"))
    wrong_effect = harness.train("wrong-effect", tolerations=[{**TOLERATION, "effect": "NoExecute"}], **on("node-2"))
    assert [placed(harness, each) for each in (fast, there, elsewhere, by_key)] == [
        {"node-2"},
        {"node-2"},
        {"node-1"},
        {"node-2"},
    ]
    for each in (kept_out, wrong_effect):
        assert "taint" in reason(harness, each)


def test_tolerated_for_so_many_seconds(harness: ClusterHarness) -> None:
    """A taint that comes while a pod runs takes it away after the `seconds` of its toleration."""
    leaves = {"name": "l", "operator": "Exists", "key": "leave", "effect": "NoExecute", "seconds": 1}
    stays = {"name": "s", "operator": "Exists", "key": "leave", "effect": "NoExecute"}
    short = harness.train("short", tolerations=[TOLERATION, leaves], **on("node-2"))
    long = harness.train("long", tolerations=[TOLERATION, stays], **on("node-2"))
    assert placed(harness, short) == placed(harness, long) == {"node-2"}
    node(harness, "taint", "node-2", "leave=now:NoExecute")
    try:
        until(lambda: harness.server.phase(short) != "Running", "the end of its pod", PATIENCE)
        assert harness.server.phase(long) == "Running"
    finally:
        node(harness, "taint", "node-2", "leave=now:NoExecute-")


def test_pods_that_must_stay_together(harness: ClusterHarness) -> None:
    """`podAffinity` with the `type` Required: the third of three finds no room on the node that the `key` names."""
    rule: dict[str, Any] = {"podAffinity": {"type": "Required", "key": HOST}}
    tolerations = [TOLERATION]
    workload = harness.train("together", gpus=4, completions=3, parallelism=3, tolerations=tolerations, **rule)
    harness.until_phase(workload, "Running")
    until(lambda: len([pod for pod in harness.pods(workload) if pod["nodeName"]]) == 2, "two pods", PATIENCE)
    assert len({pod["nodeName"] for pod in harness.pods(workload)}) == 1
    until(lambda: unplaced(harness), "the scheduler's word on the third", PATIENCE)
    assert len([pod for pod in harness.objects("pods") if not pod["spec"].get("nodeName")]) == 1


def unplaced(harness: ClusterHarness) -> list[Any]:
    """What the scheduler has said of pods that it could not place."""
    return [one for group in harness.objects("podgroups") for one in group["status"].get("schedulingConditions", ())]


ASKED: dict[str, tuple[dict[str, Any], str]] = {
    "cpuCoreRequest": ({"cpuCoreRequest": 5000}, "cpu"),
    "cpuMemoryRequest": ({"cpuMemoryRequest": "900Ti"}, "memory"),
    "gpuDevicesRequest": ({"gpuDevicesRequest": 9}, "gpu"),
    "migProfile": ({"migProfile": "1g.5gb"}, "mig-1g.5gb"),
    "extendedResources": ({"extendedResources": [{"resource": "example.com/dongle", "quantity": "5"}]}, "dongle"),
}


def test_what_no_node_has_is_waited_for(harness: ClusterHarness) -> None:
    """Each of these fields keeps its pod waiting, and the scheduler names it; an item with `exclude` asks nothing."""
    excluded = {"extendedResources": [{"resource": "example.com/none", "quantity": "1", "exclude": True}]}
    runs = harness.submit("training", "asks-nothing", harness.spec(gpus=0) | {"compute": excluded})
    waiting = {
        name: harness.submit("training", f"asks-{number}", harness.spec(gpus=0) | {"compute": compute})
        for number, (name, (compute, _)) in enumerate(ASKED.items())
    }
    for name, workload in waiting.items():
        assert ASKED[name][1] in reason(harness, workload).lower()
    harness.until_phase(runs, "Running")


def test_groups_wait_for_what_a_role_asks(harness: ClusterHarness) -> None:
    for role in ("leader", "worker"):
        pods = {each: harness.spec(gpus=0) for each in ("leader", "worker")}
        pods[role] = pods[role] | {"compute": {"cpuCoreRequest": 5000}}
        workload = harness.submit("groups", f"waits-{role}", {**pods, "workers": 1})
        assert "cpu" in reason(harness, workload).lower()
        assert all(
            not pod["spec"].get("nodeName") for pod in harness.objects("pods") if role in pod["metadata"]["name"]
        )


def test_limits_above_a_share_are_said_to_have_no_effect(harness: ClusterHarness) -> None:
    """`gpuPortionLimit`, `gpuMemoryLimit` and `dataSharing` have no effect on a cluster, and the workload says so."""
    shares: dict[str, dict[str, Any]] = {
        "gpuPortionLimit": {"gpuRequestType": "portion", "gpuPortionRequest": 0.25, "gpuPortionLimit": 0.5},
        "gpuMemoryLimit": {"gpuRequestType": "memory", "gpuMemoryRequest": "4Gi", "gpuMemoryLimit": "8Gi"},
    }
    for number, (name, compute) in enumerate(shares.items()):
        given = harness.spec(gpus=0) | {"compute": {"gpuDevicesRequest": 1, **compute}}
        workload = harness.submit("training", f"limited-{number}", given)
        said = until(partial(conditions, harness.server, workload, "NotEnforced"), "a condition", PATIENCE)
        assert f"compute.{name}" in said
    claim = {"pvc": [{"name": "c", "path": "/c", "dataSharing": True, "claimInfo": {"size": "1Mi"}}]}
    workload = harness.train("shares", storage=claim)
    until(lambda: "storage.pvc[c].dataSharing" in conditions(harness.server, workload, "NotEnforced"), "a condition")
