"""The reverse proxy for workloads that use gRPC: forwards HTTP/2 from the caller to a pod, stream by stream.

Called by `server.py` for a connection that begins with HTTP/2. Every stream is a request of its own: it is admitted,
counted and assigned to a pod like an HTTP/1.1 request; trailers and resets are passed on both ways.
"""

import asyncio
import contextlib
from urllib.parse import quote

from h2.errors import ErrorCodes
from h2.events import RequestReceived, ResponseReceived

from fairlead.api.proxy.access import RequestDenied, UrlGate, cleaned_response
from fairlead.api.proxy.http2_connection import PREFACE, Http2Connection, StreamLost, relay
from fairlead.api.proxy.messages import NO_BODY, RequestHead, host_of, value_of
from fairlead.api.proxy.upstream import Upstreams, reach, too_late
from fairlead.control.serving.traffic import PendingRequest
from fairlead.control.serving.urls import GRPC, Route
from fairlead.model.records.people import Caller

#: The gRPC status for an HTTP status, as gRPC's documentation maps them.
_STATUS = {400: 13, 401: 16, 403: 7, 404: 12, 429: 14, 502: 14, 503: 14, 504: 4, 505: 12}
_UNKNOWN = 2
#: Headers of a request that are for the proxy only.
_OURS = (b"host", b"proxy-authorization")


class Http2Conversation:
    """One caller's connection, and the connections to pods for its streams."""

    def __init__(self, gate: UrlGate, upstreams: Upstreams, address: str, idle_seconds: float) -> None:
        self._gate = gate
        self._upstreams = upstreams
        self._address = address
        self._idle = idle_seconds
        self._pods: dict[tuple[str, int], Http2Connection] = {}
        self._readers: set[asyncio.Task[None]] = set()
        self._streams: dict[int, asyncio.Task[None]] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer every stream until the connection ends; its first line has already been read."""
        side = Http2Connection(reader, writer, self._open, self._give_up)
        self._caller = side
        try:
            await side.run(PREFACE, self._idle)
        finally:
            for task in (*self._streams.values(), *self._readers):
                task.cancel()
            await asyncio.gather(*self._streams.values(), *self._readers, return_exceptions=True)
            for pod in self._pods.values():
                pod.close()

    def _open(self, number: int, event: RequestReceived) -> None:
        task = asyncio.create_task(self._answer(number, event))
        self._streams[number] = task
        task.add_done_callback(lambda _: self._streams.pop(number, None))

    def _give_up(self, number: int) -> None:
        task = self._streams.get(number)
        if task is not None:
            task.cancel()

    async def _answer(self, number: int, event: RequestReceived) -> None:
        request = read_head(event)
        try:
            route = self._gate.find(request)
            if route.protocol != GRPC:
                raise RequestDenied(505, "The workload of this URL supports HTTP/1.1 only.")
            caller = self._gate.admit(request, route)
            visit = self._upstreams.begin(route.workload_id)
            is_timed = False
            try:
                headers = self._render(request, route, caller)
                await self._forward(number, headers, event.stream_ended is not None, route, visit)
                is_timed = True
            finally:
                visit.end(is_timed=is_timed)
        except RequestDenied as denied:
            self._answer_ended(number, render_refusal(request, denied))
        except StreamLost:
            # The pod stopped in the middle of its answer.
            self._answer_ended(number, [(b"grpc-status", b"14"), (b"grpc-message", b"its pod ended the stream")])
        finally:
            self._caller.end(number, ErrorCodes.NO_ERROR)

    def _answer_ended(self, number: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Send the proxy's own answer on a stream that is still open."""
        with contextlib.suppress(StreamLost):
            self._caller.send_headers(number, headers, ended=True)

    def _render(self, request: RequestHead, route: Route, caller: Caller | None) -> list[tuple[bytes, bytes]]:
        headers = self._gate.cleaned_request(request, route, caller, self._address)
        authority = value_of(request.headers, b"host")
        first = [(b":method", request.method), (b":scheme", b"http"), (b":path", request.target)]
        own_headers = [(name, value) for name, value in headers if name not in _OURS]
        if value_of(request.headers, b"te") == b"trailers":
            # Hop-by-hop, but servers of gRPC refuse calls without it.
            own_headers.append((b"te", b"trailers"))
        return [*first, (b":authority", authority), *own_headers]

    async def _forward(
        self, number: int, headers: list[tuple[bytes, bytes]], ended: bool, route: Route, visit: PendingRequest
    ) -> None:
        """Forward a stream to a pod and its answer back; answers for a pod that does not."""
        limit = visit.serving.timeout
        sending: asyncio.Task[None] | None = None
        pod: Http2Connection | None = None
        other = 0
        try:
            async with asyncio.timeout(None if limit is None else limit / 1000):
                pod = await reach(route, visit, lambda pod_id: self._connect(pod_id, route.port))
                other = pod.begin(headers, ended=ended)
                if not ended:
                    sending = asyncio.create_task(relay(self._caller, number, pod, other))
                response = await _first(pod, other, route)
            headers = cleaned_response([(bytes(name), bytes(value)) for name, value in response.headers or ()])
            self._caller.send_headers(number, headers, ended=response.stream_ended is not None)
            if response.stream_ended is None:
                await relay(pod, other, self._caller, number)
        except TimeoutError as error:
            raise too_late(limit) from error
        finally:
            if sending is not None:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
            if pod is not None and other:
                pod.end(other)

    async def _connect(self, pod_id: str, port: int) -> Http2Connection:
        """A connection to a pod's port; opens a new one if none accepts streams."""
        known = self._pods.get((pod_id, port))
        if known is not None and known.is_open:
            return known
        upstream = await self._upstreams.get(pod_id, port, fresh=True)
        side = self._pods[pod_id, port] = Http2Connection(upstream.reader, upstream.writer)
        task = asyncio.create_task(side.run(b"", self._idle))
        self._readers.add(task)
        task.add_done_callback(self._readers.discard)
        return side


