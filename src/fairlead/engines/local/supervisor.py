"""One process per pod that watches over it: starts the command, keeps its output and its state, ends what is left.

Forked by the fork server; independent of the server, to which it speaks over sockets. It is a child subreaper, so no
grandchild escapes it, however it detaches. It decides nothing about restarts.
"""

import contextlib
import errno
import json
import os
import pty
import select
import signal
import socket
import time
import traceback
from typing import Any, NoReturn

from fairlead.engines.local import launch, procfs, reaping, syscalls, wire
from fairlead.engines.local.output import Output

CLAIM, STATE, CONTROL = "claim", "state", "control"
#: How long a fork waits for its order before it gives up; the server sends it at once.
ORDER_SECONDS = 30.0
#: How often memory is looked at where a limit is set.
MEMORY_PERIOD = 0.25


def main(link: socket.socket) -> NoReturn:
    """Supervise the attempt whose order comes over `link`, to its end."""
    code = 1
    try:
        os.setsid()
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        supervisor = _claim(link)
        if supervisor is not None:
            supervisor.run()
        code = 0
    except BaseException:  # the end of this process: say why where the operator looks, and leave
        traceback.print_exc()
    finally:
        os._exit(code)


def _claim(link: socket.socket) -> "Supervisor | None":
    """The supervisor of the attempt that is ordered; None when it has one already."""
    inbox = wire.Inbox()
    orders: list[wire.Message] = []
    link.settimeout(ORDER_SECONDS)
    while not orders:
        data = link.recv(65_536)
        if not data:
            return None
        orders = list(inbox.feed(data))
    link.setblocking(False)
    order = orders[0]
    identity = {
        "workload": order["workload"],
        "pod": order["pod"],
        "attempt": order["attempt"],
        "boot": procfs.boot_id(),
        "pid": os.getpid(),
        "start": procfs.start_time(os.getpid()),
        "cgroup": order["cgroup"],
    }
    live = order["live"]
    os.makedirs(live, mode=0o700, exist_ok=True)
    written = f"{live}/{CLAIM}.{os.getpid()}"
    with open(written, "w") as file:
        json.dump(identity, file)
    try:
        # Exclusive and complete at once: whoever finds a claim can read whose it is.
        os.link(written, f"{live}/{CLAIM}")
    except FileExistsError:
        link.send(wire.encode({"exists": True}))
        return None
    finally:
        os.unlink(written)
    supervisor = Supervisor(order, identity)
    supervisor.adopt(link, inbox)
    for request in orders[1:]:
        supervisor.obey(link.fileno(), request)
    return supervisor


