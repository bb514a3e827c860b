"""Sessions into pods through the API server: logs, commands, terminals, connections to ports.

Called by the engine. Sessions use the channels of Kubernetes' remote commands over WebSockets.
"""

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime

import msgspec

from fairlead.engines.base import ExecRequest, LogRequest
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import Api, ApiError
from fairlead.engines.kubernetes.client.resources import POD
from fairlead.engines.kubernetes.client.websocket import WebSocket, pump
from fairlead.engines.kubernetes.observe.failed_starts import exit_code_of, read_failed_start
from fairlead.engines.kubernetes.observe.pods import end_of_main, main_container_name
from fairlead.model.errors import NotFound, Refused, Unavailable

log = logging.getLogger(__name__)
#: The newest state of a pod that is known; None if it was deleted.
LoadPod = Callable[[], objects.Pod | None]
_COMMANDS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_PORTS = ("v4.channel.k8s.io",)
_INPUT, _OUTPUT, _ERROR, _STATUS, _SIZE, _CLOSE = 0, 1, 2, 3, 4, 255
#: The name of Knative's sidecar, and the port on which it receives requests and counts them.
_SIDECAR, _SIDECAR_PORT = "queue-proxy", 8012
_NAMES = {_OUTPUT: "output", _ERROR: "error"}
#: How long the node may take to report the end of a process, and how often the cache is read meanwhile.
_REPORT_SECONDS, _READ_SECONDS = 10.0, 0.1


async def stream_logs(api: Api, pod: objects.Pod, request: LogRequest) -> AsyncIterator[bytes]:
    """The output of a pod's main container; of its previous start if an earlier attempt is asked for."""
    query = {"container": main_container_name(pod), "follow": "true" if request.follow else "false"}
    if request.timestamps:
        query["timestamps"] = "true"
    if request.tail is not None:
        query["tailLines"] = str(request.tail)
    if request.limit_bytes is not None:
        query["limitBytes"] = str(request.limit_bytes)
    if request.since is not None:
        query["sinceTime"] = datetime.fromtimestamp(request.since / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if request.attempt is not None and request.attempt <= _restarts(pod):
        query["previous"] = "true"
    path = f"{POD.path(pod.metadata.namespace, pod.metadata.name)}/log"
    try:
        async with api.stream(path, query) as pieces:
            async for piece in pieces:
                yield piece
    except ApiError as error:
        raise _translated(error, pod) from error
    except OSError as error:
        raise Unavailable(f"The output of pod {pod.metadata.name} was cut off: {error}") from error


def _restarts(pod: objects.Pod) -> int:
    main = main_container_name(pod)
    return max((status.restart_count for status in pod.status.container_statuses if status.name == main), default=0)


def _translated(error: ApiError, pod: objects.Pod) -> NotFound | Refused:
    if error.status == 404:
        return NotFound(f"Pod {pod.metadata.name} was deleted, and its output with it")
    return Refused(f"Pod {pod.metadata.name}: {error.message}")


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] = []


class _ExitStatus(msgspec.Struct):
    status: str = ""
    message: str = ""
    details: _Details | None = None


class CommandSession:
    """A command in a pod, or the pod's main process; see `Session` in `engines/base`."""

    def __init__(self, link: WebSocket, *, is_terminal: bool) -> None:
        self._link = link
        self._is_terminal = is_terminal
        self._pending: set[asyncio.Task[None]] = set()
        #: What is returned after the last message.
        self._rest: list[tuple[str, bytes]] = []
        #: Finds the exit code of the pod's main process; None for a command beside it.
        self._find_exit_code: Callable[[], Awaitable[bytes]] | None = None

    @classmethod
    async def run(cls, api: Api, pod: objects.Pod, request: ExecRequest) -> "CommandSession":
        query = [("command", word) for word in request.command]
        query += _streams(pod, stdin=request.stdin or request.tty, tty=request.tty)
        session = cls(await _open(api, pod, "exec", query), is_terminal=request.tty)
        if request.tty:
            session.resize(request.columns, request.rows)
        return session

    @classmethod
    async def attach(cls, api: Api, pod: objects.Pod, load_pod: LoadPod) -> "CommandSession":
        main = pod.spec.containers[0] if pod.spec.containers else objects.Container()
        link = await _open(api, pod, "attach", _streams(pod, stdin=main.stdin, tty=main.tty))
        session = cls(link, is_terminal=main.tty)
        session._find_exit_code = lambda: find_exit_code(pod, load_pod)
        return session

    async def read(self) -> tuple[str, bytes]:
        while not self._rest:
            message = await self._link.receive()
            if message is None:
                return "exit", b""
            if not message:
                continue
            channel, data = message[0], message[1:]
            if channel in _NAMES and data:
                return _NAMES[channel], data
            if channel == _STATUS:
                error, code = read_end(data)
                if not error and self._find_exit_code is not None:
                    # The end of an attachment is a success, however the process ended.
                    code = await self._find_exit_code()
                line = f"{error}\r\n" if self._is_terminal else f"{error}\n"
                self._rest = [*([("error", line.encode())] if error else ()), ("exit", code)]
        return self._rest.pop(0)

    async def write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            await self._link.send(bytes([_INPUT]) + data)

    def close_input(self) -> None:
        """End the input: with an end of file on a pipe, with Ctrl-D on a terminal."""
        if self._is_terminal:
            self._later(bytes([_INPUT]) + b"\x04")
        elif self._link.subprotocol == _COMMANDS[0]:
            self._later(bytes([_CLOSE, _INPUT]))

    def finish_input(self) -> None:
        """A pod's own input ends with its first session if `stdinOnce` says so, which no spec can."""
        self.close_input()

    def resize(self, columns: int, rows: int) -> None:
        if self._is_terminal:
            self._later(bytes([_SIZE]) + json.dumps({"Width": columns, "Height": rows}).encode())

    def _later(self, message: bytes) -> None:
        task = asyncio.get_running_loop().create_task(self._send(message))
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)

    async def _send(self, message: bytes) -> None:
        with contextlib.suppress(OSError):
            await self._link.send(message)

    async def close(self) -> None:
        for task in list(self._pending):
            task.cancel()
        self._link.close()


