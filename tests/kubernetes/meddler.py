"""A proxy between our server and the API server that refuses, loses, withholds and tears what passes through it.

For tests of faults. It ends TLS with the API server's own certificate, so that our side need not be told, and runs in a
thread of its own. Sessions (exec, port-forward) do not pass through it.
"""

import asyncio
import contextlib
import json
import random
import ssl
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httptools

from deploy.cluster.layout import Layout

_PIECE = 65_536
_WORDS = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}
_GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}


@dataclass(frozen=True)
class Trouble:
    """What befalls a share of the requests of a kind: changes, reads that end, or watches."""

    #: A status of HTTP; `lost`: done, but the connection breaks before the answer; `silent`: done, and never answered;
    #: `late`: never answered, and done all the same some seconds later; `torn`: a stream breaks in the middle of a
    #: line; `gone`: the version from which to watch is no longer known.
    what: int | str
    share: float
    #: changes, reads, watches
    of: tuple[str, ...] = ("changes",)
    #: Not more often than this while it is set.
    most: int = 1_000_000


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    #: Head and body, as they came.
    data: bytes

    @property
    def sort(self) -> str:
        if "watch=1" in self.target:
            return "watches"
        return "reads" if self.method == "GET" else "changes"


class _End:
    """Told by the parser of an answer when it is over."""

    def __init__(self) -> None:
        self.is_over = False
        self.parser = httptools.HttpResponseParser(self)

    def on_message_complete(self) -> None:
        self.is_over = True


class Meddler:
    #: How long something that is done late takes.
    LATE_SECONDS = 3.0

    def __init__(self, layout: Layout, folder: Path, seed: int = 1) -> None:
        self._layout = layout
        self.kubeconfig = folder / "meddled.kubeconfig"
        self._random = random.Random(seed)
        self._troubles: tuple[Trouble, ...] = ()
        #: How often each trouble happened since it was set.
        self.counts: dict[str, int] = {}
        #: The paths of changes that were asked for.
        self.changes: list[str] = []
        self._writers: dict[asyncio.StreamWriter, bool] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)

    # From the test's thread

    def start(self) -> "Meddler":
        self._thread.start()
        assert self._is_up.wait(30), "the proxy did not start"
        return self

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)
        self._loop.close()

    def trouble(self, *troubles: Trouble) -> None:
        """From now on these, and no others."""
        self._troubles = troubles
        self.counts = {}

    def cut_watches(self) -> int:
        """Break every stream that is open now; how many there were."""

        async def cut() -> int:
            watches = [writer for writer, is_watch in self._writers.items() if is_watch]
            for writer in watches:
                writer.transport.abort()
            return len(watches)

        return asyncio.run_coroutine_threadsafe(cut(), self._loop).result(30)

    # In its own

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        certificates = self._layout.path("certificates")
        self._upstream = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
        served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        served.load_cert_chain(certificates / "apiserver.crt", certificates / "apiserver.key")
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=served, limit=1 << 24)
        self._record_kubeconfig(server.sockets[0].getsockname()[1])
        self._is_up.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Transports that were aborted end with the next turn of the loop.
        await asyncio.sleep(0.1)

    def _record_kubeconfig(self, port: int) -> None:
        config = json.loads(self._layout.kubeconfig().read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
        self.kubeconfig.write_text(json.dumps(config))

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._spawn(self._converse(reader, writer))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers[writer] = False
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        try:
            while (request := await _read_request(reader)) is not None:
                upstream = upstream or await self._connect()
                self._writers[writer] = request.sort == "watches"
                if request.sort == "changes":
                    self.changes.append(request.target.partition("?")[0])
                await self._pass_on(request, writer, upstream)
        except (OSError, EOFError, asyncio.IncompleteReadError, httptools.HttpParserError):
            # Either side may break at any time; then the other does too.
            writer.transport.abort()
        finally:
            del self._writers[writer]
            writer.close()
            if upstream is not None:
                upstream[1].transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self._layout.address, 6443, ssl=self._upstream)

    async def _pass_on(
        self,
        request: Request,
        writer: asyncio.StreamWriter,
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        what = self._choose(request)
        if isinstance(what, int):
            writer.write(_render_refusal(what))
            await writer.drain()
            return
        if what == "gone":
            writer.write(_render_answer(200, _GONE))
            await writer.drain()
            return
        if what == "late":
            self._spawn(self._do_late(request))
            await self._stop.wait()
        upstream[1].write(request.data)
        await upstream[1].drain()
        if what in ("lost", "silent"):
            await _relay(upstream[0], None, is_torn=False)
            if what == "silent":
                await asyncio.wait_for(self._stop.wait(), 120)
            raise ConnectionResetError
        await _relay(upstream[0], writer, is_torn=what == "torn")

    def _choose(self, request: Request) -> int | str | None:
        for trouble in self._troubles:
            name = str(trouble.what)
            count = self.counts.get(name, 0)
            if request.sort in trouble.of and count < trouble.most and self._random.random() < trouble.share:
                self.counts[name] = count + 1
                return trouble.what
        return None

    async def _do_late(self, request: Request) -> None:
        await asyncio.sleep(self.LATE_SECONDS)
        with contextlib.suppress(OSError):
            reader, writer = await self._connect()
            writer.write(request.data)
            await writer.drain()
            await _relay(reader, None, is_torn=False)
            writer.transport.abort()


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *rest = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, target, _ = first.split(" ")
    return Request(method, target, head + body)


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter | None, *, is_torn: bool) -> None:
    """One answer from its first byte to its last, or to the middle of what follows its head."""
    end = _End()
    pieces = 0
    while not end.is_over:
        piece = await reader.read(_PIECE)
        if not piece:
            raise ConnectionResetError
        end.parser.feed_data(piece)
        pieces += 1
        if writer is None:
            continue
        if is_torn and pieces > 1:
            writer.write(piece[: len(piece) // 2])
            await writer.drain()
            raise ConnectionResetError
        writer.write(piece)
        await writer.drain()


def _render_refusal(status: int) -> bytes:
    word = _WORDS[status]
    body = {"kind": "Status", "status": "Failure", "code": status, "reason": word, "message": f"{word}, says the proxy"}
    return _render_answer(status, body, "Retry-After: 1\r\n" if status == 429 else "")


def _render_answer(status: int, body: dict[str, Any], more: str = "") -> bytes:
    data = json.dumps(body).encode() + b"\n"
    head = f"HTTP/1.1 {status} Meddled\r\nContent-Type: application/json\r\n{more}Content-Length: {len(data)}\r\n\r\n"
    return head.encode() + data
