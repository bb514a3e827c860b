"""Connections of the reverse proxy to pods: opened through the engine, reused, and closed when idle."""

import asyncio
import contextlib
import socket
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import TypeVar
from weakref import WeakSet

from fairlead.api.proxy.access import RequestDenied
from fairlead.control.serving.traffic import PendingRequest
from fairlead.control.serving.urls import Route
from fairlead.control.workloads.sessions import Dialler
from fairlead.model.errors import FairleadError

Connection = TypeVar("Connection")
#: Seconds between attempts to reach pods that are ready but accept no connection.
_AGAIN_SECONDS = 0.025

_KEPT_PER_PORT = 64
_KEPT_SECONDS = 30.0
_LIMIT = 64 * 1024


def too_late(limit: int | None) -> RequestDenied:
    """The refusal of a request that no pod started to answer within so many milliseconds."""
    return RequestDenied(504, f"The workload of this URL did not start to answer within {(limit or 0) // 1000} s.")


class Upstream:
    """One connection to one port of one pod."""

    __slots__ = ("is_used", "kept_at", "key", "reader", "writer")

    def __init__(self, key: tuple[str, int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.key = key
        self.reader = reader
        self.writer = writer
        #: Whether it was used before, so that the pod may have closed it.
        self.is_used = False
        self.kept_at = 0.0

    def close(self) -> None:
        self.writer.close()


class Upstreams:
    def __init__(self, dialler: Dialler) -> None:
        self._dialler = dialler
        self._kept: dict[tuple[str, int], list[Upstream]] = {}
        self._open: defaultdict[str, WeakSet[socket.socket]] = defaultdict(WeakSet)
        dialler.listen_for_ends(self._cut)

    def begin(self, workload_id: str) -> PendingRequest:
        return self._dialler.begin(workload_id)

    async def get(self, pod_id: str, port: int, *, fresh: bool = False) -> Upstream:
        """A connection to a pod's port; an idle one unless it must be fresh. Raises OSError if nothing listens."""
        key = (pod_id, port)
        idle = self._kept.get(key)
        while idle and not fresh:
            upstream = idle.pop()
            if not upstream.reader.at_eof() and not upstream.writer.is_closing():
                return upstream
            upstream.close()
        self._drop_stale()
        of_pod = self._open[pod_id]
        pod_socket = socket.socket(fileno=await self._dialler.dial(pod_id, port))
        if self._open.get(pod_id) is not of_pod:
            pod_socket.close()
            raise ConnectionResetError("the pod has stopped")
        of_pod.add(pod_socket)
        reader, writer = await asyncio.open_connection(sock=pod_socket, limit=_LIMIT)
        return Upstream(key, reader, writer)

    def _cut(self, pod_id: str) -> None:
        """Close a pod's connections: its network may be gone before it could close them itself."""
        for pod_socket in self._open.pop(pod_id, ()):
            with contextlib.suppress(OSError):
                pod_socket.shutdown(socket.SHUT_RD)

    def keep(self, upstream: Upstream) -> None:
        idle = self._kept.setdefault(upstream.key, [])
        if len(idle) >= _KEPT_PER_PORT or upstream.reader.at_eof():
            upstream.close()
            return
        upstream.is_used = True
        upstream.kept_at = time.monotonic()
        idle.append(upstream)

    def _drop_stale(self) -> None:
        """Close connections that were idle for a while or whose pod is gone; called when a new one is opened."""
        oldest = time.monotonic() - _KEPT_SECONDS
        for key, idle in list(self._kept.items()):
            fresh = [one for one in idle if one.kept_at > oldest and not one.reader.at_eof()]
            for one in idle:
                if one not in fresh:
                    one.close()
            if fresh:
                self._kept[key] = fresh
            else:
                del self._kept[key]

    def close(self) -> None:
        for idle in self._kept.values():
            for upstream in idle:
                upstream.close()
        self._kept.clear()


async def reach(route: Route, visit: PendingRequest, connect: Callable[[str], Awaitable[Connection]]) -> Connection:
    """A connection to the next pod that accepts the request; skips pods that cannot be reached.

    If the workload holds requests, this waits for a pod.
    """
    passed_over: frozenset[str] = frozenset()
    while True:
        while pod := visit.find_pod(passed_over):
            with contextlib.suppress(OSError, FairleadError):
                return await connect(pod)
            passed_over |= {pod}
        if not visit.serving.holds:
            if passed_over:
                raise RequestDenied(502, f"No pod behind this URL accepts connections on port {route.port}.")
            raise RequestDenied(503, "No pod behind this URL is ready; try again in a moment.")
        if passed_over:
            await asyncio.sleep(_AGAIN_SECONDS)
            passed_over = frozenset()
        else:
            await visit.wait()
