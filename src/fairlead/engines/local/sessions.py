"""The server's half of a session in a pod: bytes between a user's connection and the files from the supervisor.

Used by the engine. Every session has a connection of its own to the supervisor, over which the exit code comes; closing
it ends the command.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator

from fairlead.engines.base import ExecRequest
from fairlead.engines.local import wire
from fairlead.model.errors import Refused, Unavailable

_PIECE = 65_536
#: Pieces of output that wait for a slow reader before the pod's command has to wait.
_WAITING = 16
ANSWER_SECONDS = 10.0
_CONNECT_SECONDS = 5.0
LOOPBACK = "127.0.0.1"
OUTPUT, ERROR, EXIT = "output", "error", "exit"


class Line:
    """A connection to one supervisor for one session."""

    def __init__(self, path: str) -> None:
        try:
            self._socket = wire.connect(path)
        except OSError as error:
            raise Unavailable(f"the pod cannot be reached: {error.strerror}") from error
        self._inbox = wire.Inbox()

    async def ask(self, message: wire.Message) -> tuple[wire.Message, list[int]]:
        """Send one request; the answer and the open files that came with it."""
        try:
            await self.send(message)
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._receive()
        except TimeoutError:
            raise Unavailable("the pod's supervisor does not answer") from None
        except ConnectionError:
            raise Unavailable("the pod ended") from None

    async def send(self, message: wire.Message) -> None:
        await asyncio.get_running_loop().sock_sendall(self._socket, wire.encode(message))

    async def _receive(self) -> tuple[wire.Message, list[int]]:
        files: list[int] = []
        while True:
            await _ready(self._socket.fileno(), writing=False)
            try:
                data, given, _, _ = socket.recv_fds(self._socket, _PIECE, 4)
            except BlockingIOError:
                continue
            files += given
            for message in self._inbox.feed(data):
                return message, files
            if not data:
                raise Unavailable("the pod ended")

    async def receive(self) -> wire.Message | None:
        """The next message; None at the end of the pod."""
        with contextlib.suppress(Unavailable, OSError):
            message, files = await self._receive()
            for each in files:
                os.close(each)
            return message
        return None

    def close(self) -> None:
        self._socket.close()


async def open_socket(path: str) -> socket.socket:
    """A socket of the pod's own network, not connected yet."""
    line = Line(path)
    try:
        answer, files = await line.ask({"op": "socket"})
    finally:
        line.close()
    if not files:
        raise Unavailable(str(answer.get("failed", "the pod's network cannot be reached")))
    pod_socket = socket.socket(fileno=files[0])
    pod_socket.setblocking(False)
    return pod_socket


async def connect(pod_socket: socket.socket, address: str, port: int) -> int:
    """Connect a socket and hand out its file, or close it and raise OSError."""
    pod_socket.setblocking(False)
    try:
        # If a pod's network has just gone, nothing would answer for a minute.
        async with asyncio.timeout(_CONNECT_SECONDS):
            await asyncio.get_running_loop().sock_connect(pod_socket, (address, port))
    except BaseException:
        pod_socket.close()
        raise
    pod_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return pod_socket.detach()


