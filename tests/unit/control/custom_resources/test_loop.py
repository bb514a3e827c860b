"""The loop over applied objects: one that fails keeps nobody waiting, and never too many are looked at side by side."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Sequence
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
import uvloop

from fairlead.control.context import Context
from fairlead.control.custom_resources.loop import CustomResourceSync
from fairlead.control.custom_resources.reader import digests_of
from fairlead.control.custom_resources.status import render_status
from fairlead.control.serving.urls import UrlRegistry
from fairlead.engines.base import CustomResources
from fairlead.model.custom_resource import CustomResource
from fairlead.model.records.workload import Workload
from tests import builders


class Records:
    """A store in which every workload has been deleted, so that its object is to go."""

    def subscribe(self, hear: Callable[[int, Sequence[tuple[str, str]]], None]) -> Callable[[], None]:
        return lambda: None

    async def find(self, query: Any) -> list[Workload]:
        return []

    async def get(self, collection: Any, id: str) -> Workload:
        return builders.workload(id, id=id, deleted_at=1)


class Server:
    """A server with one cluster."""

    own_workload_conditions = ()

    def __init__(self) -> None:
        self.store = Records()

    def covers(self, workload: Workload) -> bool:
        return True


class Objects:
    """A cluster's objects of which some cannot be removed; removals wait until they are let through."""

    def __init__(self, *ids: str, failing: str = "") -> None:
        self._new = set(ids)
        self._failing = failing
        self._notify: Callable[[], None] = lambda: None
        self.tried: list[str] = []
        self.under_way = 0
        self.most = 0
        self.open = asyncio.Event()
        self._news = asyncio.Event()

    def add(self, id: str) -> None:
        self._new.add(id)
        self._notify()

    def listen(self, notify: Callable[[], None]) -> None:
        self._notify = notify

    def take_changed(self) -> set[str]:
        new, self._new = self._new, set()
        return new

    def get(self, id: str) -> CustomResource:
        return CustomResource(id=id, namespace="runai-a", name=id, text=b"{}", generation=1)

    async def delete(self, applied: CustomResource) -> None:
        self.tried.append(applied.id)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        self._news.set()
        try:
            await self.open.wait()
        finally:
            self.under_way -= 1
            self._news.set()
        if applied.id == self._failing:
            raise OSError("the API server is gone")

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds():
                self._news.clear()
                await self._news.wait()


