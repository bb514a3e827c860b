"""One process per pod that supervises it: starts the command, keeps its output and its state, kills what is left.

Forked by the fork server; independent of the server, to which it speaks over sockets. It is a child subreaper, so no
grandchild escapes it, however it detaches. It decides nothing about restarts.
"""

import contextlib
import errno
import os
import select
import signal
import socket
import time
from collections.abc import Callable

from fairlead.engines.local import journal, wire
from fairlead.engines.local.launch_order import Files, LaunchOrder
from fairlead.engines.local.linux import cgroups, procfs, reaping
from fairlead.engines.local.logs.writer import Output
from fairlead.engines.local.network.namespace import PodNetwork
from fairlead.engines.local.network.user_network import UserNetwork
from fairlead.engines.local.supervisor import container as supervisor_container
from fairlead.engines.local.supervisor import ending, init_process, launch, refresh
from fairlead.engines.local.supervisor.commands import Commands
from fairlead.engines.local.supervisor.peers import Peers
from fairlead.engines.local.supervisor.probes import Prober
from fairlead.engines.local.supervisor.remote_exec import RemoteExecBroker
from fairlead.engines.local.supervisor.volume_usage import VolumeUsageCheck

#: How often memory is checked if there is a limit.
MEMORY_PERIOD = 0.25


