"""A cluster in memory whose watches may be behind, and a harness that tries the Kubernetes engine on it.

It answers as an API server does; nobody in it makes or places pods but the tests.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from fairlead.engines.base import (
    ApplyOrganization,
    ApplyWorkload,
    DeleteWorkload,
    DesiredOrganization,
    DesiredWorkload,
    WorkloadOrder,
    WorkloadReport,
)
from fairlead.engines.kubernetes.client import resources
from fairlead.engines.kubernetes.client.api import APPLY, JSON, Api, ApiError
from fairlead.engines.kubernetes.client.identity import ApiIdentity
from fairlead.engines.kubernetes.client.kubeconfig import Access
from fairlead.engines.kubernetes.client.resources import NAMESPACE, POD, Resource
from fairlead.engines.kubernetes.engine import DEFAULT_SETTINGS, EngineSettings, KubernetesEngine
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.organization import Department, NodePool, Project
from tests import builders
from tests.memory_api.objects import Body, merge

DEADLINE = 60.0
NAMESPACE_NAME = "runai-team-a"
#: So many turns of the event loop without a request or a change: nothing moves any more.
_QUIET = 30
_SINCE = "2026-01-01T00:00:00Z"

Condition = Callable[[], object]


def _copy(body: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body))


class Cluster(Api):
    def __init__(self, *installed: Resource) -> None:
        super().__init__(Access(host="nowhere", port=0, identify=ApiIdentity))
        names = ("POD", "SERVICE", "CLAIM", "SECRET", "EVENT", "CONFIG_MAP", "NAMESPACE", "NODE", "PRIORITY_CLASS")
        own = [getattr(resources, name) for name in (*names, "JOB", "DEPLOYMENT", "QUEUE", "POD_GROUP")]
        self._kinds: tuple[Resource, ...] = (*own, *installed)
        self._objects: dict[tuple[Resource, str, str], Body] = {}
        self._log: list[tuple[int, Resource, str, Body]] = []
        self._behind: set[Resource] = set()
        self._listeners: list[Callable[[], None]] = []
        self.version = 0
        #: Requests, as method and path.
        self.asked: list[str] = []
        #: Requests that wait, by a part of them.
        self.gates: dict[str, asyncio.Event] = {}

    # What a test does

    def listen(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def all(self, kind: Resource) -> list[Body]:
        return [body for (known, _, _), body in self._objects.items() if known is kind]

    def names(self, kind: Resource) -> list[str]:
        return sorted(body["metadata"]["name"] for body in self.all(kind))

    def put(self, kind: Resource, body: Body) -> Body:
        """Make an object as it is given."""
        metadata = body["metadata"]
        namespace = metadata.get("namespace", "")
        if namespace and (NAMESPACE, "", namespace) not in self._objects:
            raise ApiError(404, "NotFound", f'namespaces "{namespace}" not found')
        found = _copy(body)
        found["metadata"] |= {"uid": f"uid-{self.version + 1}", "creationTimestamp": _SINCE}
        self._objects[kind, namespace, metadata["name"]] = found
        return self._tell(kind, "ADDED", found)

    def change(self, kind: Resource, name: str, change: Body) -> Body:
        body = next(body for body in self.all(kind) if body["metadata"]["name"] == name)
        merge(body, _copy(change))
        return self._tell(kind, "MODIFIED", body)

    def drop(self, kind: Resource, name: str) -> None:
        key = next(key for key in self._objects if key[0] is kind and key[2] == name)
        self._tell(kind, "DELETED", self._objects.pop(key))

    def evict(self, name: str) -> None:
        """What the eviction API does; a test may say otherwise."""
        self.drop(POD, name)

    def hold(self, *kinds: Resource) -> None:
        """From now on their watches bring nothing."""
        self._behind |= set(kinds)

    def release(self, *kinds: Resource) -> None:
        self._behind -= set(kinds)
        self._notify()

    # What the engine asks

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content: str = JSON,
        is_exact: bool = False,
    ) -> bytes:
        self.asked.append(f"{method} {path}")
        self._notify()
        await asyncio.sleep(0)
        for part, gate in self.gates.items():
            if part in f"{method} {path}":
                await gate.wait()
        served = [
            {"name": kind.plural, "kind": kind.kind, "namespaced": kind.is_namespaced}
            for kind in self._kinds
            if kind.base == path
        ]
        if served:
            return msgspec.json.encode({"resources": served})
        if path.endswith("/eviction"):
            self.evict(path.split("/")[-2])
            return b"{}"
        kind, namespace, name = self._find_kind(path)
        if method == "GET" and not name:
            return self._list(kind, namespace, (query or {}).get("labelSelector", ""))
        if method == "DELETE" and not name:
            listed = self._list(kind, namespace, (query or {}).get("labelSelector", ""))
            for item in msgspec.json.decode(listed)["items"]:
                self.drop(kind, item["metadata"]["name"])
            return listed
        return msgspec.json.encode(self._act(method, (kind, namespace, name), _copy(body), content))

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str] | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        kind, _, _ = self._find_kind(path)
        asked = query or {}
        news = asyncio.Event()
        self._listeners.append(news.set)

        async def pieces() -> AsyncIterator[bytes]:
            since = int(asked["resourceVersion"])
            while True:
                news.clear()
                for version, of, type, body in [] if kind in self._behind else list(self._log):
                    if version > since and of is kind and _is_selected(body, asked.get("labelSelector", "")):
                        yield msgspec.json.encode({"type": type, "object": body}) + b"\n"
                since = since if kind in self._behind else self.version
                await news.wait()

        try:
            yield pieces()
        finally:
            self._listeners.remove(news.set)

    def _list(self, kind: Resource, namespace: str, selector: str) -> bytes:
        items = [body for body in self.all(kind) if namespace in ("", body["metadata"].get("namespace"))]
        found = [body for body in items if _is_selected(body, selector)]
        return msgspec.json.encode({"metadata": {"resourceVersion": str(self.version)}, "items": found})

    def _act(self, method: str, key: tuple[Resource, str, str], body: Body, content: str) -> Body:
        if method == "POST":
            key = (*key[:2], body["metadata"]["name"])
        there = self._objects.get(key)
        asked = body.get("preconditions", {}) if method == "DELETE" else (body or {}).get("metadata", {})
        if there is not None and asked.get("uid", there["metadata"]["uid"]) != there["metadata"]["uid"]:
            raise ApiError(409, "Conflict", "another object of that name is there")
        if method == "POST" or (method == "PATCH" and content == APPLY):
            is_new_only = method == "POST" or "resourceVersion" in asked
            if (there is not None) is is_new_only and (is_new_only or "uid" in asked):
                raise ApiError(409, "Conflict", "it is there, or is not there")
            return self.put(key[0], body) if there is None else self.change(key[0], key[2], body)
        if there is None:
            raise ApiError(404, "NotFound", f"{key[0].plural} {key[2]} not found")
        if method == "PATCH":
            return self.change(key[0], key[2], body)
        if method == "DELETE" and body.get("propagationPolicy") == "Foreground":
            return self.change(key[0], key[2], {"metadata": {"deletionTimestamp": _SINCE}})
        if method == "DELETE":
            self.drop(key[0], key[2])
        return there

    def _find_kind(self, path: str) -> tuple[Resource, str, str]:
        for kind in self._kinds:
            found = re.fullmatch(rf"{kind.base}(?:/namespaces/([^/]+))?/{kind.plural}(?:/([^/]+))?", path)
            if found:
                return kind, found[1] or "", found[2] or ""
        raise ApiError(404, "NotFound", path)

    def _tell(self, kind: Resource, type: str, body: Body) -> Body:
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self._log.append((self.version, kind, type, _copy(body)))
        self._notify()
        return body

    def _notify(self) -> None:
        for listener in self._listeners:
            listener()


def _is_selected(body: Body, selector: str) -> bool:
    labels = body["metadata"].get("labels", {})
    pairs: Iterator[tuple[str, str, str]] = (part.partition("=") for part in filter(None, selector.split(",")))
    return all(name in labels and (not equals or labels[name] == value) for name, equals, value in pairs)


class ClusterHarness:
    """An engine on such a cluster, looked at as the loop does: after each change the last order is given again."""

    def __init__(self, cluster: Cluster, settings: EngineSettings = DEFAULT_SETTINGS) -> None:
        self.cluster = cluster
        self.engine = KubernetesEngine(cluster, lambda: "c", settings=settings)
        self._desired: WorkloadOrder | None = None
        self._news = asyncio.Event()
        self.report = WorkloadReport(workload_id="w")
        #: All that was reported.
        self.reports: list[WorkloadReport] = []

    async def set_desired(self, desired: DesiredWorkload | DeleteWorkload) -> None:
        self._desired = desired if isinstance(desired, DeleteWorkload) else ApplyWorkload(desired)
        await self.engine.apply((self._desired,))

    async def look(self) -> None:
        reports = [one for one in await self.engine.observe() if isinstance(one, WorkloadReport)]
        if reports:
            self.reports += reports
            self.report = reports[-1]
            await self.engine.apply((self._desired,) if self._desired else ())

    async def until(self, condition: Condition) -> None:
        while not condition():
            self._news.clear()
            await self.look()
            if not condition():
                await self._news.wait()

    async def settle(self) -> None:
        """Until nothing moves any more, except what waits for a time."""
        quiet = 0
        while quiet < _QUIET:
            before = (self.cluster.version, len(self.cluster.asked), len(self.reports))
            await self.look()
            await asyncio.sleep(0)
            is_quiet = before == (self.cluster.version, len(self.cluster.asked), len(self.reports))
            quiet = quiet + 1 if is_quiet else 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator["ClusterHarness"]:
        """With the namespace and the queue of a project; left, the engine is closed, and the cluster stays."""
        self.cluster.listen(self._news.set)
        await self.engine.start(self._news.set)
        try:
            await self.engine.apply([ApplyOrganization(told())])
            await self.settle()
            yield self
        finally:
            await self.engine.close()


def told() -> DesiredOrganization:
    members: dict[str, Any] = {"version": 1, "cluster_id": "c", "created_at": 0, "updated_at": 0}
    owner = members | {"created_by": "", "updated_by": ""}
    return DesiredOrganization(
        departments=(Department(id="1", name="science", **owner),),
        projects=(Project(id="7", name="team-a", department_id="1", department_name="science", **owner),),
        node_pools=tuple(NodePool(id=name, name=name, **members) for name in ("default", "h100")),
    )


def run(*podsets: PodSet, number: int = 1, **members: Any) -> DesiredWorkload:
    return DesiredWorkload(
        workload_id="w",
        name="train",
        project="team-a",
        namespace=NAMESPACE_NAME,
        run=number,
        podsets=podsets or (builders.podset(),),
        priority_class="train",
        is_preemptible=True,
        **members,
    )


def pod(job: Body, name: str, phase: str = "Running", **status: Any) -> Body:
    """A pod as the controller of a Job makes it."""
    template = job["spec"]["template"]
    owner = {"kind": job["kind"], "name": job["metadata"]["name"], "uid": job["metadata"]["uid"], "controller": True}
    labels = template["metadata"]["labels"] | {"batch.kubernetes.io/controller-uid": owner["uid"]}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE_NAME, "labels": labels, "ownerReferences": [owner]},
        "spec": {"nodeName": "n1", "restartPolicy": "Never", "containers": [{"name": "main"}]},
        "status": {"phase": phase, **status},
    }


def the_pods(cluster: Cluster) -> dict[str, str]:
    """Uids by name."""
    return {body["metadata"]["name"]: body["metadata"]["uid"] for body in cluster.all(POD)}
