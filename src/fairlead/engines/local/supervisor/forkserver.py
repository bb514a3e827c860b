"""A small process per data folder that forks one supervisor per pod, faster and lighter than an interpreter each.

The server starts it (`forkserver_client.py`), and it outlives the server; it ends when no server is connected and no
supervisor is left. It is their subreaper: processes that a killed supervisor leaves become its children, and it kills
them. It knows nothing of pods: a start is one byte with a socket, on which the supervisor reads its order. It also
keeps the ports of a server that is down from pods that share the machine's network, by sockets that are bound to them.
"""

import contextlib
import fcntl
import gc
import os
import select
import signal
import socket
import sys
import time
from typing import NoReturn

from fairlead.engines.local import wire
from fairlead.engines.local.linux import procfs, syscalls
from fairlead.engines.local.supervisor import entry

START, VERSION, RETIRE, RESERVE, PORTS = b"S", b"V", b"X", b"R", b"P"
#: A server does not listen on more ports.
_MAX_FILES = 8
SOCKET_NAME = "forkserver.sock"
LOCK_NAME = "forkserver.lock"
#: The next spare is made when it has been quiet for so long, so that it does not compete with a start under way.
SPARE_MILLIS = 4
#: How long a new one waits until a retired one releases the lock.
LOCK_SECONDS = 0.5


class ForkServer:
    def __init__(self, folder: str, version: str, first: socket.socket, lock: int) -> None:
        self._version = version.encode()
        self._lock = lock
        self._servers = {first.fileno(): first}
        self._supervisors: set[int] = set()
        self._retired = False
        #: Bound to the ports of the server; they do not listen.
        self._reserved: list[socket.socket] = []
        self._spare: socket.socket | None = None
        self._spare_pid = 0
        self._poll = select.poll()
        self._listener = wire.listen(f"{folder}/{SOCKET_NAME}", socket.SOCK_SEQPACKET)
        self._wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, _ignore)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        for descriptor in (first.fileno(), self._listener.fileno(), self._wake):
            self._poll.register(descriptor, select.POLLIN)

    def run(self) -> None:
        while self._servers or self._supervisors - {self._spare_pid}:
            events = self._poll.poll(None if self._spare is not None else SPARE_MILLIS)
            if not events:
                self._prepare_spare()
            for descriptor, _ in events:
                if descriptor == self._wake:
                    self._reap()
                elif descriptor == self._listener.fileno():
                    self._accept()
                elif descriptor in self._servers:
                    self._serve(descriptor)

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            server, _ = self._listener.accept()
            server.setblocking(False)
            self._servers[server.fileno()] = server
            self._poll.register(server.fileno(), select.POLLIN)

    def _serve(self, descriptor: int) -> None:
        server = self._servers[descriptor]
        try:
            request, sockets, _, _ = socket.recv_fds(server, 16, _MAX_FILES)
        except BlockingIOError:
            return
        except OSError:
            request, sockets = b"", []
        if request == START and sockets:
            self._fork(sockets[0])
        elif request == VERSION:
            server.send(self._version)
        elif request == RESERVE:
            self._reserve(sockets)
        elif request == PORTS:
            server.send(" ".join(str(each.getsockname()[1]) for each in self._reserved).encode())
        else:
            # Empty: that server is gone. Retire: a newer server starts its own fork server.
            self._poll.unregister(descriptor)
            del self._servers[descriptor]
            server.close()
            if request == RETIRE and not self._retired:
                self._retired = True
                self._poll.unregister(self._listener.fileno())
                self._listener.close()
                os.close(self._lock)
                self._reserve([])

    def _reserve(self, files: list[int]) -> None:
        for each in self._reserved:
            each.close()
        self._reserved = [socket.socket(fileno=file) for file in files]
        for each in self._reserved:
            each.set_inheritable(False)

    def _fork(self, link: int) -> None:
        """Hand the link to the spare supervisor, or to a new one."""
        # Received descriptors are inherited over an exec by default; neither copy of the link must be.
        os.set_inheritable(link, False)
        if self._spare is None:
            self._prepare_spare(link)
        if self._spare is not None:
            with self._spare, contextlib.suppress(OSError):
                socket.send_fds(self._spare, [START], [link])
        os.close(link)
        self._spare, self._spare_pid = None, 0

    def _prepare_spare(self, link: int = -1) -> None:
        """Fork a supervisor ahead of its order: half of a start is done before it is requested.

        `link` is one that is about to be handed over, of which the fork must not keep a copy.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            ours.close()
            if link >= 0:
                os.close(link)
            self._become_supervisor(theirs)
        theirs.close()
        self._supervisors.add(pid)
        self._spare, self._spare_pid = ours, pid

    def _become_supervisor(self, handover: socket.socket) -> NoReturn:
        with contextlib.suppress(ValueError):
            signal.set_wakeup_fd(-1)
        os.close(self._wake)
        if not self._retired:
            # A copy of the lock in a supervisor would keep the next fork server out.
            os.close(self._lock)
            self._listener.close()
        for each in (*self._servers.values(), *self._reserved):
            each.close()
        entry.prepare()
        _, links, _, _ = socket.recv_fds(handover, 16, 1)
        if not links:
            os._exit(0)  # the fork server is gone, and there is no order
        os.set_inheritable(links[0], False)
        handover.close()
        entry.main(socket.socket(fileno=links[0]))

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 4096)
        lost = False
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                lost |= status != 0 or pid not in self._supervisors
                self._supervisors.discard(pid)
                if pid == self._spare_pid:
                    self._spare = None
        if lost:
            self._sweep()

    def _sweep(self) -> None:
        """Kill what a dead supervisor left: everything below us that is not a supervisor and not below one."""
        for child in procfs.children(os.getpid()):
            if child not in self._supervisors:
                for pid in [child, *procfs.descendants(child)]:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)


def _ignore(number: int, frame: object) -> None:
    """A handler only so that the signal reaches the wake-up pipe."""


def _lock(folder: str) -> int:
    """The lock that the fork server of this folder holds as long as it lives; -1 when another one does."""
    descriptor = os.open(f"{folder}/{LOCK_NAME}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                return -1
            time.sleep(0.01)


def main(folder: str, version: str, first: int) -> None:
    """Become the fork server of `folder`; `first` is the inherited connection of the server that started it."""
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")
    os.umask(0o077)
    lock = _lock(folder)
    if lock < 0:
        sys.exit(1)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    link = socket.socket(fileno=first)
    link.setblocking(False)
    os.set_inheritable(first, False)
    server = ForkServer(folder, version, link, lock)
    # Pages that the collector never touches stay shared with every supervisor.
    gc.collect()
    gc.freeze()
    gc.disable()
    server.run()
