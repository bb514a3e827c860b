"""The server's connection to the fork server of its data folder: finds or starts it, and sends one socket per pod."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import fairlead
from fairlead.engines.local import wire
from fairlead.engines.local.attempts import AttemptFolders
from fairlead.engines.local.supervisor import forkserver

_PACKAGE = Path(fairlead.__file__).parent
_SOURCES = sorted((_PACKAGE / "engines" / "local").rglob("*.py"))
#: A fork server of other code is replaced; the supervisors that it made live on.
VERSION = f"{fairlead.__version__} {max(path.stat().st_mtime_ns for path in _SOURCES)}"
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from {module} import main; main(*sys.argv[2:4], int(sys.argv[4]))"
)
#: How long a server waits for an answer before it considers a fork server stuck.
ANSWER_SECONDS = 5.0


class ForkServerClient:
    """A connection to the fork server, made again when it breaks."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._link: socket.socket | None = None
        #: Bound to ports of the server, which the fork server keeps while the server is down.
        self.reserved: Sequence[socket.socket] = ()
        self._lock = asyncio.Lock()

    async def connect(self) -> None:
        async with self._lock:
            if self._link is None:
                self._link = await self._find() or await self._launch()
                if self.reserved:
                    socket.send_fds(self._link, [forkserver.RESERVE], [each.fileno() for each in self.reserved])

    async def fork(self, supervisor_end: socket.socket) -> None:
        """A new supervisor that speaks over `supervisor_end`; raises OSError when no fork server can be had."""
        for last_try in (False, True):
            await self.connect()
            try:
                await self._send(supervisor_end)
                return
            except OSError:
                self.close()
                if last_try:
                    raise

    async def _send(self, supervisor_end: socket.socket) -> None:
        link = self._link
        if link is None:
            raise ConnectionError("the fork server has stopped")
        while True:
            try:
                socket.send_fds(link, [forkserver.START], [supervisor_end.fileno()])
                return
            except BlockingIOError:
                await _writable(link)

    async def _find(self) -> socket.socket | None:
        try:
            link = wire.connect(f"{self._folder}/{forkserver.SOCKET_NAME}", socket.SOCK_SEQPACKET)
        except OSError:
            return None
        try:
            link.send(forkserver.VERSION)
            loop = asyncio.get_running_loop()
            answer = await asyncio.wait_for(loop.sock_recv(link, 256), ANSWER_SECONDS)
            if answer == VERSION.encode():
                return link
            link.send(forkserver.RETIRE)
        except (OSError, TimeoutError):
            pass
        link.close()
        return None

    async def _launch(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            await asyncio.to_thread(self._run, theirs.fileno())
        ours.setblocking(False)
        return ours

    def _run(self, descriptor: int) -> None:
        program = _PROGRAM.format(module=forkserver.__name__)
        arguments = [str(_PACKAGE.parent), self._folder, VERSION, str(descriptor)]
        log = os.open(f"{self._folder}/forkserver.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            # Neither site packages nor the caller's variables: what is imported is memory in every supervisor.
            subprocess.run(
                [sys.executable, "-I", "-S", "-c", program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": os.defpath},
                pass_fds=[descriptor],
                start_new_session=True,
                check=True,
            )
        finally:
            os.close(log)

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None


def find_reserved_ports(data_dir: str) -> list[int]:
    """The ports that the fork server of this data folder keeps for its server, if it runs."""
    folder = AttemptFolders(data_dir).root
    path = f"{folder}/{forkserver.SOCKET_NAME}"
    with contextlib.suppress(OSError), wire.connect(path, socket.SOCK_SEQPACKET) as link:
        link.settimeout(ANSWER_SECONDS)
        link.send(forkserver.PORTS)
        return [int(word) for word in link.recv(256).split()]
    return []


async def _writable(link: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_writer(link.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_writer(link.fileno())