class ProcessSession:
    """A command beside the pod, or the pod's own input and output; see `Session` in `engines/base`."""

    def __init__(self, line: Line, files: list[int], *, is_terminal: bool) -> None:
        self._line = line
        self._is_terminal = is_terminal
        self._input = -1
        self._queue: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue(_WAITING)
        self._tasks: list[asyncio.Task[None]] = []
        self._files = files
        for each in files:
            os.set_blocking(each, False)

    @classmethod
    async def run(cls, path: str, request: ExecRequest) -> "ProcessSession":
        line = Line(path)
        run_request = {
            "op": "exec",
            "argv": list(request.command),
            "tty": request.tty,
            "columns": request.columns,
            "rows": request.rows,
        }
        try:
            answer, files = await line.ask(run_request)
            if "failed" in answer and "exit" not in answer:
                raise Refused(str(answer["failed"]))
        except BaseException:
            line.close()
            raise
        session = cls(line, files, is_terminal=request.tty)
        if "failed" in answer:
            # As in a shell: the program could not be started, which is a message and an exit code.
            message = f"{answer['failed']}\r\n" if request.tty else f"{answer['failed']}\n"
            for piece in ((ERROR, message.encode()), (EXIT, b"%d" % answer["exit"])):
                session._queue.put_nowait(piece)
            return session
        session._input = os.dup(files[0]) if request.tty else files[0]
        outputs = [(OUTPUT, files[0])] if request.tty else [(OUTPUT, files[1]), (ERROR, files[2])]
        readers = [session._spawn(session._read(name, file)) for name, file in outputs]
        session._spawn(session._pass_on_exit(readers))
        if not request.stdin and not request.tty:
            session.close_input()
        return session

    @classmethod
    async def attach(cls, path: str, output: AsyncIterator[bytes]) -> "ProcessSession":
        line = Line(path)
        try:
            answer, files = await line.ask({"op": "input"})
            if "failed" in answer:
                raise Unavailable(str(answer["failed"]))
        except BaseException:
            line.close()
            raise
        session = cls(line, files, is_terminal=bool(answer.get("tty")))
        if files:
            session._input = files[0]
        session._spawn(session._follow(output))
        return session

    def _spawn(self, work: "asyncio._CoroutineLike[None]") -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.append(task)
        return task

    async def _read(self, name: str, file: int) -> None:
        while True:
            try:
                piece = os.read(file, _PIECE)
            except BlockingIOError:
                await _ready(file, writing=False)
                continue
            except OSError:  # a terminal that nothing has open any more
                return
            if not piece:
                return
            await self._queue.put((name, piece))

    async def _pass_on_exit(self, readers: list[asyncio.Task[None]]) -> None:
        """The exit code after all of the output, or nothing but the end when the pod ended before."""
        message = await self._line.receive()
        code = b"137" if message is None else str(message.get("exit", 137)).encode()
        # What a daemon of the command still holds open is not waited for.
        await asyncio.wait(readers, timeout=0.2 if message is not None else 0)
        await self._queue.put((EXIT, code))

    async def _follow(self, output: AsyncIterator[bytes]) -> None:
        """Pass on the pod's output and then its exit code, which its supervisor tells those who watch it."""
        await self._line.send({"op": "watch"})
        code = asyncio.get_running_loop().create_future()
        self._spawn(self._find_exit_code(code))
        async for piece in output:
            await self._queue.put((OUTPUT, piece))
        await self._queue.put((EXIT, await code))

    async def _find_exit_code(self, result: "asyncio.Future[bytes]") -> None:
        """The code of the last state that the supervisor reports before it exits; nothing if it was lost."""
        state: wire.Message = {}
        while (message := await self._line.receive()) is not None:
            state = message.get("state", state)
        result.set_result(b"%d" % state["exit_code"] if "exit_code" in state else b"")

    async def read(self) -> tuple[str, bytes]:
        return await self._queue.get()

    async def write(self, data: bytes) -> None:
        while data and self._input >= 0:
            try:
                data = data[os.write(self._input, data) :]
            except BlockingIOError:
                await _ready(self._input, writing=True)
            except OSError:  # it does not read any more
                self.close_input()

    def close_input(self) -> None:
        """The end of the input: end of file for a pipe, the key for it on a terminal."""
        if self._input < 0:
            return
        if self._is_terminal:
            with contextlib.suppress(OSError):
                os.write(self._input, b"\x04")
            return
        if self._input in self._files:
            self._files.remove(self._input)
        os.close(self._input)
        self._input = -1

    def finish_input(self) -> None:
        self.close_input()
        if not self._is_terminal:
            self._spawn(self._line.send({"op": "end-input"}))

    def resize(self, columns: int, rows: int) -> None:
        if self._is_terminal and self._input >= 0:
            with contextlib.suppress(OSError):
                wire.resize(self._input, columns, rows)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._line.close()
        for file in {*self._files, self._input} - {-1}:
            os.close(file)
        self._files, self._input = [], -1


async def _ready(descriptor: int, *, writing: bool) -> None:
    """Until the descriptor can be read or written."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    add, remove = (loop.add_writer, loop.remove_writer) if writing else (loop.add_reader, loop.remove_reader)
    add(descriptor, _complete, done)
    try:
        await done
    finally:
        remove(descriptor)


def _complete(done: "asyncio.Future[None]") -> None:
    if not done.done():
        done.set_result(None)