class JumpingSelector(selectors.DefaultSelector):
    """Its time jumps to the next timer whenever nothing else is to be done."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += timeout or 0.0
        return super().select(0)


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run(objects: Objects, act: Callable[[], Coroutine[Any, Any, None]], recheck_seconds: float = 5) -> None:
    async def both() -> None:
        sync = CustomResourceSync(
            cast(Context, Server()), cast(CustomResources, objects), settle_seconds=0, recheck_seconds=recheck_seconds
        )
        task = asyncio.create_task(sync.run())
        try:
            await act()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    # As the server runs it: a timer that is due at once is another object there.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(both())


def test_timers_that_are_due_at_once_are_compared_too() -> None:
    objects = Objects("bad", failing="bad")
    objects.open.set()

    async def act() -> None:
        await objects.until(lambda: objects.tried.count("bad") == 3)

    run(objects, act, recheck_seconds=0)
    assert set(objects.tried) == {"bad"}


def test_a_failing_one_does_not_block_others() -> None:
    objects = Objects("bad", failing="bad")
    objects.open.set()

    async def act() -> None:
        await objects.until(lambda: objects.tried == ["bad"])
        objects.add("later")
        await objects.until(lambda: objects.tried.count("bad") == 2)

    run(objects, act)
    assert objects.tried == ["bad", "later", "bad"]


def test_one_that_fails_again_and_again_is_tried_at_a_steady_pace() -> None:
    """It asks for another try because it failed, and because nobody would tell whether it had an effect."""
    objects = Objects("bad", failing="bad")
    objects.open.set()

    async def watch() -> None:
        loop = CustomResourceSync(cast(Context, Server()), cast(CustomResources, objects), settle_seconds=0)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(loop.run(), 101)

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(watch())
    assert len(objects.tried) == 51, "once, and then every two seconds"


def test_never_too_many_side_by_side() -> None:
    ids = [f"w-{number:03}" for number in range(200)]
    objects = Objects(*ids)

    async def act() -> None:
        await objects.until(lambda: objects.under_way > 1)
        objects.open.set()
        await objects.until(lambda: len(objects.tried) == len(ids) and not objects.under_way)

    run(objects, act)
    assert objects.tried == ids
    assert 1 < objects.most <= 32


def test_one_that_changes_while_it_is_looked_at_is_looked_at_again_afterwards() -> None:
    objects = Objects("a")

    async def act() -> None:
        await objects.until(lambda: objects.under_way == 1)
        objects.add("a")
        objects.add("b")
        await objects.until(lambda: objects.under_way == 2)
        assert objects.tried == ["a", "b"]
        objects.open.set()
        await objects.until(lambda: len(objects.tried) == 3)

    run(objects, act)
    assert objects.tried == ["a", "b", "a"]


class Edited:
    """One object that was edited past the cluster's question, and the workload that was made of it before."""

    def __init__(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        self.object = _applied(after)
        self.workload = builders.workload(
            "w", id="w", phase_message="Runs\n  on one node", applied=digests_of(_applied(before))
        )
        self.store = SimpleNamespace(subscribe=self.subscribe, find=self.find, get=self.load)
        self.url_registry = UrlRegistry()
        self.written = 0

    def clock(self) -> int:
        return 1000 * self.written

    def covers(self, workload: Workload) -> bool:
        return True

    def subscribe(self, hear: Any) -> Callable[[], None]:
        return lambda: None

    async def find(self, query: Any) -> list[Workload]:
        return []

    async def load(self, collection: Any, id: str) -> Workload:
        return self.workload

    def listen(self, notify: Any) -> None:
        self.notify = notify

    def take_changed(self) -> set[str]:
        return {"w"}

    def get(self, id: str) -> CustomResource:
        return self.object

    async def patch_spec(self, applied: CustomResource, owned: dict[str, str]) -> int:
        return 0

    async def set_status(self, applied: CustomResource, status: dict[str, Any]) -> None:
        self.written += 1
        self.object = msgspec.structs.replace(self.object, status=status)

    async def add_event(self, resource: CustomResource, type: str, reason: str, message: str) -> None:
        """Nobody reads them here."""


def _applied(spec: dict[str, Any]) -> CustomResource:
    text = msgspec.json.encode({"kind": "TrainingWorkload", "spec": spec})
    return CustomResource(id="w", namespace="runai-a", name="w", text=text, generation=2)


async def _look(edited: Edited, times: int = 1) -> None:
    loop = CustomResourceSync(cast(Context, edited), cast(CustomResources, edited), settle_seconds=0)
    for _ in range(times):
        await loop._reconcile("w")


@pytest.mark.parametrize(
    ("after", "want"),
    [
        ({"image": {"value": "b"}, "gpu": {"value": "1"}}, "spec.image"),
        ({"image": {"value": "b"}}, "spec.gpu, spec.image"),
        ({"gpu": {"value": "1"}, "image": {"value": "a"}, "active": {"value": True}}, ""),
    ],
    ids=["image", "image and gpu", "what may change"],
)
def test_a_rejected_edit_is_reported(after: dict[str, Any], want: str) -> None:
    edited = Edited({"image": {"value": "a"}, "gpu": {"value": "1"}}, after)
    asyncio.run(_look(edited, 3))
    status = edited.object.status
    rejected, _, rest = status["message"].rpartition(" cannot be changed after submission")
    assert rejected == (f"Edit rejected: {want}" if want else "")
    assert rest.endswith("Runs on one node")
    assert [one["type"] for one in status["conditions"]][5:] == ["EditRejected"] * bool(want)
    # Reported once: writing the status does not trigger another write.
    assert (status["observedGeneration"], edited.written) == (2, 1)


@pytest.mark.parametrize(
    ("compute", "want"),
    [
        ({"gpuDevicesRequest": 2}, "2"),
        ({"gpuDevicesRequest": 1, "gpuRequestType": "portion", "gpuPortionRequest": 0.5}, "0.5"),
        ({}, "0"),
    ],
)
def test_the_column_of_gpus_counts_devices_and_portions(compute: dict[str, Any], want: str) -> None:
    spec = msgspec.json.encode({"image": "x", "compute": compute})
    workload = builders.workload(spec=msgspec.Raw(spec))
    resource = CustomResource(id="i", namespace="n", name="w", text=b"{}", generation=1)
    assert render_status(resource, workload, 1, 0)["requestedGpu"] == want
