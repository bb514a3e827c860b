"""The reverse proxy for workloads' URLs, on its own listener, so that no workload's page runs on the API's origin.

`app` starts it beside the API. It serves one request at a time per connection, streams bodies in both directions and
tunnels other protocols (WebSockets); `http2.py` serves connections that begin with HTTP/2. It decides nothing:
`UrlGate` says who may send requests, `UrlRegistry` who answers them.
"""

import asyncio
import logging
import socket
import ssl
from functools import partial
from html import escape
from typing import NamedTuple

from fairlead.api.http.certificates import ServerCertificate
from fairlead.api.http.connection_limits import ConnectionLimits, Connections
from fairlead.api.proxy.access import RequestDenied, UrlGate, cleaned_response
from fairlead.api.proxy.http2 import Http2Conversation
from fairlead.api.proxy.http2_connection import PREFACE
from fairlead.api.proxy.messages import (
    BadMessage,
    Headers,
    MessageBody,
    RequestHead,
    ResponseHead,
    passed_on,
    read_request,
    read_response,
    render_head,
    value_of,
)
from fairlead.api.proxy.upstream import Upstream, Upstreams, reach, too_late
from fairlead.control.serving.traffic import PendingRequest
from fairlead.control.serving.urls import GRPC, Route
from fairlead.model.records.people import Caller

logger = logging.getLogger("fairlead.proxy")

_HEAD_BYTES = 64 * 1024
#: How long a TLS handshake may take.
_HANDSHAKE_SECONDS = 10.0
_PIECE = 64 * 1024
#: How long a connection may be idle between two requests, or take to send a head.
IDLE_SECONDS = 75.0
_SAFE_TO_REPEAT = frozenset({b"GET", b"HEAD", b"OPTIONS"})
_WORDS = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


class Disconnected(Exception):
    """The other side closed the connection in the middle of a message."""


class Peer(NamedTuple):
    """A client: both directions of its connection, and its address."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    address: str


class Exchange(NamedTuple):
    """A request and its admission."""

    head: bytes
    request: RequestHead
    route: Route | None
    caller: Caller | None
    #: The head as it is sent to the pod.
    outgoing: bytes
    peer: Peer

    def is_same(self, request: RequestHead, route: Route, caller: Caller | None) -> bool:
        """Whether the request is the same as before and nothing that its admission depends on has changed."""
        return self.request is request and self.route is route and self.caller is caller


class ClientConnection:
    """A connection as it is counted. It keeps the proxy waiting between its requests; a head has its own time limit."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.loop = asyncio.get_running_loop()
        self.address = str((writer.get_extra_info("peername") or ("",))[0])
        self.waiting_since: float | None = None
        self._writer = writer

    def overdue(self, now: float) -> str:
        return ""

    def abort(self) -> None:
        self._writer.transport.abort()


