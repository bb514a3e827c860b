"""Passes requests of a pod's programs to run a command in another pod of the group on to that pod's supervisor.

Part of the supervisor of a pod that may do so. The kernel names the process behind every connection, which must belong
to this pod. The pods that can be asked are those that put their names into one folder. Never waits.
"""

import contextlib
import os
import select
import socket
import struct

from fairlead.engines.local import wire
from fairlead.engines.local.launch_order import RemoteExecPlan
from fairlead.engines.local.linux import procfs

#: What the program in the pod connects to, in its own folder (`remote_agent.py`).
SOCKET = "socket"
_CREDENTIALS = struct.Struct("iii")
_PIECE = 65_536


def register(member: str, control: str) -> None:
    """Publish the pod's name in the folder of its group until `withdraw`; it replaces that of an earlier attempt."""
    own = f"{member}.{os.getpid()}"
    while True:
        os.makedirs(os.path.dirname(member), mode=0o700, exist_ok=True)
        try:
            os.symlink(control, own)
            os.rename(own, member)
            return
        except FileNotFoundError:
            continue  # the last pod of the group removed the folder in between


def withdraw(member: str, control: str) -> None:
    with contextlib.suppress(OSError):
        if os.readlink(member) == control:
            os.unlink(member)
        # The last pod of the group removes the folder.
        os.rmdir(os.path.dirname(member))


class _Line:
    """One request: from whom, and whose supervisor it was passed on to."""

    __slots__ = ("answers", "asker", "asks", "other")

    def __init__(self, asker: socket.socket) -> None:
        self.asker = asker
        self.asks = wire.Inbox()
        self.other: socket.socket | None = None
        self.answers = wire.Inbox()


class RemoteExecBroker:
    def __init__(self, plan: RemoteExecPlan, uid: int | None, poll: select.poll) -> None:
        self._members = plan.members
        #: As whom the pod's programs run; None in a container, which may have users of its own.
        self._uid = uid
        self._poll = poll
        self._lines: dict[int, _Line] = {}
        os.makedirs(os.path.dirname(plan.folder), mode=0o700, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(plan.folder)
        os.chmod(plan.folder, 0o755)  # noqa: S103 - the pod's user reads it; its parent folder is closed to others
        path = os.path.join(plan.folder, SOCKET)
        self._listener = wire.listen(path)
        os.chmod(path, 0o666)  # noqa: S103 - who asks is checked at every connection
        poll.register(self._listener.fileno(), select.POLLIN)

    def has(self, descriptor: int) -> bool:
        return descriptor in self._lines or descriptor == self._listener.fileno()

    def on_readable(self, descriptor: int) -> None:
        """A descriptor can be read: a new connection, a request, an answer, or the end of one."""
        if descriptor == self._listener.fileno():
            self._accept()
            return
        line = self._lines[descriptor]
        try:
            if line.other is not None and descriptor == line.other.fileno():
                alive = self._answer(line)
            else:
                alive = self._ask(line)
        except BlockingIOError:
            return
        except (OSError, ValueError, KeyError):
            alive = False
        if not alive:
            self._drop(line)

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            asker, _ = self._listener.accept()
            if not self._is_of_pod(asker):
                asker.close()
                return
            asker.setblocking(False)
            self._lines[asker.fileno()] = _Line(asker)
            self._poll.register(asker.fileno(), select.POLLIN)

    def _is_of_pod(self, asker: socket.socket) -> bool:
        """Whether the process at the other end runs below this supervisor and, where that is one, as the pod's user."""
        credentials = asker.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, _ = _CREDENTIALS.unpack(credentials)
        return self._uid in (None, uid) and procfs.is_below(pid, os.getpid())

    def _ask(self, line: _Line) -> bool:
        """Pass a request on; False when the connection was closed."""
        data = line.asker.recv(_PIECE)
        for request in line.asks.feed(data):
            if line.other is not None:
                return False  # one request each
            self._pass_on(line, str(request["pod"]), list(request["argv"]))
        return bool(data)

    def _pass_on(self, line: _Line, pod: str, argv: list[str]) -> None:
        if "/" in pod or pod in ("", ".", ".."):
            line.asker.send(wire.encode({"failed": f"'{pod}' is not the name of a pod", "exit": 255}))
            return
        try:
            other = wire.connect(f"{self._members}/{pod}")
        except OSError:
            line.asker.send(wire.encode({"failed": f"no pod '{pod}' runs that this pod may run commands in"}))
            return
        line.other = other
        self._lines[other.fileno()] = line
        self._poll.register(other.fileno(), select.POLLIN)
        other.send(wire.encode({"op": "exec", "argv": argv, "tty": False}))

    def _answer(self, line: _Line) -> bool:
        """Pass an answer back with the open files that came with it; False at the end."""
        if line.other is None:
            return False
        data, files, _, _ = socket.recv_fds(line.other, _PIECE, 4)
        try:
            for message in line.answers.feed(data):
                socket.send_fds(line.asker, [wire.encode(message)], files)
        finally:
            for each in files:
                os.close(each)
        return bool(data)

    def _drop(self, line: _Line) -> None:
        for link in (line.asker, line.other):
            if link is not None:
                self._lines.pop(link.fileno(), None)
                self._poll.unregister(link.fileno())
                link.close()
