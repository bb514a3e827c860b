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
import time

from fairlead.engines.local import journal, wire
from fairlead.engines.local.linux import cgroups, procfs, reaping
from fairlead.engines.local.logs.writer import Output
from fairlead.engines.local.network.namespace import PodNetwork
from fairlead.engines.local.network.pasta import UserNetwork
from fairlead.engines.local.supervisor import container as supervisor_container
from fairlead.engines.local.supervisor import init_process, launch, refresh
from fairlead.engines.local.supervisor.commands import Commands
from fairlead.engines.local.supervisor.peers import Peers
from fairlead.engines.local.supervisor.probes import Prober
from fairlead.engines.local.supervisor.remote_exec import RemoteExecBroker
from fairlead.engines.local.supervisor.volume_usage import VolumeUsageCheck

#: How often memory is looked at where a limit is set.
MEMORY_PERIOD = 0.25


class Supervisor:
    def __init__(self, order: launch.LaunchOrder, state: journal.Record, claimed: int) -> None:
        self._order = order
        self._state = state
        self._journal = claimed
        #: Our child; and who gets the TERM, the command itself, where it is not the same.
        self._main = 0
        self._command = 0
        #: To the first process of the pod's own process namespace.
        self._first: socket.socket | None = None
        self._status: int | None = None
        #: Who brings changes of volumes back after the end.
        self._finisher = 0
        self._kill_at: float | None = None
        self._memory_at = 0.0
        self._cause = ""
        #: Files that changed since the order: by the place of their volume.
        self._refreshed: dict[str, dict[str, tuple[str, int]]] = {}
        #: Our ends of the command's output and, where it has one, its input.
        self._source = -1
        self._input = -1
        self._output = Output(order["logs"], order["segment_bytes"], order["segments"])
        self._poll = select.poll()
        self.peers = Peers(self._poll, self.obey, self._farewell)
        self._commands = Commands(order, self.peers)
        self._envoy = RemoteExecBroker(order["commands"], _user_of(order), self._poll) if order["commands"] else None
        self._network: PodNetwork | UserNetwork | None = None
        self._prober: Prober | None = None
        self._gauge = VolumeUsageCheck(order["gauges"], order["gauge_seconds"]) if order["gauges"] else None
        #: What tells that the container was made, while it is awaited.
        self._sign: int | None = None
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
        if not self._make_groups() or not self._join_network():
            return False
        streams, source, self._input = launch.open_streams(self._order)
        failure, report = os.pipe2(os.O_CLOEXEC)
        first = None
        if self._order["own_processes"]:
            self._first, first = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._state["started_at"] = now_millis()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            launch.become_command(self._order, streams, report, parent, self._network_file(), first)
        for descriptor in {*streams, report}:
            os.close(descriptor)
        if first is not None:
            first.close()
        self._main, self._command, self._source = pid, pid, source
        os.set_blocking(source, False)
        self._poll.register(source, select.POLLIN)
        # While the command is on its way: where others reach us.
        self.peers.listen(self._order["control"], self._order["member"])
        words = self._hear_start(failure)
        if words:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
            problem = json.loads(words)
            code, message = launch.describe_failure(problem, self._order)
            reason = "FetchError" if problem["step"] == "fetch" else "StartError"
            self._state.update(exit_code=code, reason=reason, message=message)
            return False
        if self._status is not None:
            return False  # told to end while its volumes were filled
        self._find_command()
        if self._sign is None:
            self._note_running()
        else:
            # The runtime may take long to fetch the image; the pod runs when its container does.
            self._poll.register(self._sign, select.POLLIN)
            self._state.update(reason=supervisor_container.MAKING, message=self._order["container"]["making"])
            self._record()
        if self._kill_at is not None and self._kill_at > time.monotonic():
            self._terminate()
        return True

    def _note_running(self) -> None:
        """The pod's program runs from now on."""
        self._state.update(state="Running", main=self._command, main_start=procfs.start_time(self._command))
        if self._order["isolation"]:
            self._state["message"] = self._order["isolation"]["words"]
        self._record()
        self._refresh_files()
        if self._order["probe"]:
            self._prober = Prober(self._order["probe"], self._poll, self._socket, time.monotonic())

    def _note_sign(self) -> None:
        """The runtime has made the container."""
        if self._sign is None:
            return
        self._poll.unregister(self._sign)
        os.close(self._sign)
        self._sign = None
        for word in ("reason", "message"):
            self._state.pop(word, None)
        self._state["started_at"] = now_millis()
        self._note_running()

    def _make_groups(self) -> bool:
        """Make the groups that hold the pod to its limits; False when that failed, with the reason in the state."""
        try:
            if self._order["groups"]:
                cgroups.make(self._order["groups"])
            if self._order["container"]:
                self._state["container"] = self._order["container"]["remove"]
                self._sign = supervisor_container.prepare(self._order["container"])
        except OSError as error:
            return self._fail(f"cannot make the pod's control group ({error.filename}): {error.strerror}")
        return True

    def _fail(self, words: str) -> bool:
        self._state.update(exit_code=126, reason="StartError", message=words)
        return False

    def _join_network(self) -> bool:
        """Make the pod's own network, where it has one; False when that failed, with the reason in the state."""
        if not self._order["network"]:
            return True
        try:
            made = UserNetwork if "pasta" in self._order["network"] else PodNetwork
            self._network = made(self._order["network"])
            self._order["user_file"] = self._network.user
            if self._order["container"]:
                supervisor_container.connect(self._order, self._network.namespace)
        except OSError as error:
            return self._fail(f"cannot make the pod's own network ({error.filename}): {error.strerror}")
        return True

    def _network_file(self) -> int:
        return self._network.namespace if self._network is not None else -1

    def _socket(self) -> tuple[socket.socket, list[str]]:
        """A socket of the pod's network, and the addresses at which its programs may listen."""
        if self._network is None:
            return socket.socket(socket.AF_INET, socket.SOCK_STREAM), ["127.0.0.1"]
        return self._network.open_socket(), [self._network.address, "127.0.0.1"]

    def _hear_start(self, failure: int) -> bytes:
        """What went wrong on the way to the command, or nothing; peers are heard while volumes or images are."""
        container = self._order["container"]
        if not self._order["fetches"] and not (container and container["load"]):
            with os.fdopen(failure, "rb") as pipe:
                return pipe.read()
        self._find_command()
        return self._hear(failure)

    def _hear(self, pipe: int) -> bytes:
        """Everything that a child says, while the watch goes on."""
        os.set_blocking(pipe, False)
        self._poll.register(pipe, select.POLLIN)
        words = b""
        while True:
            try:
                data = os.read(pipe, 65_536)
            except BlockingIOError:
                self._turn()
                continue
            if not data:
                break
            words += data
        self._poll.unregister(pipe)
        os.close(pipe)
        return words

    def _find_command(self) -> None:
        """Past the first process of a namespace of its own, to the command behind it."""
        if self._first is None:
            return
        if self._first.getblocking():
            os.waitpid(self._main, 0)
            self._first.setblocking(False)
            self._main = init_process.receive(self._first, init_process.FIRST) or self._main
        self._command = next(iter(procfs.children(self._main)), self._main)

    # The watch

    def _turn(self) -> None:
        """Wait for the next thing to happen, and see to it."""
        for descriptor, _ in self._poll.poll(self._patience()):
            if descriptor == self._source:
                self._take_output()
            elif descriptor == self._wake:
                self._reap()
            elif descriptor == self._sign:
                self._note_sign()
            elif self.peers.has(descriptor):
                self.peers.hear(descriptor)
            elif self._envoy is not None and self._envoy.has(descriptor):
                self._envoy.hear(descriptor)
            elif self._prober is not None and self._prober.has(descriptor):
                self._note_readiness(self._prober.step(time.monotonic()))
        if self._prober is not None:
            self._note_readiness(self._prober.tick(time.monotonic()))
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            if self._status is None:
                self._kill_all()
            elif self._finisher:
                reaping.send(self._finisher, signal.SIGKILL)
        if self._gauge is not None and self._status is None:
            self._check_sizes(self._gauge.check(time.monotonic()))
        if self._order["memory_limit"] and self._status is None and time.monotonic() >= self._memory_at:
            self._memory_at = time.monotonic() + MEMORY_PERIOD
            self._check_memory()

    def _patience(self) -> float | None:
        waits = [MEMORY_PERIOD] if self._order["memory_limit"] else []
        if self._kill_at is not None:
            waits.append(max(0.0, self._kill_at - time.monotonic()))
        if self._prober is not None:
            waits.append(self._prober.wait(time.monotonic()))
        if self._gauge is not None and self._status is None:
            waits.append(self._gauge.wait(time.monotonic()))
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
        status = reaping.reap(self._main, self._commands.note_end)
        if status is not None:
            self._status = self._status_of(status)

    def _status_of(self, status: int) -> int:
        """How the command ended, which the first process of its namespace told before it ended itself."""
        told = init_process.receive(self._first, init_process.ENDED) if self._first is not None else None
        return status if told is None else told

    def _note_readiness(self, changed: bool) -> None:
        if changed and self._prober is not None and self._status is None:
            self._state["ready"] = self._prober.is_ready
            self._record()

    def _check_memory(self) -> None:
        limit: int = self._order["memory_limit"]
        groups = self._order["groups"]
        if groups and "memory" in groups["folders"]:
            if cgroups.has_run_out(groups):
                # One process is gone already; a pod that lost one is no longer what it was.
                self._kill_all()
            return
        helper = self._network.helper if self._network is not None else 0
        used = reaping.memory_of([pid for pid in procfs.descendants(os.getpid()) if pid != helper], limit)
        if used > limit:
            self._cause = "OOMKilled"
            self._state["message"] = f"used {used} bytes of memory, its limit is {limit}"
            self._kill_all()

    def _check_sizes(self, words: str) -> None:
        if words:
            self._cause = "Evicted"
            self._state["message"] = words
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
        elif verb == "refresh":
            self._refreshed = request["files"]
            self._refresh_files()
        elif verb in ("exec", "input", "socket"):
            self._open_session(descriptor, request)

    def _refresh_files(self) -> None:
        """Show the pod what changed of its config maps and secrets; before its command runs, that waits."""
        if self._refreshed and self._status is None and "main" in self._state:
            refresh.refresh(self._order, self._command, self._refreshed)
            self._refreshed = {}

    def _open_session(self, descriptor: int, request: wire.Message) -> None:
        """What somebody opens into the pod: a command beside it, its input, a socket of its network."""
        verb = request["op"]
        if self._status is not None or "main" not in self._state:
            self.peers.send(descriptor, {"failed": "the pod does not run"})
        elif verb == "exec":
            self._commands.start(
                descriptor, supervisor_container.beside(self._order["container"], request), self._command
            )
        elif verb == "input":
            given = self._source if self._order["tty"] else self._input
            self.peers.send_descriptors(descriptor, {"tty": self._order["tty"]}, [given] if given >= 0 else [])
        else:
            with self._socket()[0] as made:
                self.peers.send_descriptors(descriptor, {}, [made.fileno()])

    def _farewell(self, descriptor: int) -> None:
        self._commands.end_of(descriptor)

    # The end

    def _stop(self, grace: int) -> None:
        """TERM to the main process once; a later request can only shorten what is left of the grace."""
        deadline = time.monotonic() + grace
        first = self._kill_at is None
        self._kill_at = deadline if self._kill_at is None else min(self._kill_at, deadline)
        if first and grace > 0:
            self._terminate()

    def _terminate(self) -> None:
        if self._command == self._main:
            self._find_command()
        if self._command and self._status is None:
            reaping.send(self._command, signal.SIGTERM)

    def _kill_all(self) -> None:
        status = reaping.kill_all(self._main)
        if self._status is None and status is not None:
            self._status = self._status_of(status)

    def _end(self) -> None:
        self._state["ended_at"] = now_millis()
        if reaping.has_children():
            self._kill_all()
            if reaping.has_children():
                self._state["message"] = "some of its processes could not be killed"
        while self._source >= 0 and self._take_output():
            pass
        if self._sign is not None and supervisor_container.has_sign(self._sign):
            self._note_sign()
        self._state["state"] = "Exited"
        if self._order["container"] and supervisor_container.conclude(
            self._order, self._status, is_made="main" in self._state, is_stopped=self._kill_at is not None
        ):
            self._cause, self._state["message"] = "OOMKilled", "used more memory than its limit"
        if self._status is not None and "exit_code" not in self._state:
            self._describe_end(os.waitstatus_to_exitcode(self._status))
        self._bring_back()
        if self._output.failure:
            self._state["message"] = f"{self._state.get('message', '')} ({self._output.failure})".strip()
        self._output.close()
        if self._order["groups"]:
            cgroups.remove(self._order["groups"])
        if self._prober is not None:
            self._prober.close()
        if self._network is not None:
            self._network.close()
        self._record(durable=True)
        self.peers.leave(self._order["control"], self._order["member"])

    def _bring_back(self) -> None:
        """Changes of fetched volumes go back to where they came from, within what is left of the grace."""
        if "main" not in self._state or not any("manifest" in fetch for fetch in self._order["fetches"]):
            return
        if self._network is not None:
            self._network.join()
        answer, report = os.pipe2(os.O_CLOEXEC)
        finisher = os.fork()
        if finisher == 0:
            signal.set_wakeup_fd(-1)
            launch.become_finisher(self._order["fetching"] or self._order, report, self._network_file())
        os.close(report)
        words = self._hear_finisher(answer, finisher)
        if words:
            self._state["message"] = f"{self._state.get('message', '')} {words}".strip()
            if self._state["exit_code"] == 0:
                self._state.update(exit_code=1, reason="FetchError")

    def _hear_finisher(self, answer: int, finisher: int) -> str:
        self._finisher = finisher
        told = self._hear(answer)
        return str(json.loads(told)["words"]) if told else "changes could not be brought back within the grace"

    def _describe_end(self, code: int) -> None:
        if code >= 0:
            self._state["exit_code"] = code
        else:
            self._state.update(exit_code=128 - code, signal=-code)
        groups = self._order["groups"]
        if code != 0 and groups and cgroups.has_run_out(groups):
            self._cause = "OOMKilled"
            self._state["message"] = f"used more memory than its limit of {self._order['memory_limit']} bytes"
        if self._cause:
            self._state["reason"] = self._cause
        elif code == 0:
            for word in ("reason", "message"):
                self._state.pop(word, None)
        else:
            more = supervisor_container.explain(self._order["container"], code, is_made="main" in self._state)
            self._state.update(reason="Error", message=f"ended with {launch.describe_code(code)}{more}")

    def _record(self, durable: bool = False) -> None:
        """Write the state and tell who watches. The last one is synced: it is all that remains of the pod."""
        journal.append(self._journal, self._state, durable=durable)
        self.peers.tell_watchers({"state": self._state})


def _user_of(order: launch.LaunchOrder) -> int | None:
    """As whom the pod's programs run; None where only its container knows."""
    if order["container"]:
        return None
    return os.geteuid() if order["uid"] is None else int(order["uid"])


def now_millis() -> int:
    return time.time_ns() // 1_000_000
