"""Parts of GPUs through the engine: KAI puts pods on shared devices, and keeps waiting what does not fit."""

from functools import partial
from typing import Any

import pytest

from tests.e2e.server import until
from tests.kubernetes.field_cases import STAYS
from tests.kubernetes.room import PATIENCE, Room

pytestmark = pytest.mark.kubernetes
#: Of the devices of the real node.
GIBIBYTES = 16


def part(room: Room, **compute: Any) -> dict[str, Any]:
    """A pod in a real container that tells which device it was given."""
    script = f"echo device $NVIDIA_VISIBLE_DEVICES; {STAYS}"
    return room.real(script) | {"compute": {"gpuDevicesRequest": 1, **compute}}


def portion(room: Room, share: float) -> dict[str, Any]:
    return part(room, gpuRequestType="portion", gpuPortionRequest=share)


def device(room: Room, workload: str) -> str:
    room.until_phase(workload, "Running")
    said = until(lambda: room.server.logs(workload), "its words", PATIENCE)
    return str(said).split()[1]


def waits(room: Room, workload: str) -> str:
    words = until(
        lambda: (text := room.server.message(workload)) not in ("", "Waiting to be scheduled") and text,
        "a reason to wait",
        PATIENCE,
    )
    assert room.server.phase(workload) == "Pending"
    return str(words)


def fill(room: Room, devices: int) -> None:
    """Leave one whole device of the real node."""
    whole = room.real(STAYS) | {"compute": {"gpuDevicesRequest": devices}}
    room.until_phase(room.submit("training", "fills", whole), "Running")


def test_two_halves_share_a_device_and_a_third_waits(room: Room) -> None:
    fill(room, 7)
    first, second = (room.submit("training", f"half-{name}", portion(room, 0.5)) for name in "ab")
    assert device(room, first) == device(room, second)
    third = room.submit("training", "half-c", portion(room, 0.5))
    assert "GPU" in waits(room, third)
    room.act("delete", first)
    assert device(room, third) == device(room, second)


def test_memory_of_a_device_is_shared_by_what_is_asked(room: Room) -> None:
    fill(room, 7)
    sizes = ("10Gi", "5Gi", "1Gi")
    started = [
        room.submit("training", f"memory-{size.lower()}", part(room, gpuRequestType="memory", gpuMemoryRequest=size))
        for size in sizes[:2]
    ]
    assert len({device(room, each) for each in started}) == 1
    third = room.submit("training", "memory-more", part(room, gpuRequestType="memory", gpuMemoryRequest=sizes[2]))
    assert "no nodes with enough resources" in waits(room, third)


def test_parts_of_several_devices(room: Room) -> None:
    spec = portion(room, 0.5) | {"compute": {**portion(room, 0.5)["compute"], "gpuDevicesRequest": 2}}
    workload = room.submit("training", "two-halves", spec)
    assert len(device(room, workload).split(",")) == 2


def test_a_leader_and_its_worker_share_a_device(room: Room) -> None:
    fill(room, 7)
    half = portion(room, 0.5)
    workload = room.submit("groups", "split", {"leader": half, "worker": half, "workers": 1})
    room.until_phase(workload, "Running")
    queries = ("?pod=split-0", "?pod=split-0-1")
    devices = {until(partial(room.server.logs, workload, query), "its words", PATIENCE) for query in queries}
    assert len(devices) == 1