def _streams(pod: objects.Pod, *, stdin: bool, tty: bool) -> list[tuple[str, str]]:
    query = {"container": main_container_name(pod), "stdin": stdin, "stdout": True, "stderr": not tty, "tty": tty}
    return [(name, value if isinstance(value, str) else str(value).lower()) for name, value in query.items()]


async def _open(api: Api, pod: objects.Pod, verb: str, query: list[tuple[str, str]]) -> WebSocket:
    path = f"{POD.path(pod.metadata.namespace, pod.metadata.name)}/{verb}"
    try:
        return await WebSocket.open(api, path, query, _COMMANDS)
    except ApiError as error:
        raise _translated(error, pod) from error
    except OSError as error:
        raise Unavailable(f"The cluster cannot be reached: {error}") from error


def read_end(data: bytes) -> tuple[str, bytes]:
    """The error of a command that could not start, or nothing; and the exit code, as a shell would return it."""
    try:
        status = msgspec.json.decode(data, type=_ExitStatus)
    except msgspec.DecodeError:
        return "The exit code is unknown: the cluster's answer cannot be read", b"1"
    if status.status == "Success":
        return "", b"0"
    causes = status.details.causes if status.details else []
    for cause in causes:
        if cause.reason == "ExitCode":
            return "", cause.message.encode()
    failed = read_failed_start(status.message)
    return (status.message, b"1") if failed is None else (failed[0], b"%d" % failed[1])


async def find_exit_code(attached: objects.Pod, load_pod: LoadPod) -> bytes:
    """The exit code of the main process that ran in `attached`, once its node reported it; nothing if it is lost."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_REPORT_SECONDS):
            while (pod := load_pod()) is not None:
                ended = end_of_main(pod, _restarts(attached))
                if ended is not None:
                    return b"%d" % exit_code_of(ended)
                await asyncio.sleep(_READ_SECONDS)
    return b""


def listening_port(pod: objects.Pod, port: int) -> int:
    """The port to connect to: requests to a service of Knative go through its sidecar, which counts them."""
    names = [container.name for container in pod.spec.containers]
    served = {one.container_port for container in pod.spec.containers for one in container.ports}
    return _SIDECAR_PORT if _SIDECAR in names and port in served else port


async def dial(api: Api, pod: objects.Pod, port: int) -> int:
    """A connection to a port of a pod: one end of a pair of sockets, whose other end is forwarded."""
    path = f"{POD.path(pod.metadata.namespace, pod.metadata.name)}/portforward"
    try:
        link = await WebSocket.open(api, path, [("ports", str(port))], _PORTS)
    except ApiError as error:
        raise ConnectionRefusedError(error.status, error.message) from error
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=ours)
    what = f"port {port} of pod {pod.metadata.name}"
    task = asyncio.get_running_loop().create_task(_forward(link, reader, writer, what))
    _FORWARDING.add(task)
    task.add_done_callback(_FORWARDING.discard)
    return theirs.detach()


#: Tasks that forward connections; the event loop itself holds tasks weakly.
_FORWARDING: set["asyncio.Task[None]"] = set()
_DATA, _TROUBLE = 0, 1


async def _forward(link: WebSocket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, what: str) -> None:
    sending = asyncio.get_running_loop().create_task(pump(reader, link, bytes([_DATA])))
    greeted: set[int] = set()
    try:
        while (message := await link.receive()) is not None:
            channel, data = (message[0], message[1:]) if message else (_DATA, b"")
            if channel not in greeted:
                # The first message of each channel only repeats the port number.
                greeted.add(channel)
                data = data[2:]
            if channel == _TROUBLE and data:
                # The connection was accepted before the pod was asked: the caller only sees its end.
                log.info("%s refused a connection: %s", what, data.decode(errors="replace").strip())
                break
            if data:
                writer.write(data)
                await writer.drain()
    except OSError:
        # The other end has closed.
        return
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        writer.close()
        link.close()
