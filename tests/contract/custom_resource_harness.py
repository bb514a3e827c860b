"""An API server in memory whose watch can lag behind, and the loop of custom resources on it, step by step."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec

from fairlead.control.context import Context
from fairlead.control.custom_resources.loop import CustomResourceSync
from fairlead.control.custom_resources.reader import CALLER
from fairlead.control.workloads import lifecycle
from fairlead.engines.kubernetes.client.api import MERGE, Api, ApiError
from fairlead.engines.kubernetes.client.resources import DEFINITION, Resource
from fairlead.engines.kubernetes.custom_resources import WatchedResources
from fairlead.model.records.phase import DesiredPhase
from fairlead.model.records.workload import Workload
from fairlead.store.collections import WORKLOADS
from tests.contract.test_control_over_time import in_store

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
        #: So many of the next deletions are refused with a conflict, and have no effect.
        self.conflicts = 0
        self.statuses: list[Body] = []
        self.events: list[Body] = []
        self.next_uid = "u-1"
        self.refuses = False
        self.written = asyncio.Event()
        self.created, self.deleted, self.taken = asyncio.Event(), asyncio.Event(), asyncio.Event()
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
            return self.create(path, copy_of(body))
        if method == "DELETE":
            self._delete(body)
        elif method == "PATCH":
            self._change(copy_of(body), content, path.removeprefix(self.path))
        elif path == self.kind.path():
            return listed(self._version, [self.object] if self.object else [])
        elif not found:
            return listed(self._version, [])
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
        return listed(self._version, [self.definition] if self.definition and is_asked else [])

    def create(self, path: str, body: Body) -> bytes:
        if path.endswith("/events"):
            self.events.append(body)
        elif self.refuses:
            raise ApiError(422, "Invalid", "spec.gpu.value: Invalid value")
        elif self.object is not None:
            self.taken.set()
            raise ApiError(409, "AlreadyExists", path)
        else:
            body["metadata"] |= {"uid": self.next_uid, "generation": 1}
            self.object = body
            self._count()
            self.created.set()
        return msgspec.json.encode(body)

    def _delete(self, body: Body) -> None:
        assert self.object is not None
        if body["preconditions"]["uid"] != self.object["metadata"]["uid"]:
            raise ApiError(409, "Conflict", "the UID in the precondition is another")
        if self.conflicts:
            self.conflicts -= 1
            raise ApiError(409, "Conflict", "please apply your changes to the latest version and try again")
        self.object = None
        self.deleted.set()

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
        before = copy_of(self.object["spec"])
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


def copy_of(body: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body))


def listed(version: int, items: list[Body]) -> bytes:
    return msgspec.json.encode({"metadata": {"resourceVersion": str(version)}, "items": items})


class Harness:
    """A server that looks when it is told to."""

    def __init__(self, context: Context, cluster: Cluster) -> None:
        self.context = context
        self.cluster = cluster
        self.resources = WatchedResources(cast(Api, cluster), lambda: "c")
        self.loop = CustomResourceSync(context, self.resources, settle_seconds=0, recheck_seconds=0)
        self._news = asyncio.Event()

    async def start(self) -> None:
        served = self.cluster.is_served
        kind = self.cluster.kind
        await self.resources.start([kind] if served else [], [] if served else [kind])
        self.resources.listen(self._news.set)
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
        waiting = {*self.loop._waiting, *self.resources.take_changed(), *self.loop._pop_synced()}
        self.loop._waiting.clear()
        for id in sorted(waiting):
            await self.loop._reconcile(id)

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[None]:
        """Look by itself, as a server does."""
        task = asyncio.create_task(self.loop.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def rest(self, verb: str, uid: str = "u-1") -> None:
        act: Callable[..., Awaitable[Workload]] = getattr(lifecycle, verb)
        await act(self.context, CALLER, "training", uid)
        await self.loop._reconcile(uid)

    async def wanted(self, uid: str = "u-1") -> DesiredPhase:
        workload = await self.context.store.get(WORKLOADS, uid)
        assert workload is not None
        return workload.desired_phase

    async def close(self) -> None:
        await self.resources.close()


def run(tmp_path: Path, act: Callable[[Harness], Awaitable[None]], **given: Any) -> None:
    """With an object that was submitted, and whose watch has brought nothing since."""

    cluster = Cluster()
    cluster.apply(**given)
    run_with(tmp_path, cluster, act)


def run_with(tmp_path: Path, cluster: Cluster, act: Callable[[Harness], Awaitable[None]]) -> None:
    async def test(context: Context) -> None:
        harness = Harness(context, cluster)
        async with asyncio.timeout(120):
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
