"""Parts of GPUs through the engine: KAI puts pods on shared devices, and keeps waiting what does not fit."""

from functools import partial
from typing import Any

import pytest

from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness
from tests.kubernetes.field_cases import STAYS

pytestmark = pytest.mark.kubernetes
#: Of the devices of the real node.
GIBIBYTES = 16


def part(harness: ClusterHarness, **compute: Any) -> dict[str, Any]:
    """A pod in a real container that tells which device it was given."""
    script = f"echo device $NVIDIA_VISIBLE_DEVICES; {STAYS}"
    return harness.real(script) | {"compute": {"gpuDevicesRequest": 1, **compute}}


def portion(harness: ClusterHarness, share: float) -> dict[str, Any]:
    return part(harness, gpuRequestType="portion", gpuPortionRequest=share)


def device(harness: ClusterHarness, workload: str) -> str:
    harness.until_phase(workload, "Running")
    said = until(lambda: harness.server.logs(workload), "its words", PATIENCE)
    return str(said).split()[1]


def waits(harness: ClusterHarness, workload: str) -> str:
    words = until(
        lambda: (text := harness.server.message(workload)) not in ("", "Waiting to be scheduled") and text,
        "a reason to wait",
        PATIENCE,
    )
    assert harness.server.phase(workload) == "Pending"
    return str(words)


def fill(harness: ClusterHarness, devices: int) -> None:
    """Leave one whole device of the real node."""
    whole = harness.real(STAYS) | {"compute": {"gpuDevicesRequest": devices}}
    harness.until_phase(harness.submit("training", "fills", whole), "Running")


def test_two_halves_share_a_device_and_a_third_waits(harness: ClusterHarness) -> None:
    fill(harness, 7)
    first, second = (harness.submit("training", f"half-{name}", portion(harness, 0.5)) for name in "ab")
    assert device(harness, first) == device(harness, second)
    third = harness.submit("training", "half-c", portion(harness, 0.5))
    assert "GPU" in waits(harness, third)
    harness.act("delete", first)
    assert device(harness, third) == device(harness, second)


def test_memory_of_a_device_is_shared_by_what_is_asked(harness: ClusterHarness) -> None:
    fill(harness, 7)
    sizes = ("10Gi", "5Gi", "1Gi")
    started = [
        harness.submit(
            "training", f"memory-{size.lower()}", part(harness, gpuRequestType="memory", gpuMemoryRequest=size)
        )
        for size in sizes[:2]
    ]
    assert len({device(harness, each) for each in started}) == 1
    third = harness.submit("training", "memory-more", part(harness, gpuRequestType="memory", gpuMemoryRequest=sizes[2]))
    assert "no nodes with enough resources" in waits(harness, third)


def test_parts_of_several_devices(harness: ClusterHarness) -> None:
    spec = portion(harness, 0.5) | {"compute": {**portion(harness, 0.5)["compute"], "gpuDevicesRequest": 2}}
    workload = harness.submit("training", "two-halves", spec)
    assert len(device(harness, workload).split(",")) == 2


def test_a_leader_and_its_worker_share_a_device(harness: ClusterHarness) -> None:
    fill(harness, 7)
    half = portion(harness, 0.5)
    workload = harness.submit("groups", "split", {"leader": half, "worker": half, "workers": 1})
    harness.until_phase(workload, "Running")
    queries = ("?pod=split-0", "?pod=split-0-1")
    devices = {until(partial(harness.server.logs, workload, query), "its words", PATIENCE) for query in queries}
    assert len(devices) == 1
