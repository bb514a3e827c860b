"""When a status and an event of a custom resource are written: at once, later, or never."""

import asyncio
from typing import Any, NamedTuple, cast

import msgspec
import pytest

from fairlead.control.custom_resources.status_writer import StatusWriter
from fairlead.engines.base import CustomResourceWriter
from fairlead.model.custom_resource import CustomResource

RESOURCE = CustomResource(id="w", namespace="runai-team", name="train", text=b"{}", generation=1)


class Case(NamedTuple):
    #: The phases that the workload has, at which second.
    phases: tuple[tuple[float, str], ...]
    #: What is written, in order; events are in capital letters.
    want_written: list[str]


CASES = {
    "a phase that passes by is not written": Case(
        ((0, "Pending"), (0.5, "Initializing"), (1, "Running")), ["Pending", "Running", "RUNNING"]
    ),
    "a phase that lasts is written, with its event": Case(
        ((0, "Pending"), (2.5, "Pending"), (3, "Running")), ["Pending", "PENDING", "Running", "RUNNING"]
    ),
    "a later passing phase is written when it lasts": Case(
        ((0, "Running"), (1, "Deleting"), (3.5, "Deleting")), ["Running", "RUNNING", "Deleting", "DELETING"]
    ),
    "what people wait for is written at once": Case(
        ((0, "Running"), (0.1, "Failed")), ["Running", "RUNNING", "Failed", "FAILED"]
    ),
    "nothing is written twice": Case(((0, "Running"), (0.1, "Running"), (9, "Running")), ["Running", "RUNNING"]),
}


class Cluster:
    """Takes what is written; its watch shows that at once."""

    def __init__(self) -> None:
        self.resource = RESOURCE
        self.written: list[str] = []

    async def set_status(self, resource: CustomResource, status: dict[str, Any]) -> None:
        self.written.append(status["phase"])
        self.resource = msgspec.structs.replace(resource, status=status)

    async def add_event(self, resource: CustomResource, type: str, reason: str, message: str) -> None:
        self.written.append(reason.upper())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_is_written(case: Case) -> None:
    cluster, reminded = Cluster(), list[float]()
    now = 0.0

    def remind(id: str, seconds: float) -> None:
        reminded.append(now + seconds)

    async def act() -> None:
        nonlocal now
        writer = StatusWriter(cast(CustomResourceWriter, cluster), remind, 2.0, lambda: now)
        for now, phase in case.phases:  # noqa: B007 - the clock
            await writer.write(cluster.resource, {"phase": phase, "message": "", "workloadId": "w"})

    asyncio.run(act())
    assert cluster.written == case.want_written


def test_a_watch_that_is_behind_causes_no_second_request() -> None:
    cluster, reminded = Cluster(), list[float]()

    async def act() -> None:
        writer = StatusWriter(cast(CustomResourceWriter, cluster), lambda _, at: reminded.append(at), 2.0, lambda: 0.0)
        for _ in range(2):
            await writer.write(RESOURCE, {"phase": "Running", "message": "", "workloadId": "w"})

    asyncio.run(act())
    assert cluster.written == ["Running", "RUNNING"]
    assert reminded == [5.0]