class Proxy:
    def __init__(self, gate: UrlGate, upstreams: Upstreams, limits: ConnectionLimits) -> None:
        self._gate = gate
        self._upstreams = upstreams
        self._connections = Connections(limits)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self, sock: socket.socket, certificate: str = "", key: str = "") -> None:
        """Serve on a listening socket; with TLS if there is a certificate (PEM files)."""
        tls: ssl.SSLContext | None = None
        if certificate:
            renewed = ServerCertificate(certificate, key)
            tls, both = renewed.make_context(), renewed.make_context()
            both.set_alpn_protocols(["h2", "http/1.1"])

            def choose(talk: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
                renewed.refresh()
                self._offer(talk, name, both)

            tls.sni_callback = choose
        limit = _HANDSHAKE_SECONDS if tls else None
        self._server = await asyncio.start_server(
            self._serve, sock=sock, limit=_HEAD_BYTES, ssl=tls, ssl_handshake_timeout=limit
        )

    def _offer(self, talk: ssl.SSLObject | ssl.SSLSocket, name: str | None, both: ssl.SSLContext) -> None:
        """Offer HTTP/2 only for workloads that support it, because browsers use it wherever it is offered."""
        if name and self._gate.protocol_of(name) == GRPC:
            talk.context = both

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in list(self._open):
            writer.close()
        self._upstreams.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        client = ClientConnection(writer)
        self._connections.add(client)
        try:
            await self._serve_client(client, Peer(reader, writer, client.address))
        except (Disconnected, OSError, asyncio.IncompleteReadError, TimeoutError):
            pass  # one side disconnected
        except Exception:
            logger.exception("Unexpected error on a connection of the proxy")
        finally:
            self._open.discard(writer)
            self._connections.remove(client)
            writer.close()

    async def _serve_client(self, client: ClientConnection, peer: Peer) -> None:
        before: Exchange | None = None
        while True:
            head = await _request_head(peer.reader, peer.writer)
            client.waiting_since = None
            if head == PREFACE and before is None:
                await Http2Conversation(self._gate, self._upstreams, peer.address, IDLE_SECONDS).serve(*peer[:2])
                return
            before = await self._serve_one(head, before, peer) if head else None
            if before is None:
                return
            client.waiting_since = self._connections.now

    async def _serve_one(self, head: bytes, before: "Exchange | None", peer: Peer) -> "Exchange | None":
        """Serve one request; returns what the next on this connection can reuse, None if the connection ends."""
        if before is not None and before.head == head:
            request = before.request  # clients often send the same head again
        else:
            try:
                request = read_request(head)
            except BadMessage as error:
                await _answer(peer.writer, None, 400, f"This request is not valid: {error}.")
                return None
        try:
            route = self._gate.find(request)
            if self._gate.is_sign_in(request, route):
                headers = self._gate.follow_link(request, route)
                exchange = Exchange(head, request, route, None, b"", peer)
                return exchange if await _answer(peer.writer, request, 303, "", headers) else None
            caller = self._gate.admit(request, route)
            if before is not None and before.is_same(request, route, caller):
                exchange = before
            else:
                outgoing = self._render(request, route, caller, peer.address)
                exchange = Exchange(head, request, route, caller, outgoing, peer)
            visit = self._upstreams.begin(route.workload_id)
            is_timed = False
            try:
                keep = await self._forward(exchange, route, visit)
                is_timed = not request.upgrade
                return exchange if keep else None
            finally:
                visit.end(is_timed=is_timed)
        except RequestDenied as denied:
            exchange = Exchange(head, request, None, None, b"", peer)
            return exchange if await _answer(peer.writer, request, denied.status, denied.message) else None

    def _render(self, request: RequestHead, route: Route, caller: Caller | None, address: str) -> bytes:
        """The request's head as it is sent to a pod."""
        headers = self._gate.cleaned_request(request, route, caller, address)
        if request.upgrade:
            headers += [(b"connection", b"upgrade"), (b"upgrade", request.upgrade)]
        return render_head(b"%s %s HTTP/1.1" % (request.method, request.target), headers)

    async def _forward(self, exchange: Exchange, route: Route, visit: PendingRequest) -> bool:
        """Forward the request to a pod and its answer back; returns whether the connection can be reused."""
        request, writer, limit = exchange.request, exchange.peer.writer, visit.serving.timeout
        try:
            if limit is None:
                upstream, response, sending = await self._ask(exchange, route, visit)
            else:
                async with asyncio.timeout(limit / 1000):
                    upstream, response, sending = await self._ask(exchange, route, visit)
        except TimeoutError as error:
            raise too_late(limit) from error
        if response.status == 101:
            return await _tunnel(response, upstream, exchange.peer)
        try:
            keep = request.keep_alive and (response.body.chunked or response.body.length is not None)
            await _pass_response(response, upstream, writer, keep)
            is_whole = sending is None or sending.done()
            keep = keep and is_whole
        except BaseException:
            upstream.close()
            await _end(sending)
            raise
        await _end(sending)
        if response.keep_alive and is_whole:
            self._upstreams.keep(upstream)
        else:
            upstream.close()
        return keep

    async def _ask(
        self, exchange: Exchange, route: Route, visit: PendingRequest
    ) -> tuple[Upstream, ResponseHead, asyncio.Task[None] | None]:
        """Send the request to pods until one starts to answer; the body may still be under way then."""
        request, peer = exchange.request, exchange.peer
        has_body = request.body.chunked or bool(request.body.length)
        for is_last in (False, True):
            connect = partial(self._upstreams.get, port=route.port, fresh=is_last or has_body)
            upstream = await reach(route, visit, connect)
            sending: asyncio.Task[None] | None = None
            try:
                upstream.writer.write(exchange.outgoing)
                if has_body:
                    sending = asyncio.create_task(copy_body(peer.reader, upstream.writer, request.body))
                return upstream, await _response_head(upstream, request, peer.writer), sending
            except (OSError, asyncio.IncompleteReadError, Disconnected) as error:
                upstream.close()
                await _end(sending)
                if not is_last and not has_body and request.method in _SAFE_TO_REPEAT:
                    continue  # the pod closed a kept connection, or stopped: try the next
                raise RequestDenied(502, "A pod behind this URL closed the connection without an answer.") from error
            except (BadMessage, asyncio.LimitOverrunError) as error:
                upstream.close()
                await _end(sending)
                raise RequestDenied(502, f"A pod behind this URL sent an invalid HTTP answer: {error}.") from error
            except BaseException:
                upstream.close()
                await _end(sending)
                raise
        raise AssertionError("the last attempt returns or raises")


async def _request_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """The head of the next request; None if it is too long, which is answered here."""
    try:
        async with asyncio.timeout(IDLE_SECONDS):
            return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        await _answer(writer, None, 431, "The request's headers are too long.")
        return b""


async def _response_head(upstream: Upstream, request: RequestHead, writer: asyncio.StreamWriter) -> ResponseHead:
    """The head of the final answer; informational answers (100, 103) are passed on."""
    while True:
        head = await upstream.reader.readuntil(b"\r\n\r\n")
        response = read_response(head, request.method)
        if response.status >= 200 or response.status == 101:
            return response
        writer.write(head)


async def _pass_response(response: ResponseHead, upstream: Upstream, writer: asyncio.StreamWriter, keep: bool) -> None:
    headers = cleaned_response(passed_on(response.headers))
    headers.append((b"connection", b"keep-alive" if keep else b"close"))
    writer.write(render_head(b"HTTP/1.1 %d %s" % (response.status, response.phrase), headers))
    await copy_body(upstream.reader, writer, response.body)
    await writer.drain()


async def copy_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: MessageBody) -> None:
    """Stream a body from one side to the other."""
    if body.chunked:
        await _copy_chunks(reader, writer)
    elif body.length is not None:
        await _copy_length(reader, writer, body.length)
    else:
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()


