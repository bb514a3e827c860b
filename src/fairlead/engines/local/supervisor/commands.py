"""The supervisor's half of `exec`: commands that run beside the pod's own.

Ends of pipes and terminals are handed to the server, which moves the bytes: a supervisor stays small, and a session
ends with the server that holds it. Part of the supervisor's loop; it waits only until a command has been executed.
"""

import contextlib
import json
import os
import signal

from fairlead.engines.local import wire
from fairlead.engines.local.launch_order import LaunchOrder
from fairlead.engines.local.supervisor import launch
from fairlead.engines.local.supervisor.peers import Peers


class Commands:
    """Commands that run beside the pod's own, each for one connection."""

    def __init__(self, order: LaunchOrder, peers: Peers) -> None:
        self._order = order
        self._peers = peers
        #: From the command's pid to the connection that asked for it.
        self._waiting: dict[int, int] = {}

    def start(self, descriptor: int, request: wire.Message, main: int) -> None:
        """Run a command in the namespaces of `main`; its ends, or the reason why not, go back to the connection."""
        streams, ours = _open_streams(request)
        failure, report = os.pipe2(os.O_CLOEXEC)
        parent = os.getpid()
        env = self._order.command.env
        if request["tty"]:
            env = {**env, "TERM": request.get("term") or "xterm-256color"}
        command = self._order.command._replace(argv=request["argv"], tty=request["tty"], env=env)
        # Its image is loaded already.
        order = self._order._replace(command=command, container=None)
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            launch.join_command(order, streams, report, parent, main)
        for each in {*streams, report}:
            os.close(each)
        with os.fdopen(failure, "rb") as pipe:
            failed = pipe.read()
        if failed:
            code, message = launch.describe_failure(json.loads(failed), order)
            self._peers.send(descriptor, {"failed": message, "exit": code})
        else:
            self._waiting[pid] = descriptor
            self._peers.send_descriptors(descriptor, {"started": pid}, ours)
        for each in ours:
            os.close(each)

    def on_exit(self, pid: int, status: int) -> None:
        """A child exited; if it was such a command, its exit code goes to its connection."""
        descriptor = self._waiting.pop(pid, None)
        if descriptor is not None:
            code = os.waitstatus_to_exitcode(status)
            self._peers.send(descriptor, {"exit": code if code >= 0 else 128 - code})

    def on_disconnect(self, descriptor: int) -> None:
        """A connection was closed: its command gets HUP, like a program whose terminal was closed."""
        for pid in [pid for pid, waiting in self._waiting.items() if waiting == descriptor]:
            del self._waiting[pid]
            for number in (signal.SIGHUP, signal.SIGCONT):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, number)


def _open_streams(request: wire.Message) -> tuple[tuple[int, int, int], list[int]]:
    """What becomes the command's input, output and error, and our ends of them in the same order."""
    if request["tty"]:
        ours, theirs = os.openpty()
        wire.resize(ours, request.get("columns") or 80, request.get("rows") or 24)
        return (theirs, theirs, theirs), [ours]
    given, sink = os.pipe2(os.O_CLOEXEC)
    output, output_sink = os.pipe2(os.O_CLOEXEC)
    errors, errors_sink = os.pipe2(os.O_CLOEXEC)
    return (given, output_sink, errors_sink), [sink, output, errors]
