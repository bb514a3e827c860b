"""The supervisor's half of what people open into a pod: commands run beside it, its input, sockets of its network.

Ends of pipes and terminals are handed to the server, which moves the bytes: a supervisor stays small, and a session
ends with the server that holds it. Part of the supervisor's loop; it waits only until a command has been executed.
"""

import contextlib
import fcntl
import json
import os
import signal
import struct
import termios
from typing import Any

from fairlead.engines.local.supervisor import launch
from fairlead.engines.local.supervisor.peers import Peers


class Commands:
    """Commands that run beside the pod's own, each for one connection."""

    def __init__(self, order: launch.LaunchOrder, peers: Peers) -> None:
        self._order = order
        self._peers = peers
        #: From the command's pid to the connection that asked for it.
        self._waiting: dict[int, int] = {}

    def start(self, descriptor: int, request: dict[str, Any], main: int) -> None:
        """Run a command in the namespaces of `main`; its ends, or the reason why not, go back to the connection."""
        streams, ours = _open_streams(request)
        failure, report = os.pipe2(os.O_CLOEXEC)
        parent = os.getpid()
        order = {**self._order, "argv": request["argv"], "tty": request["tty"]}
        if request["tty"]:
            order["env"] = {**order["env"], "TERM": request.get("term") or "xterm-256color"}
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            launch.join_command(order, streams, report, parent, main)
        for each in {*streams, report}:
            os.close(each)
        with os.fdopen(failure, "rb") as pipe:
            words = pipe.read()
        if words:
            code, message = launch.describe_failure(json.loads(words), order)
            self._peers.send(descriptor, {"failed": message, "exit": code})
        else:
            self._waiting[pid] = descriptor
            self._peers.send_descriptors(descriptor, {"started": pid}, ours)
        for each in ours:
            os.close(each)

    def note_end(self, pid: int, status: int) -> None:
        """A child ended; if it was such a command, its connection is told how."""
        descriptor = self._waiting.pop(pid, None)
        if descriptor is not None:
            code = os.waitstatus_to_exitcode(status)
            self._peers.send(descriptor, {"exit": code if code >= 0 else 128 - code})

    def end_of(self, descriptor: int) -> None:
        """Nobody listens to a command any more: it is hung up on, like a program whose terminal went away."""
        for pid in [pid for pid, waiting in self._waiting.items() if waiting == descriptor]:
            del self._waiting[pid]
            for number in (signal.SIGHUP, signal.SIGCONT):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, number)


def _open_streams(request: dict[str, Any]) -> tuple[tuple[int, int, int], list[int]]:
    """What becomes the command's input, output and error, and our ends of them in the same order."""
    if request["tty"]:
        ours, theirs = os.openpty()
        resize(ours, request.get("columns") or 80, request.get("rows") or 24)
        return (theirs, theirs, theirs), [ours]
    given, sink = os.pipe2(os.O_CLOEXEC)
    output, output_sink = os.pipe2(os.O_CLOEXEC)
    errors, errors_sink = os.pipe2(os.O_CLOEXEC)
    return (given, output_sink, errors_sink), [sink, output, errors]


def resize(terminal: int, columns: int, rows: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