class Supervisor:
    def __init__(self, order: LaunchOrder, state: journal.Record, claimed: int) -> None:
        self._order = order
        self._state = state
        self._journal = claimed
        #: Our child; and the command itself, which gets the TERM, if that is another process.
        self._main = 0
        self._command = 0
        #: To the first process of the pod's own process namespace.
        self._first: socket.socket | None = None
        self._status: int | None = None
        #: The process that uploads changes of volumes after the end.
        self._uploader = 0
        self._kill_at: float | None = None
        self._memory_at = 0.0
        self._cause = ""
        #: Files that changed since the order: by the place of their volume.
        self._changed_files: dict[str, Files] = {}
        #: Our ends of the command's output and, if it has one, its input.
        self._source = -1
        self._input = -1
        self._output = Output(order.place.logs, order.place.segment_bytes, order.place.segments)
        self._poll = select.poll()
        self.peers = Peers(self._poll, self.on_request, self._on_disconnect)
        self._commands = Commands(order, self.peers)
        asks = order.remote_exec
        self._exec_broker = RemoteExecBroker(asks, _user_of(order), self._poll) if asks else None
        self._network: PodNetwork | UserNetwork | None = None
        self._prober: Prober | None = None
        self._usage_check = VolumeUsageCheck(order.watched, order.watch_seconds) if order.watched else None
        #: Can be read when the container was made; None before and after.
        self._container_made: int | None = None
        self._wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        self._poll.register(self._wake, select.POLLIN)

    def _on_signal(self, number: int, frame: object) -> None:
        # The machine shuts down, or somebody stops us: the pod is stopped too.
        if number in (signal.SIGTERM, signal.SIGINT):
            self._stop(self._order.command.grace)

    def run(self) -> None:
        started = self._start()
        while started and self._status is None:
            self._process_events()
        self._finish()

    # The command

    def _start(self) -> bool:
        """Start the command; False if it never ran, with the reason in the state."""
        if not self._make_groups() or not self._make_network():
            return False
        failure, pid = self._fork_command()
        # While the command is on its way: where others reach us.
        self.peers.listen(self._order.place.control, self._order.place.member)
        failed = self._read_start(failure)
        if failed:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
            ending.describe_failed_start(self._state, self._order, failed)
            return False
        if self._status is not None:
            return False  # stopped while its volumes were filled
        if not self._find_command():
            return True
        if self._container_made is None or self._order.container is None:
            self._on_running()
        else:
            # The runtime may take long to fetch the image; the pod runs when its container does.
            self._poll.register(self._container_made, select.POLLIN)
            self._state.update(reason=supervisor_container.MAKING, message=self._order.container.making)
            self._record()
        if self._kill_at is not None and self._kill_at > time.monotonic():
            self._terminate()
        return True

    def _fork_command(self) -> tuple[int, int]:
        """Fork the process that becomes the command; the pipe over which it reports a failure, and its pid."""
        parent = os.getpid()
        streams, source, self._input = launch.open_streams(self._order)
        failure, report = os.pipe2(os.O_CLOEXEC)
        first = None
        if self._order.rights.own_processes:
            self._first, first = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._state["started_at"] = now_millis()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            if self._order.container is not None:
                launch.become_runtime(self._order, streams, report, parent, self._network_files())
            launch.become_command(self._order, streams, report, parent, self._network_files(), first)
        for descriptor in {*streams, report}:
            os.close(descriptor)
        if first is not None:
            first.close()
        self._main, self._command, self._source = pid, pid, source
        os.set_blocking(source, False)
        self._poll.register(source, select.POLLIN)
        return failure, pid

    def _on_running(self) -> None:
        """The pod's program runs from now on."""
        self._state.update(state="Running", main=self._command, main_start=procfs.start_time(self._command))
        if self._order.isolation is not None:
            self._state["message"] = self._order.isolation.message
        self._record()
        self._refresh_files()
        if self._order.readiness is not None:
            self._prober = Prober(self._order.readiness, self._poll, self._open_socket, time.monotonic())

    def _on_container_made(self) -> None:
        if self._container_made is None:
            return
        self._poll.unregister(self._container_made)
        os.close(self._container_made)
        self._container_made = None
        for member in ("reason", "message"):
            self._state.pop(member, None)
        self._state["started_at"] = now_millis()
        self._on_running()

    def _make_groups(self) -> bool:
        """Make the control groups that enforce the pod's limits; False if that failed, with the reason in the state."""
        container = self._order.container
        try:
            if self._order.limits.groups is not None:
                cgroups.make(self._order.limits.groups)
            if container is not None:
                self._state["container"] = container.remove
                self._container_made = supervisor_container.prepare(container)
        except OSError as error:
            return self._fail(f"cannot make the pod's control group ({error.filename}): {error.strerror}")
        return True

    def _fail(self, message: str) -> bool:
        self._state.update(exit_code=126, reason="StartError", message=message)
        return False

    def _make_network(self) -> bool:
        """Make the pod's own network, if it has one; False if that failed, with the reason in the state."""
        plan, command = self._order.network, self._order.command
        if plan is None:
            return True
        try:
            self._network = UserNetwork(plan) if plan.helper else PodNetwork(plan)
            if self._order.container is not None:
                namespace, container = self._network.namespace, self._order.container
                argv = supervisor_container.join_network(command.argv, plan, namespace, container)
                self._order = self._order._replace(command=command._replace(argv=argv))
        except OSError as error:
            return self._fail(f"cannot make the pod's own network ({error.filename}): {error.strerror}")
        return True

    def _network_files(self) -> launch.NetworkFiles:
        if self._network is None:
            return launch.NetworkFiles()
        return launch.NetworkFiles(self._network.namespace, self._network.user, self._network.ready)

    def _open_socket(self) -> tuple[socket.socket, list[str]]:
        """A socket of the pod's network, and the addresses at which its programs may listen."""
        if self._network is None:
            return socket.socket(socket.AF_INET, socket.SOCK_STREAM), ["127.0.0.1"]
        return self._network.open_socket(), [self._network.address, "127.0.0.1"]

    def _read_start(self, failure: int) -> bytes:
        """What failed on the way to the command, or nothing; peers are served while volumes or images are fetched."""
        container = self._order.container
        if not launch.has_fetches(self._order) and (container is None or not (container.load or container.pull)):
            with os.fdopen(failure, "rb") as pipe:
                return pipe.read()
        self._find_command()
        return self._read_to_end(failure)

    def _read_to_end(self, pipe: int, on_more: Callable[[bytes], None] = lambda _: None) -> bytes:
        """Everything that a child writes, while other events are processed; `on_more` hears what there is so far."""
        os.set_blocking(pipe, False)
        self._poll.register(pipe, select.POLLIN)
        content = b""
        while True:
            try:
                data = os.read(pipe, 65_536)
            except BlockingIOError:
                self._process_events()
                continue
            if not data:
                break
            content += data
            on_more(content)
        self._poll.unregister(pipe)
        os.close(pipe)
        return content

    def _find_command(self) -> bool:
        """Past the first process of a namespace of its own, to the command behind it; False if there never was one."""
        if self._first is None:
            return True
        if self._first.getblocking():
            _, status = os.waitpid(self._main, 0)
            self._first.setblocking(False)
            first = init_process.receive(self._first, init_process.FIRST)
            if first is None:
                # Killed before there was a first process, as a memory limit of a few pages does.
                self._status = status
                return False
            self._main = first
        self._command = next(iter(procfs.children(self._main)), self._main)
        return True

    # Events

    def _process_events(self) -> None:
        """Wait for the next events and process them."""
        for descriptor, _ in self._poll.poll(self._max_wait()):
            if descriptor == self._source:
                self._read_output()
            elif descriptor == self._wake:
                self._reap()
            elif descriptor == self._container_made:
                self._on_container_made()
            elif self.peers.has(descriptor):
                self.peers.on_readable(descriptor)
            elif self._exec_broker is not None and self._exec_broker.has(descriptor):
                self._exec_broker.on_readable(descriptor)
            elif self._prober is not None and self._prober.has(descriptor):
                self._on_probed(self._prober.step(descriptor, time.monotonic()))
        if self._prober is not None:
            self._on_probed(self._prober.tick(time.monotonic()))
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            if self._status is None:
                self._kill_all()
            elif self._uploader:
                reaping.send(self._uploader, signal.SIGKILL)
        if self._usage_check is not None and self._status is None:
            self._evict_if(self._usage_check.check(time.monotonic()))
        if self._order.limits.memory_limit and self._status is None and time.monotonic() >= self._memory_at:
            self._memory_at = time.monotonic() + MEMORY_PERIOD
            self._check_memory()

    def _max_wait(self) -> float | None:
        """Milliseconds until something is due by time; None if nothing is."""
        waits = [MEMORY_PERIOD] if self._order.limits.memory_limit else []
        if self._kill_at is not None:
            waits.append(max(0.0, self._kill_at - time.monotonic()))
        if self._prober is not None:
            waits.append(self._prober.wait(time.monotonic()))
        if self._usage_check is not None and self._status is None:
            waits.append(self._usage_check.wait(time.monotonic()))
        return min(waits) * 1000 if waits else None

    def _read_output(self) -> bool:
        """Write available output to the log; False at its end or if there is none now."""
        try:
            if self._order.command.tty:
                data = os.read(self._source, 65_536)
                self._output.write(data)
                moved = len(data)
            else:
                moved = self._output.take(self._source)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno != errno.EIO:  # a terminal that nothing has open any more
                raise
            moved = 0
        if moved == 0:
            self._poll.unregister(self._source)
            os.close(self._source)
            self._source = -1
            return False
        self.peers.notify_followers()
        return True

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 4096)
        status = reaping.reap(self._main, self._commands.on_exit)
        if status is not None:
            self._status = self._status_of(status)

    def _status_of(self, status: int) -> int:
        """How the command ended, which the first process of its namespace reports before it exits itself."""
        reported = init_process.receive(self._first, init_process.ENDED) if self._first is not None else None
        return status if reported is None else reported

    def _on_probed(self, changed: bool) -> None:
        if changed and self._prober is not None and self._status is None:
            self._state["ready"] = self._prober.is_ready
            self._record()

    def _check_memory(self) -> None:
        limit = self._order.limits.memory_limit or 0
        groups = self._order.limits.groups
        if groups is not None and "memory" in groups.folders:
            if cgroups.is_out_of_memory(groups):
                # One process was killed already; a pod cannot go on with a part of its processes.
                self._kill_all()
            return
        helper = self._network.helper if self._network is not None else 0
        used = reaping.memory_of([pid for pid in procfs.descendants(os.getpid()) if pid != helper], limit)
        if used > limit:
            self._cause = "OOMKilled"
            self._state["message"] = f"used {used} bytes of memory, its limit is {limit}"
            self._kill_all()

    def _evict_if(self, message: str) -> None:
        """Evict the pod if the message says that a folder holds too much."""
        if message:
            self._cause = "Evicted"
            self._state["message"] = message
            self._kill_all()

    def on_request(self, descriptor: int, request: wire.Message) -> None:
        """A request of a connected peer, which may be of another version."""
        verb = request.get("op")
        if verb == "stop":
            self._stop(request["grace"])
        elif verb == "watch":
            self.peers.watchers.add(descriptor)
            self.peers.send(descriptor, {"state": self._state})
        elif verb == "follow":
            self.peers.follow(descriptor)
        elif verb == "refresh":
            self._changed_files = request["files"]
            self._refresh_files()
        elif verb == "end-input" and self._input >= 0:
            os.close(self._input)
            self._input = -1
        elif verb in ("exec", "input", "socket"):
            self._open_session(descriptor, request)

    def _refresh_files(self) -> None:
        """Update files of config maps and secrets in the pod; before its command runs, that waits."""
        if self._changed_files and self._status is None and "main" in self._state:
            refresh.refresh(self._order, self._command, self._changed_files)
            self._changed_files = {}

    def _open_session(self, descriptor: int, request: wire.Message) -> None:
        """Open a session: a command beside the pod's own, its input, or a socket of its network."""
        verb, tty = request["op"], self._order.command.tty
        if self._status is not None or "main" not in self._state:
            self.peers.send(descriptor, {"failed": "the pod is not running"})
        elif verb == "exec":
            command = supervisor_container.exec_in(self._order.container, request)
            self._commands.start(descriptor, command, self._command)
        elif verb == "input":
            given = self._source if tty else self._input
            self.peers.send_descriptors(descriptor, {"tty": tty}, [given] if given >= 0 else [])
        else:
            with self._open_socket()[0] as opened:
                self.peers.send_descriptors(descriptor, {}, [opened.fileno()])

    def _on_disconnect(self, descriptor: int) -> None:
        self._commands.on_disconnect(descriptor)

    # The end

    def _stop(self, grace: int) -> None:
        """TERM to the main process once; a later request can only shorten what is left of the grace."""
        deadline = time.monotonic() + grace
        first = self._kill_at is None
        if first:
            self._reap()
            self._state["by_itself"] = self._status is not None
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

    def _finish(self) -> None:
        self._state["ended_at"] = now_millis()
        self._state.setdefault("by_itself", True)
        if reaping.has_children():
            self._kill_all()
            if reaping.has_children():
                self._state["message"] = "some of its processes could not be killed"
        while self._source >= 0 and self._read_output():
            pass
        if self._container_made is not None and supervisor_container.is_made(self._container_made):
            self._on_container_made()
        self._state["state"] = "Exited"
        is_stopped = self._kill_at is not None
        if ending.is_container_out_of_memory(self._state, self._order, self._status, is_stopped=is_stopped):
            self._cause, self._state["message"] = "OOMKilled", "used more memory than its limit"
        if self._status is not None and "exit_code" not in self._state:
            ending.describe(self._state, self._order, os.waitstatus_to_exitcode(self._status), self._cause)
        self._upload_changes()
        if self._output.failure:
            self._state["message"] = f"{self._state.get('message', '')} ({self._output.failure})".strip()
        self._output.close()
        if self._order.limits.groups is not None:
            cgroups.remove(self._order.limits.groups)
        if self._prober is not None:
            self._prober.close()
        if self._network is not None:
            self._network.close()
        self._record(durable=True)
        self.peers.leave(self._order.place.control, self._order.place.member)

    def _upload_changes(self) -> None:
        """Upload changes of fetched buckets, within what is left of the grace period."""
        plan = launch.upload_plan(self._order)
        if "main" not in self._state or plan is None:
            return
        if self._network is not None:
            self._network.join()
        answer, report = os.pipe2(os.O_CLOEXEC)
        self._uploader = os.fork()
        if self._uploader == 0:
            signal.set_wakeup_fd(-1)
            launch.become_uploader(plan, report, self._network_files())
        os.close(report)
        self.peers.end_following()
        ended = dict(self._state)
        # Until everything is uploaded, the pod runs: whoever asks now must not take it for ended.
        for member in ("exit_code", "signal", "ended_at"):
            self._state.pop(member, None)
        self._state.update(state="Running", reason="", message="")
        output = self._read_to_end(answer, self._report_progress)
        self._state.clear()
        self._state.update(ended)
        ending.describe_upload(self._state, output)

    def _report_progress(self, output: bytes) -> None:
        """Watchers only: after a crash it does not matter how far the upload was."""
        text = ending.read_progress(output).get("progress")
        if text:
            self._state.update(reason=ending.UPLOADING, message=text)
            self.peers.notify_watchers({"state": self._state})

    def _record(self, durable: bool = False) -> None:
        """Write the state and notify watchers. The last one is synced: it is all that remains of the pod."""
        journal.append(self._journal, self._state, durable=durable)
        self.peers.notify_watchers({"state": self._state})


def _user_of(order: LaunchOrder) -> int | None:
    """As whom the pod's programs run; None if only its container knows."""
    if order.container is not None:
        return None
    return os.geteuid() if order.rights.uid is None else order.rights.uid


def now_millis() -> int:
    return time.time_ns() // 1_000_000
