"""Objects of a cluster whose watch is behind, whose answers get lost or whose kind is not served, on a real store.

What was asked for over REST or with kubectl stays, and nothing is ended that may still be there.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from fairlead.control.context import Context
from fairlead.control.custom_resources.loop import CustomResourceSync
from fairlead.control.custom_resources.reader import CALLER
from fairlead.control.workloads import lifecycle
from fairlead.engines.base import WorkloadReport
from fairlead.engines.kubernetes.client.api import MERGE, Api, ApiError
from fairlead.engines.kubernetes.client.resources import DEFINITION, Resource
from fairlead.engines.kubernetes.custom_resources import WatchedResources
from fairlead.model.errors import Unavailable
from fairlead.model.records.phase import DesiredPhase
from fairlead.model.records.workload import Workload
from fairlead.store.collections import WORKLOADS
from tests.contract.quiet_engines import cluster_loop
from tests.contract.test_control_over_time import in_store
from tests.contract.test_lagging_watches import Cluster as Watched

TRAININGS = Resource("run.ai/v2alpha1", "TrainingWorkload", "trainingworkloads")
NAME = f"{TRAININGS.plural}.run.ai"
Body = dict[str, Any]


class Cluster:
    """Has one object, in the place of `Api`; its watch brings what it is told to bring."""

    def __init__(self, kind: Resource = TRAININGS) -> None:
        self.kind = kind
        self.path = kind.path("runai-default", "train")
        self.object: Body | None = None
        #: What `deploy/crds` installs, and whether it is served.
        self.definition: Body | None = {"metadata": {"name": NAME}, "status": {"conditions": None}}
        self.is_served = True
        self.may_list_definitions = True
        #: Answers to so many of the next changes of a spec are lost.
        self.lost = 0
        self.statuses: list[Body] = []
        self.events: list[Body] = []
        self.next_uid = "u-1"
        self.refuses = False
        self.written = asyncio.Event()
        self.lines: dict[str, asyncio.Queue[bytes]] = {}
        self._version = 0

    def apply(self, uid: str = "u-1", **spec: Any) -> None:
        given = {"name": "train", "image": "python:3.12", "userId": "ann", **spec}
        metadata = {"name": "train", "namespace": "runai-default", "uid": uid, "generation": 1}
        members = {name: {"value": value} for name, value in given.items()}
        self.object = {"metadata": metadata, "spec": members}
        self._count()

    def edit(self, **spec: Any) -> None:
        assert self.object is not None
        changed = self.object["spec"] | {name: {"value": value} for name, value in spec.items()}
        if changed != self.object["spec"]:
            self.object["spec"] = changed
            self.object["metadata"]["generation"] += 1
        self._count()

    def _count(self) -> None:
        assert self.object is not None
        self._version += 1
        self.object["metadata"]["resourceVersion"] = str(self._version)

    @property
    def active(self) -> Any:
        assert self.object is not None
        return self.object["spec"].get("active", {}).get("value", True)

    async def request(
        self, method: str, path: str, body: Any = None, *, query: Mapping[str, str] | None = None, content: str = ""
    ) -> bytes:
        if path == DEFINITION.path():
            return self._definitions(query or {})
        if path.startswith(self.kind.base) and not self.is_served:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        found = self.object if path.startswith(self.path) else {}
        if found is None:
            raise ApiError(404, "NotFound", path)
        if method == "POST":
            body["metadata"]["managedFields"] = [{"manager": (query or {}).get("fieldManager", "")}]
            return self.create(path, _copy(body))
        if method == "DELETE":
            self._delete(body)
        elif method == "PATCH":
            self._change(_copy(body), content, path.removeprefix(self.path))
        elif path == self.kind.path():
            return _listed(self._version, [self.object] if self.object else [])
        elif not found:
            return _listed(self._version, [])
        return msgspec.json.encode(found)

    async def get(self, path: str, **query: str) -> bytes:
        return await self.request("GET", path, query=query)

    async def find(self, path: str) -> bytes | None:
        return None

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        queue = self.lines.setdefault(path, asyncio.Queue())

        async def pieces() -> AsyncIterator[bytes]:
            while True:
                yield await queue.get()

        yield pieces()

    def _definitions(self, query: Mapping[str, str]) -> bytes:
        if not self.may_list_definitions:
            raise ApiError(403, "Forbidden", "customresourcedefinitions is forbidden")
        is_asked = query.get("fieldSelector", f"metadata.name={NAME}") == f"metadata.name={NAME}"
        return _listed(self._version, [self.definition] if self.definition and is_asked else [])

    def create(self, path: str, body: Body) -> bytes:
        if path.endswith("/events"):
            self.events.append(body)
        elif self.refuses:
            raise ApiError(422, "Invalid", "spec.gpu.value: Invalid value")
        elif self.object is not None:
            raise ApiError(409, "AlreadyExists", path)
        else:
            body["metadata"] |= {"uid": self.next_uid, "generation": 1}
            self.object = body
            self._count()
        return msgspec.json.encode(body)

    def _delete(self, body: Body) -> None:
        assert self.object is not None
        if body["preconditions"]["uid"] != self.object["metadata"]["uid"]:
            raise ApiError(409, "Conflict", "the UID in the precondition is another")
        self.object = None

    def _change(self, body: Any, content: str, part: str) -> None:
        assert self.object is not None
        uid = self.object["metadata"]["uid"]
        if content == MERGE:
            metadata = body.pop("metadata", {})
            if metadata.get("uid", uid) != uid or metadata.get("resourceVersion", uid) not in (
                uid,
                self.object["metadata"]["resourceVersion"],
            ):
                raise ApiError(409, "Conflict", "it is another")
            self.object["metadata"] |= {name: metadata[name] for name in ("finalizers",) if name in metadata}
            self._count()
            return
        test, *changes = body
        assert (test["op"], test["path"]) == ("test", "/metadata/uid")
        if test["value"] != uid:
            raise ApiError(422, "Invalid", "testing value /metadata/uid failed")
        if part == "/status":
            self._set_status(*changes)
        else:
            self._set_members(changes)

    def _set_members(self, changes: list[Body]) -> None:
        assert self.object is not None
        before = _copy(self.object["spec"])
        for change in changes:
            name = change["path"].removeprefix("/spec/")
            if change["op"] == "remove":
                del self.object["spec"][name]
            else:
                self.object["spec"][name] = change["value"]
        self.object["metadata"]["generation"] += self.object["spec"] != before
        self._count()
        if self.lost:
            self.lost -= 1
            raise ConnectionResetError("the API server closed the connection")

    def _set_status(self, change: Body) -> None:
        assert self.object is not None
        assert change["path"] == "/status"
        self.object["status"] = change["value"]
        self.statuses.append(change["value"])
        self.written.set()
        self.written.clear()
        self._count()


def _copy(body: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body))


def _listed(version: int, items: list[Body]) -> bytes:
    return msgspec.json.encode({"metadata": {"resourceVersion": str(version)}, "items": items})


class Harness:
    """A server that looks when it is told to."""

    def __init__(self, context: Context, cluster: Cluster) -> None:
        self.context = context
        self.cluster = cluster
        self.customs = WatchedResources(cast(Api, cluster), lambda: "c")
        self.loop = CustomResourceSync(context, self.customs)
        self._news = asyncio.Event()

    async def start(self) -> None:
        served = self.cluster.is_served
        kind = self.cluster.kind
        await self.customs.start([kind] if served else [], [] if served else [kind])
        self.customs.listen(self._news.set)
        await self.loop._recheck_all()
        await self.look()

    async def bring(self, type: str = "MODIFIED", body: Body | None = None) -> None:
        """The watch brings the object as it is now, or as it was."""
        line = msgspec.json.encode({"type": type, "object": body or self.cluster.object}) + b"\n"
        await self._tell(self.cluster.kind.path(), line)

    async def bring_definition(self, *conditions: str) -> None:
        said = [{"type": condition, "status": "True"} for condition in conditions]
        body = {"metadata": {"name": NAME}, "status": {"conditions": said}}
        await self._tell(DEFINITION.path(), msgspec.json.encode({"type": "MODIFIED", "object": body}) + b"\n")

    async def _tell(self, path: str, line: bytes) -> None:
        self._news.clear()
        self.cluster.lines.setdefault(path, asyncio.Queue()).put_nowait(line)
        await self._news.wait()

    async def look(self) -> None:
        """At all that is new; what fails is looked at the next time."""
        waiting = {*self.loop._waiting, *self.customs.take_changed(), *self.loop._pop_synced()}
        self.loop._waiting.clear()
        for id in sorted(waiting):
            await self.loop._reconcile(id)

    async def rest(self, verb: str, uid: str = "u-1") -> None:
        act: Callable[..., Awaitable[Workload]] = getattr(lifecycle, verb)
        await act(self.context, CALLER, "training", uid)
        await self.loop._reconcile(uid)

    async def wanted(self, uid: str = "u-1") -> DesiredPhase:
        workload = await self.context.store.get(WORKLOADS, uid)
        assert workload is not None
        return workload.desired_phase

    async def close(self) -> None:
        await self.customs.close()


def run(tmp_path: Path, act: Callable[[Harness], Awaitable[None]], **given: Any) -> None:
    """With an object that was submitted, and whose watch has brought nothing since."""

    async def test(context: Context) -> None:
        cluster = Cluster()
        cluster.apply(**given)
        harness = Harness(context, cluster)
        async with asyncio.timeout(60):
            await harness.start()
            try:
                await act(harness)
            finally:
                await harness.close()

    in_store(tmp_path, test)


@asynccontextmanager
async def restarted(harness: Harness) -> AsyncIterator[Harness]:
    """The next server, which knows only what is stored and what the cluster shows."""
    later = Harness(harness.context, harness.cluster)
    await later.start()
    try:
        yield later
    finally:
        await later.close()


def test_suspended_before_its_first_status_is_seen(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        await harness.rest("suspend")
        assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.STOPPED, False)

    run(tmp_path, act)


def test_suspended_and_resumed_while_the_watch_is_behind(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        await harness.bring()
        await harness.look()
        await harness.rest("suspend")
        after_suspend = _copy(harness.cluster.object)
        await harness.rest("resume")
        await harness.bring(body=after_suspend)
        await harness.look()
        assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.RUNNING, True)
        generations = [status["observedGeneration"] for status in harness.cluster.statuses]
        assert generations == sorted(generations)
        await harness.bring()
        await harness.look()
        assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.RUNNING, True)

    run(tmp_path, act)


def test_edited_and_then_changed_over_rest_before_the_status_is_seen(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        await harness.bring()
        harness.cluster.edit(active=False)
        await harness.bring()
        await harness.look()
        assert await harness.wanted() is DesiredPhase.STOPPED
        await harness.rest("resume")
        assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.RUNNING, True)
        # And the other way it still works.
        await harness.bring()
        harness.cluster.edit(active=False)
        await harness.bring()
        await harness.look()
        assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.STOPPED, False)

    run(tmp_path, act)


def test_an_edit_of_something_else_is_no_word_on_whether_it_runs(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        harness.cluster.edit(image="another")
        await harness.bring()
        await harness.rest("suspend")
        assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.STOPPED, False)

    run(tmp_path, act)


def test_an_edit_that_is_not_seen_yet_survives_what_the_system_writes(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        await harness.bring()
        shown = _copy(harness.cluster.object)
        harness.cluster.edit(active=False)
        edited = _copy(harness.cluster.object)
        # Shown once more as it was, with something of the system's amiss in it.
        shown["spec"]["ingressUrl"] = {"value": "https://elsewhere"}
        harness.cluster.edit(ingressUrl="https://elsewhere")
        await harness.bring(body=shown)
        await harness.look()
        for body in (edited, None):
            await harness.bring(body=body)
            await harness.look()
        assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.STOPPED, False)

    run(tmp_path, act)


def test_a_write_whose_answer_is_lost_is_nobodys_edit(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        await harness.bring()
        await harness.look()
        harness.cluster.lost = 1
        with pytest.raises(ConnectionResetError):
            await harness.rest("suspend")
        assert harness.cluster.active is False
        await harness.rest("resume")
        await harness.bring()
        await harness.look()
        assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.RUNNING, True)

    run(tmp_path, act)


@pytest.mark.parametrize("is_told", [True, False], ids=["status written", "status unwritten"])
def test_suspended_over_rest_while_no_server_looked(tmp_path: Path, is_told: bool) -> None:
    async def act(harness: Harness) -> None:
        await lifecycle.suspend(harness.context, CALLER, "training", "u-1")
        if not is_told:
            assert harness.cluster.object is not None
            del harness.cluster.object["status"]
        async with restarted(harness):
            assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.STOPPED, False)

    run(tmp_path, act)


@pytest.mark.parametrize("is_told", [True, False], ids=["status written", "status unwritten"])
def test_edited_while_no_server_looked(tmp_path: Path, is_told: bool) -> None:
    async def act(harness: Harness) -> None:
        if not is_told:
            assert harness.cluster.object is not None
            del harness.cluster.object["status"]
        harness.cluster.edit(active=False)
        async with restarted(harness):
            assert (await harness.wanted(), harness.cluster.active) == (DesiredPhase.STOPPED, False)

    run(tmp_path, act)


def test_inactive_from_the_beginning_is_never_wanted(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        workload = await harness.context.store.get(WORKLOADS, "u-1")
        assert workload is not None
        assert (workload.version, workload.desired_phase) == (1, DesiredPhase.STOPPED)
        assert harness.cluster.active is False

    run(tmp_path, act, active=False)


def test_a_kind_that_nobody_serves_yet_ends_nothing(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        harness.cluster.is_served = False
        async with restarted(harness) as later:
            assert await harness.wanted() is DesiredPhase.RUNNING
            # Served at last, all that is there is seen, and one that is not is gone.
            harness.cluster.is_served = True
            await later.bring_definition("Established")
            await later.look()
            assert await harness.wanted() is DesiredPhase.RUNNING
        harness.cluster.is_served = False
        async with restarted(harness) as later:
            harness.cluster.object, harness.cluster.is_served = None, True
            await later.bring_definition("Established")
            await later.look()
            assert await harness.wanted() is DesiredPhase.DELETED

    run(tmp_path, act)


def test_definitions_that_may_not_be_listed_end_nothing(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        harness.cluster.is_served = harness.cluster.may_list_definitions = False
        async with restarted(harness):
            assert await harness.wanted() is DesiredPhase.RUNNING

    run(tmp_path, act)


def test_objects_of_a_kind_that_was_uninstalled_are_gone(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        harness.cluster.object = harness.cluster.definition = None
        harness.cluster.is_served = False
        async with restarted(harness):
            assert await harness.wanted() is DesiredPhase.DELETED

    run(tmp_path, act)


def test_what_is_meant_for_an_object_does_not_hit_the_next_of_its_name(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        harness.cluster.apply(uid="u-2")
        fresh = _copy(harness.cluster.object)
        before = harness.customs.get("u-1")
        assert before is not None
        for change in (
            harness.customs.patch_spec(before, {"active": {"value": False}}),
            harness.customs.patch_spec(before, {"ingressUrl": {"value": "x"}}),
            harness.customs.set_status(before, {"phase": "Stopped"}),
            harness.customs.release(before),
        ):
            with pytest.raises(Unavailable, match="Cannot change train in runai-default in the cluster for now"):
                await change
        # As good as done: the one that was meant is gone.
        await lifecycle.delete(harness.context, CALLER, "training", "u-1")
        await harness.loop._reconcile("u-1")
        assert harness.cluster.object == fresh
        await harness.bring()
        await harness.look()
        assert await harness.wanted("u-2") is DesiredPhase.RUNNING

    run(tmp_path, act)


class Waiting(Watched):
    """Says of the workload why it waits."""

    words = ""

    async def observe(self) -> Sequence[WorkloadReport]:
        return (WorkloadReport(workload_id="u-1", run=1, retrying_because=self.words),)


def test_words_that_change_without_an_event_are_written_too(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        engine = Waiting("u-1")
        loop = cluster_loop(harness.context, engine)
        workload = await harness.context.store.get(WORKLOADS, "u-1")
        assert workload is not None
        loop.board.put(workload, ())
        looking = asyncio.create_task(harness.loop.run())
        try:
            for engine.words in ("KAI takes no notice of it", "its namespace is somebody else's"):
                for _ in range(2):
                    await loop.cycle()
                while (harness.cluster.statuses[-1]["phase"], harness.cluster.statuses[-1]["message"]) != (
                    "Pending",
                    engine.words,
                ):
                    await harness.cluster.written.wait()
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    run(tmp_path, act)