async def _copy_length(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, remaining: int) -> None:
    while remaining:
        piece = await reader.read(min(remaining, _PIECE))
        if not piece:
            raise Disconnected
        writer.write(piece)
        remaining -= len(piece)
        if remaining:
            await writer.drain()


async def _copy_chunks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        line = await reader.readuntil(b"\r\n")
        try:
            size = int(line.partition(b";")[0].strip() or b"-", 16)
        except ValueError as error:
            raise Disconnected from error
        if size < 0:
            raise Disconnected
        writer.write(b"%x\r\n" % size)
        await _copy_length(reader, writer, size)
        if size == 0:
            break
        if await reader.readexactly(2) != b"\r\n":
            raise Disconnected
        writer.write(b"\r\n")
        await writer.drain()
    # Trailers end like a head; they are dropped.
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass
    writer.write(b"\r\n")


async def _tunnel(response: ResponseHead, upstream: Upstream, peer: Peer) -> bool:
    """After an upgrade to another protocol: copy bytes both ways."""
    headers = cleaned_response(passed_on(response.headers))
    headers += [(b"connection", b"upgrade"), (b"upgrade", value_of(response.headers, b"upgrade"))]
    peer.writer.write(render_head(b"HTTP/1.1 101 Switching Protocols", headers))
    ways = [
        asyncio.create_task(copy_body(peer.reader, upstream.writer, MessageBody(False, None))),
        asyncio.create_task(copy_body(upstream.reader, peer.writer, MessageBody(False, None))),
    ]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        upstream.close()
    return False


async def _end(sending: asyncio.Task[None] | None) -> None:
    """Stop reading a request's body that is no longer needed."""
    if sending is not None:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _answer(
    writer: asyncio.StreamWriter, request: RequestHead | None, status: int, message: str, headers: Headers | None = None
) -> bool:
    """Send the proxy's own answer, for people to read; returns whether the connection can be reused."""
    body, kind = message.encode() + b"\n" if message else b"", b"text/plain; charset=utf-8"
    if message and request is not None and b"text/html" in value_of(request.headers, b"accept"):
        title = _WORDS.get(status, "")
        body = f"<!doctype html><title>{title}</title><h1>{title}</h1><p>{escape(message)}</p>\n".encode()
        kind = b"text/html; charset=utf-8"
    keep = request is not None and request.keep_alive and request.body == MessageBody(False, 0)
    sent: Headers = [
        (b"content-type", kind),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"keep-alive" if keep else b"close"),
        (b"content-security-policy", b"default-src 'none'"),
        *(headers or []),
    ]
    if status == 401:
        sent.append((b"www-authenticate", b"Bearer"))
    if status == 503:
        sent.append((b"retry-after", b"1"))
    start = b"HTTP/1.1 %d %s" % (status, _WORDS.get(status, "See Other").encode())
    shown = b"" if request is not None and request.method == b"HEAD" else body
    writer.write(render_head(start, sent) + shown)
    await writer.drain()
    return keep