class Supervisor:
    def __init__(self, order: launch.LaunchOrder, identity: dict[str, Any]) -> None:
        self._order = order
        self._state: dict[str, Any] = {**identity, "state": "Starting"}
        self._live: str = order["live"]
        self._links: dict[int, tuple[socket.socket, wire.Inbox]] = {}
        self._watchers: set[int] = set()
        self._followers: set[int] = set()
        self._main = 0
        self._status: int | None = None
        self._kill_at: float | None = None
        self._cause = ""
        self._source = -1
        self._input = -1
        self._poll = select.poll()
        self._output = Output(order["logs"], order["segment_bytes"], order["segments"])
        self._listener = wire.listen(f"{self._live}/{CONTROL}")
        self._wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        for descriptor in (self._listener.fileno(), self._wake):
            self._poll.register(descriptor, select.POLLIN)

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
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            launch.become_command(self._order, streams, report, parent)
        for descriptor in {*streams, report}:
            os.close(descriptor)
        self._main, self._source = pid, source
        os.set_blocking(source, False)
        self._poll.register(source, select.POLLIN)
        self._state["started_at"] = _now()
        with os.fdopen(failure, "rb") as pipe:
            words = pipe.read()
        if words:
            os.waitpid(pid, 0)
            code, message = launch.describe_failure(json.loads(words), self._order)
            self._state.update(exit_code=code, reason="StartError", message=message)
            return False
        self._state.update(state="Running", main=pid, main_start=procfs.start_time(pid))
        self._record()
        if self._kill_at is not None:
            self._terminate()
        return True

    def _streams(self) -> tuple[tuple[int, int, int], int]:
        """What becomes the command's input, output and error, and our end of its output."""
        if self._order["tty"]:
            ours, theirs = pty.openpty()
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
            elif descriptor == self._listener.fileno():
                self._accept()
            elif descriptor in self._links:
                self._hear(descriptor)
        now = time.monotonic()
        if self._kill_at is not None and now >= self._kill_at and self._status is None:
            self._kill_all()
        if self._order["memory_limit"] and self._status is None:
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
        for descriptor in list(self._followers):
            self._send(descriptor, {})
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

    # Requests

    def adopt(self, link: socket.socket, inbox: wire.Inbox) -> None:
        """Take over the connection on which the order came: it hears of every change."""
        self._links[link.fileno()] = (link, inbox)
        self._watchers.add(link.fileno())
        self._poll.register(link.fileno(), select.POLLIN)

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            link, _ = self._listener.accept()
            link.setblocking(False)
            self._links[link.fileno()] = (link, wire.Inbox())
            self._poll.register(link.fileno(), select.POLLIN)

    def _hear(self, descriptor: int) -> None:
        link, inbox = self._links[descriptor]
        try:
            data = link.recv(65_536)
            requests = list(inbox.feed(data))
        except BlockingIOError:
            return
        except (OSError, ValueError):
            data, requests = b"", []
        for request in requests:
            self.obey(descriptor, request)
        if not data:
            self._drop(descriptor)

    def obey(self, descriptor: int, request: wire.Message) -> None:
        """One request of a connected peer: stop the pod, hear of its state, hear of new output."""
        verb = request.get("op")
        if verb == "stop":
            self._stop(request["grace"])
        elif verb == "watch":
            self._watchers.add(descriptor)
            self._send(descriptor, {"state": self._state})
        elif verb == "follow":
            self._followers.add(descriptor)
            # What came since the follower last looked was told to nobody.
            self._send(descriptor, {})

    def _send(self, descriptor: int, message: wire.Message) -> None:
        """Best effort: who does not read in time reads the files instead."""
        try:
            self._links[descriptor][0].send(wire.encode(message))
        except BlockingIOError:
            pass
        except OSError:
            self._drop(descriptor)

    def _drop(self, descriptor: int) -> None:
        link, _ = self._links.pop(descriptor, (None, None))
        self._watchers.discard(descriptor)
        self._followers.discard(descriptor)
        if link is not None:
            self._poll.unregister(descriptor)
            link.close()

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
        status = reaping.kill_all(self._main, self._order["cgroup"])
        if self._status is None:
            self._status = status

    def _end(self) -> None:
        self._state["ended_at"] = _now()
        if self._status is None or reaping.has_children():
            self._kill_all()
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
            os.unlink(f"{self._live}/{CONTROL}")

    def _describe_end(self, code: int) -> None:
        if code >= 0:
            self._state["exit_code"] = code
        else:
            self._state.update(exit_code=128 - code, signal=-code)
        if self._cause:
            self._state["reason"] = self._cause
        elif code != 0:
            name = f"signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"exit code {code}"
            self._state.update(reason="Error", message=f"ended with {name}")

    def _record(self, durable: bool = False) -> None:
        """Write the state and tell who watches. The last one is synced: it is all that remains of the pod."""
        path = f"{self._live}/{STATE}"
        with open(f"{path}.new", "w") as file:
            json.dump(self._state, file)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(f"{path}.new", path)
        for descriptor in list(self._watchers):
            self._send(descriptor, {"state": self._state})


def _now() -> int:
    return time.time_ns() // 1_000_000