async def _first(pod: Http2Connection, stream: int, route: Route) -> ResponseReceived:
    """The head of a pod's answer; raises `RequestDenied` if the pod does not answer."""
    try:
        response = await pod.next(stream)
    except StreamLost as error:
        raise RequestDenied(502, "A pod behind this URL closed the stream without an answer.") from error
    if not isinstance(response, ResponseReceived):
        raise RequestDenied(502, "A pod behind this URL sent an invalid HTTP/2 answer.")
    return response


def read_head(event: RequestReceived) -> RequestHead:
    """A stream's head as a request head, as the gate expects it."""
    pairs = [(bytes(name), bytes(value)) for name, value in event.headers or ()]
    given = {name: value for name, value in pairs if name.startswith(b":")}
    headers = [(name, value) for name, value in pairs if not name.startswith(b":")]
    authority = given.get(b":authority") or value_of(headers, b"host")
    headers = [(b"host", authority), *((name, value) for name, value in headers if name != b"host")]
    path, method = given.get(b":path", b"/"), given.get(b":method", b"")
    return RequestHead(method, path, headers, host_of(authority), NO_BODY, True, b"")


def render_refusal(request: RequestHead, denied: RequestDenied) -> list[tuple[bytes, bytes]]:
    """The proxy's own answer; gRPC callers get it as gRPC status and message."""
    if not value_of(request.headers, b"content-type").startswith(b"application/grpc"):
        return [(b":status", b"%d" % denied.status), (b"x-content-type-options", b"nosniff")]
    status = b"%d" % _STATUS.get(denied.status, _UNKNOWN)
    message = quote(denied.message, safe=" !\"#$&'()*+,-./:;<=>?@[]^_`{|}~").encode()
    kind = (b"content-type", b"application/grpc")
    return [(b":status", b"200"), kind, (b"grpc-status", status), (b"grpc-message", message)]
