"""One process per pod that watches over it: starts the command, keeps its output and its state, ends what is left.

Forked by the fork server; independent of the server, to which it speaks over sockets. It is a child subreaper, so no
grandchild escapes it, however it detaches. It decides nothing about restarts.
"""

import contextlib
import errno
import json
import os
import select
import signal
import socket
import sys
import time
from typing import NoReturn

from fairlead.engines.local import journal, launch, procfs, reaping, syscalls, wire
from fairlead.engines.local.output import Output
from fairlead.engines.local.peers import Peers

#: How long a fork waits for its order before it gives up; the server sends it at once.
ORDER_SECONDS = 30.0
#: How often memory is looked at where a limit is set.
MEMORY_PERIOD = 0.25


def main(link: socket.socket) -> NoReturn:
    """Supervise the attempt whose order comes over `link`, to its end."""
    code = 1
    try:
        _claim_and_run(link)
        code = 0
    except BaseException:  # the end of this process: say why where the operator looks, and leave
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def prepare() -> None:
    """What can be done before there is an order."""
    os.setsid()
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)


def _claim_and_run(link: socket.socket) -> None:
    inbox = wire.Inbox()
    orders: list[wire.Message] = []
    link.settimeout(ORDER_SECONDS)
    while not orders:
        data = link.recv(65_536)
        if not data:
            return
        orders = list(inbox.feed(data))
    link.setblocking(False)
    order = orders[0]
    state = {
        "workload": order["workload"],
        "pod": order["pod"],
        "attempt": order["attempt"],
        "boot": procfs.boot_id(),
        "pid": os.getpid(),
        "start": procfs.start_time(os.getpid()),
        "state": "Starting",
        "started_at": _now(),
    }
    try:
        claimed = journal.claim(order["journal"], state)
    except FileExistsError:
        link.send(wire.encode({"exists": True}))
        return
    supervisor = Supervisor(order, state, claimed)
    supervisor.peers.adopt(link, inbox)
    supervisor.peers.watchers.add(link.fileno())
    for request in orders[1:]:
        supervisor.obey(link.fileno(), request)
    supervisor.run()


