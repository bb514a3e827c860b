"""What autoscalers of nodes report about pods, as what a workload waits for."""

from typing import Any

import msgspec
import pytest

from fairlead.engines.base import SchedulingBlocker
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.node_scaling import ScalingEvents, add_scaling

FULL = SchedulingBlocker(code="PodSchedulingErrors", message="No node has 8 GPUs.", node_pool="default")
OVER = SchedulingBlocker(code="OverLimit", message="too much")
TRIGGERED = ("TriggeredScaleUp", "pod triggered scale-up: [{gpu-spot 0->1 (max: 4)}]")
REFUSED = ("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached")
NEW = ("Nominated", "Pod should schedule on: nodeclaim/gpu-x7k2p")
PRESENT = ("Nominated", "Pod should schedule on: node/worker-1")
IMPOSSIBLE = ("FailedScheduling", "Failed to schedule pod, no instance type has enough resources")


def event(said: tuple[str, str], second: int = 1, *, pod: str = "p", namespace: str = "n") -> objects.Event:
    told: Any = {
        "metadata": {"name": f"{pod}.{said[0]}"},
        "involvedObject": {"kind": "Pod", "namespace": namespace, "name": pod},
        "reason": said[0],
        "message": said[1],
        "lastTimestamp": f"2026-01-01T00:00:{second:02}Z",
    }
    return msgspec.convert(told, objects.Event)


@pytest.mark.parametrize(
    ("given", "events", "want"),
    [
        pytest.param(FULL, [], ["No node has 8 GPUs."], id="nothing reported"),
        pytest.param(
            FULL,
            [event(TRIGGERED)],
            [
                "Waiting for a new node: the Cluster Autoscaler is adding [{gpu-spot 0->1 (max: 4)}]",
                "No node has 8 GPUs.",
            ],
            id="Cluster Autoscaler",
        ),
        pytest.param(
            FULL,
            [event(NEW)],
            ["Waiting for a new node: Karpenter is adding nodeclaim/gpu-x7k2p", "No node has 8 GPUs."],
            id="Karpenter",
        ),
        pytest.param(FULL, [event(PRESENT)], ["No node has 8 GPUs."], id="a node that exists"),
        pytest.param(
            FULL,
            [event(REFUSED)],
            ["No node has 8 GPUs. The Cluster Autoscaler adds no node for it: 1 max node group size reached"],
            id="Cluster Autoscaler cannot help",
        ),
        pytest.param(
            FULL,
            [event(IMPOSSIBLE)],
            [
                "No node has 8 GPUs. Karpenter adds no node for it: "
                "Failed to schedule pod, no instance type has enough resources"
            ],
            id="Karpenter cannot help",
        ),
        pytest.param(
            FULL,
            [event(TRIGGERED), event(REFUSED, 2, pod="q")],
            [
                "Waiting for a new node: the Cluster Autoscaler is adding [{gpu-spot 0->1 (max: 4)}]",
                "No node has 8 GPUs.",
            ],
            id="for one pod of several",
        ),
        pytest.param(OVER, [event(TRIGGERED)], ["too much"], id="a quota blocks"),
    ],
)
def test_blockers(given: SchedulingBlocker, events: list[objects.Event], want: list[str]) -> None:
    assert [blocker.message for blocker in add_scaling([given], events)] == want


def test_nothing_is_said_of_a_pod_that_nothing_blocks() -> None:
    assert add_scaling([], [event(TRIGGERED)]) == []


def pod(name: str, namespace: str = "n") -> objects.Pod:
    return msgspec.convert({"metadata": {"name": name, "namespace": namespace}}, objects.Pod)


def test_the_latest_event_about_a_pod_counts() -> None:
    events = ScalingEvents()
    assert not events.has_any
    events.update(None, event(TRIGGERED, 1))
    events.update(None, event(REFUSED, 2))
    latest = events.about(pod("p"))
    assert latest is not None
    assert latest.reason == REFUSED[0]
    events.update(event(REFUSED, 2), None)
    latest = events.about(pod("p"))
    assert latest is not None
    assert latest.reason == TRIGGERED[0]
    assert events.about(pod("q")) is None
    assert events.about(pod("p", "another")) is None
    assert events.has_any


def test_the_pod_that_reserves_a_gpu_for_one_with_a_part_of_it() -> None:
    events = ScalingEvents()
    events.update(None, event(TRIGGERED, pod="n-p", namespace="kai-scale-adjust"))
    assert events.about(pod("p")) is not None
    assert events.about(pod("n-p")) is None


def test_other_events_are_not_kept() -> None:
    events = ScalingEvents()
    events.update(None, event(("FailedCreate", "no")))
    assert not events.has_any
