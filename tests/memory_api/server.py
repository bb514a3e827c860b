"""The HTTP side of the API server in memory: paths to verbs, lists in pages, watches, and the count of requests."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httptools
import msgspec

from deploy.cluster.nodes import Shape, render_node
from fairlead.engines.kubernetes.client import resources
from fairlead.engines.kubernetes.configuration import custom_resource_kinds
from tests.memory_api.controllers import Controllers
from tests.memory_api.objects import Body, Refusal, Selector, Table

#: A kind whose controller nobody plays, for manifests of users.
JOB_SET = resources.Resource("jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets")
_KINDS = (
    *(resources.POD, resources.SERVICE, resources.CLAIM, resources.SECRET, resources.EVENT, resources.CONFIG_MAP),
    *(resources.NAMESPACE, resources.NODE, resources.PRIORITY_CLASS, resources.ROLE_BINDING, resources.CLUSTER_ROLE),
    *(resources.INGRESS, resources.JOB, resources.DEPLOYMENT, resources.QUEUE, resources.POD_GROUP),
    resources.LEADER_WORKER_SET,
    resources.DEFINITION,
    JOB_SET,
)
#: Where the counted requests are read and reset.
COUNTS = "/counts"
_READY = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]


class MemoryApi:
    def __init__(self, nodes: int = 0) -> None:
        self.tables = {kind.kind: Table(kind, self._on_change) for kind in (*_KINDS, *custom_resource_kinds())}
        self._by_path = {(table.kind.base, table.kind.plural): table for table in self.tables.values()}
        self._controllers = Controllers(self.tables, nodes)
        #: The keys of lists that are read page by page.
        self._pages: dict[str, list[Body]] = {}
        self.counts: Counter[str] = Counter()
        for number in range(nodes):
            node = render_node(f"node-{number}", Shape(gpus=8))
            node["status"]["conditions"] = _READY
            self.tables["Node"].create("", node)

    def _on_change(self, table: Table, type: str, body: Body) -> None:
        self._controllers.on_change(table, type, body)

    def find(self, path: str) -> tuple[Table, str, str, str]:
        """The kind, namespace, name and subresource that a path names."""
        parts = path.strip("/").split("/")
        base, rest = ("/" + "/".join(parts[:2]), parts[2:]) if parts[0] == "api" else ("", [])
        if parts[0] == "apis":
            base, rest = "/" + "/".join(parts[:3]), parts[3:]
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        table = self._by_path.get((base, rest[0] if rest else ""))
        if table is None:
            raise Refusal(404, "NotFound", f"the server could not find {path}")
        name, part = (*rest[1:3], "", "")[:2]
        return table, namespace, name, part

    def count(self, method: str, path: str) -> None:
        if any(table.kind.base == path for table in self.tables.values()):
            self.counts["discover"] += 1
            return
        table, _, name, part = self.find(path)
        self.counts[f"{_verb(method, name)} {table.kind.plural}{'/' + part if part else ''}"] += 1

    def answer(self, method: str, path: str, query: dict[str, str], body: Any, content: str) -> bytes:
        served = [
            {"name": table.kind.plural, "kind": table.kind.kind, "namespaced": table.kind.is_namespaced}
            for table in self.tables.values()
            if table.kind.base == path
        ]
        if served:
            return msgspec.json.encode({"resources": served})
        table, namespace, name, part = self.find(path)
        verb = _verb(method, name)
        key = namespace, name
        if part == "log":
            return b"2026-01-01T00:00:00.000000000Z hello\n"
        if part == "eviction":
            return msgspec.json.encode(self._controllers.evict(key))
        if verb == "list":
            return self._list(table, namespace, query)
        if verb == "deletecollection":
            found = list(table.select(namespace, Selector(query)))
            keys = [(one["metadata"]["namespace"], one["metadata"]["name"]) for one in found]
            return msgspec.json.encode({"items": [table.delete(key, {}) for key in keys]})
        if verb == "create":
            if namespace and ("", namespace) not in self.tables["Namespace"].bodies:
                raise Refusal(404, "NotFound", f'namespaces "{namespace}" not found')
            return msgspec.json.encode(table.create(namespace, body))
        if verb == "patch":
            return msgspec.json.encode(self._patch(table, key, body, content))
        if verb == "delete":
            return msgspec.json.encode(table.delete(key, body or {}))
        return msgspec.json.encode(table.get(key))

    def _patch(self, table: Table, key: tuple[str, str], body: Any, content: str) -> Body:
        if "json-patch" in content:
            return table.patch(key, body)
        if "apply" in content:
            return table.apply(key, body)
        metadata = body.get("metadata", {})
        there = table.get(key)["metadata"]
        if any(metadata.get(name, there[name]) != there[name] for name in ("uid", "resourceVersion")):
            raise Refusal(409, "Conflict", "it is another, or was changed")
        return table.change(key, body)

    def _list(self, table: Table, namespace: str, query: dict[str, str]) -> bytes:
        token, limit = query.get("continue", ""), int(query.get("limit", "0"))
        items = self._pages.pop(token) if token else list(table.select(namespace, Selector(query)))
        metadata = {"resourceVersion": str(Table.newest)}
        if limit and len(items) > limit:
            items, later = items[:limit], items[limit:]
            metadata["continue"] = token = f"page-{id(later)}"
            self._pages[token] = later
        return msgspec.json.encode({"metadata": metadata, "items": items})


def _verb(method: str, name: str) -> str:
    if not name and method in ("GET", "DELETE"):
        return {"GET": "list", "DELETE": "deletecollection"}[method]
    return {"GET": "get", "POST": "create", "PATCH": "patch", "DELETE": "delete"}[method]


class Connection(asyncio.Protocol):
    """One connection of a client: requests one after the other, or a watch until it is closed."""

    def __init__(self, api: MemoryApi) -> None:
        self._api = api
        self._stop: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, error: Exception | None) -> None:
        if self._stop is not None:
            self._stop()

    # What the parser calls

    def on_message_begin(self) -> None:
        self._url, self._content, self._body = b"", "application/json", b""
        self._is_counted = False

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"content-type":
            self._content = value.decode()
        elif name.lower() == b"user-agent":
            self._is_counted = value == b"fairlead"

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        url = urlsplit(self._url.decode())
        query = dict(parse_qsl(url.query))
        method = self._parser.get_method().decode()
        if url.path == COUNTS:
            counts = msgspec.json.encode(self._api.counts)
            if method == "DELETE":
                self._api.counts.clear()
            self._send(200, counts)
            return
        try:
            if query.get("watch"):
                self._watch(url.path, query)
                return
            body = msgspec.json.decode(self._body) if self._body else None
            if self._is_counted:
                self._api.count(method, url.path)
            self._send(200, self._api.answer(method, url.path, query, body, self._content))
        except Refusal as error:
            status = {"kind": "Status", "code": error.status, "reason": error.reason, "message": str(error)}
            self._send(error.status, msgspec.json.encode(status))

    def _send(self, status: int, body: bytes) -> None:
        head = f"HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)

    def _watch(self, path: str, query: dict[str, str]) -> None:
        table, namespace, _, _ = self._api.find(path)
        selector, since = Selector(query), int(query["resourceVersion"])
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )

        def tell(body: Body, line: bytes) -> None:
            if namespace in ("", body["metadata"].get("namespace")) and selector.matches(body):
                self._transport.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")

        for version, body, line in table.changes:
            if version > since:
                tell(body, line)
        table.listeners.append(tell)
        self._stop = lambda: table.listeners.remove(tell)