class Supervisor:
    def __init__(self, order: launch.LaunchOrder, state: journal.Record, claimed: int) -> None:
        self._order = order
        self._state = state
        self._journal = claimed
        self._main = 0
        self._status: int | None = None
        self._kill_at: float | None = None
        self._memory_at = 0.0
        self._cause = ""
        #: Our ends of the command's output and, where it has one, its input.
        self._source = -1
        self._input = -1
        self._output = Output(order["logs"], order["segment_bytes"], order["segments"])
        self._poll = select.poll()
        self.peers = Peers(self._poll, self.obey)
        self._wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        self._poll.register(self._wake, select.POLLIN)

    def _on_signal(self, number: int, frame: object) -> None:
        # The machine is going down, or somebody ends us politely: so does the pod.
        if number in (signal.SIGTERM, signal.SIGINT):
            self._stop(self._order["grace"])

    def run(self) -> None:
        started = self._start()
        while started and self._status is None:
            self._turn()
        self._end()

    # The command

    def _start(self) -> bool:
        """Start the command; False when it never came to run, with the reason in the state."""
        parent = os.getpid()
        streams, source = self._streams()
        failure, report = os.pipe2(os.O_CLOEXEC)
        self._state["started_at"] = _now()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            launch.become_command(self._order, streams, report, parent)
        for descriptor in {*streams, report}:
            os.close(descriptor)
        self._main, self._source = pid, source
        os.set_blocking(source, False)
        self._poll.register(source, select.POLLIN)
        # While the command is on its way: where others reach us.
        self.peers.listen(self._order["control"])
        with os.fdopen(failure, "rb") as pipe:
            words = pipe.read()
        if words:
            os.waitpid(pid, 0)
            code, message = launch.describe_failure(json.loads(words), self._order)
            self._state.update(exit_code=code, reason="StartError", message=message)
            return False
        self._state.update(state="Running", main=pid, main_start=procfs.start_time(pid))
        if self._order["isolation"]:
            self._state["message"] = self._order["isolation"]["words"]
        self._record()
        if self._kill_at is not None and self._kill_at > time.monotonic():
            self._terminate()
        return True

    def _streams(self) -> tuple[tuple[int, int, int], int]:
        """What becomes the command's input, output and error, and our end of its output."""
        if self._order["tty"]:
            ours, theirs = os.openpty()
            return (theirs, theirs, theirs), ours
        ours, theirs = os.pipe2(os.O_CLOEXEC)
        if self._order["stdin"]:
            given, self._input = os.pipe2(os.O_CLOEXEC)
        else:
            given = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        return (given, theirs, theirs), ours

    # The watch

    def _turn(self) -> None:
        """Wait for the next thing to happen, and see to it."""
        for descriptor, _ in self._poll.poll(self._patience()):
            if descriptor == self._source:
                self._take_output()
            elif descriptor == self._wake:
                self._reap()
            elif self.peers.has(descriptor):
                self.peers.hear(descriptor)
        if self._kill_at is not None and time.monotonic() >= self._kill_at and self._status is None:
            self._kill_all()
        if self._order["memory_limit"] and self._status is None and time.monotonic() >= self._memory_at:
            self._memory_at = time.monotonic() + MEMORY_PERIOD
            self._check_memory()

    def _patience(self) -> float | None:
        waits = [MEMORY_PERIOD] if self._order["memory_limit"] else []
        if self._kill_at is not None:
            waits.append(max(0.0, self._kill_at - time.monotonic()))
        return min(waits) * 1000 if waits else None

    def _take_output(self) -> bool:
        """Move what there is of output; False at its end or when there is none now."""
        try:
            if self._order["tty"]:
                data = os.read(self._source, 65_536)
                self._output.write(data)
                moved = len(data)
            else:
                moved = self._output.take(self._source)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno != errno.EIO:  # a terminal whose last user has left
                raise
            moved = 0
        if moved == 0:
            self._poll.unregister(self._source)
            os.close(self._source)
            self._source = -1
            return False
        self.peers.poke_followers()
        return True

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 4096)
        status = reaping.reap(self._main)
        if status is not None:
            self._status = status

    def _check_memory(self) -> None:
        limit: int = self._order["memory_limit"]
        used = reaping.memory_of(procfs.descendants(os.getpid()), limit)
        if used > limit:
            self._cause = "OOMKilled"
            self._state["message"] = f"used {used} bytes of memory, its limit is {limit}"
            self._kill_all()

    def obey(self, descriptor: int, request: wire.Message) -> None:
        """One request of a connected peer: stop the pod, hear of its state, hear of new output."""
        verb = request.get("op")
        if verb == "stop":
            self._stop(request["grace"])
        elif verb == "watch":
            self.peers.watchers.add(descriptor)
            self.peers.send(descriptor, {"state": self._state})
        elif verb == "follow":
            self.peers.followers.add(descriptor)
            # What came since the follower last looked was told to nobody.
            self.peers.send(descriptor, {})

    # The end

    def _stop(self, grace: int) -> None:
        """TERM to the main process once; a later request can only shorten what is left of the grace."""
        deadline = time.monotonic() + grace
        first = self._kill_at is None
        self._kill_at = deadline if self._kill_at is None else min(self._kill_at, deadline)
        if first and grace > 0:
            self._terminate()

    def _terminate(self) -> None:
        if self._main and self._status is None:
            reaping.send(self._main, signal.SIGTERM)

    def _kill_all(self) -> None:
        status = reaping.kill_all(self._main)
        if self._status is None:
            self._status = status

    def _end(self) -> None:
        self._state["ended_at"] = _now()
        if reaping.has_children():
            self._kill_all()
            if reaping.has_children():
                self._state["message"] = "some of its processes could not be killed"
        while self._source >= 0 and self._take_output():
            pass
        self._state["state"] = "Exited"
        if self._status is not None and self._state.get("reason") != "StartError":
            self._describe_end(os.waitstatus_to_exitcode(self._status))
        if self._output.failure:
            self._state["message"] = f"{self._state.get('message', '')} ({self._output.failure})".strip()
        self._output.close()
        self._record(durable=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._order["control"])

    def _describe_end(self, code: int) -> None:
        if code >= 0:
            self._state["exit_code"] = code
        else:
            self._state.update(exit_code=128 - code, signal=-code)
        if self._cause:
            self._state["reason"] = self._cause
        elif code == 0:
            self._state.pop("message", None)
        else:
            name = f"signal {-code} ({_signal_name(-code)})" if code < 0 else f"exit code {code}"
            self._state.update(reason="Error", message=f"ended with {name}")

    def _record(self, durable: bool = False) -> None:
        """Write the state and tell who watches. The last one is synced: it is all that remains of the pod."""
        journal.append(self._journal, self._state, durable=durable)
        self.peers.tell_watchers({"state": self._state})


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "real-time"


def _now() -> int:
    return time.time_ns() // 1_000_000
