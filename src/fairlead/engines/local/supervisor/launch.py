"""From a fork of the supervisor to the user's command: session, terminal, isolation, identity, directory, exec.

Runs in the child between fork and exec, and never returns. A failure goes back over a pipe as (step, errno, subject),
from which `describe_failure` makes the message.
"""

import binascii
import errno
import fcntl
import os
import signal
import socket
import termios
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from fairlead.engines.local.launch_order import (
    CommandLine,
    ContainerRun,
    FetchPlan,
    LaunchOrder,
    ProcessLimits,
    ProcessRights,
)
from fairlead.engines.local.linux import capabilities, cgroups, seccomp, syscalls
from fairlead.engines.local.network import namespace as network_namespace
from fairlead.engines.local.network import user_network
from fairlead.engines.local.storage import staging
from fairlead.engines.local.storage.fetching import FetchFailed, Fetching
from fairlead.engines.local.storage.mounts import MountFailed
from fairlead.engines.local.supervisor import container, init_process, isolation
from fairlead.engines.local.wire import HEADER, Message, encode


class NetworkFiles(NamedTuple):
    """Open files of the pod's own network, of the user namespace that owns it, and of what says that it is ready.

    -1 for none.
    """

    network: int = -1
    user: int = -1
    ready: int = -1


class StepFailed(Exception):
    """A step towards the command went wrong; `error` says how, `subject` on what."""

    def __init__(self, step: str, subject: str, error: OSError) -> None:
        super().__init__(step)
        self.step = step
        self.subject = subject
        self.error = error


#: The namespaces that a pod may have of its own, in the order in which they can be entered.
_NAMESPACES = ("user", "mnt", "net", "uts", "ipc", "pid")


def open_streams(order: LaunchOrder) -> tuple[tuple[int, int, int], int, int]:
    """What becomes the command's input, output and error; our end of its output; and that of its input, or -1."""
    if order.command.tty:
        ours, theirs = os.openpty()
        return (theirs, theirs, theirs), ours, -1
    ours, theirs = os.pipe2(os.O_CLOEXEC)
    if order.command.stdin:
        given, sink = os.pipe2(os.O_CLOEXEC)
        return (given, theirs, theirs), ours, sink
    if order.command.input:
        return (_open_input(order.command.input), theirs, theirs), ours, -1
    return (os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), theirs, theirs), ours, -1


def _open_input(content: str) -> int:
    """A file in memory that every attempt reads from its beginning."""
    descriptor = os.memfd_create("input", os.MFD_CLOEXEC)
    data = binascii.a2b_base64(content)
    while data:
        data = data[os.write(descriptor, data) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def become_command(
    order: LaunchOrder,
    streams: tuple[int, int, int],
    report: int,
    parent: int,
    files: NetworkFiles,
    first: socket.socket | None,
) -> NoReturn:
    """Turn this process into the pod's main process; `streams` become its input, output and error.

    `first` is the link of the first process of its own process namespace.
    """
    # Opened while the host is in sight.
    fetching = Fetching(order.fetches) if has_fetches(order) and order.container is None else None

    def leave_host() -> int:
        if order.network is not None:
            network_namespace.enter(order.network, files.network, files.user)
        if order.isolation is not None:
            isolation.enter(order.isolation)
        if files.ready >= 0:
            # Only now: meanwhile the helper has done its part.
            user_network.wait_until_ready(files.ready)
        if first is None:
            return parent
        return init_process.enter(first, order.rights.own_ipc, order.rights.guard_knobs)

    _become(order, streams, report, leave_host, fetching)


def become_runtime(
    order: LaunchOrder, streams: tuple[int, int, int], report: int, parent: int, files: NetworkFiles
) -> NoReturn:
    """Turn this process into the runtime's command, which enters the pod's network and makes its view itself."""

    def prepare_container() -> int:
        if order.fetching is not None:
            _fetch_first(order.fetching, report, files)
        if order.container is not None and order.container.staged:
            staging.enter(order.container)
        if order.container is not None and order.container.enters_network and files.network >= 0:
            _enter_network(order.container, order.command, files.network)
        return parent

    _become(order, streams, report, prepare_container)


def _enter_network(run: ContainerRun, command: CommandLine, network: int) -> None:
    """Let the runtime's command run in the pod's own network, once its image is there."""
    # TERM ends this process at once.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        container.pull_image(run, command.env)
    except OSError as error:
        raise StepFailed("image", str(error.filename or ""), error) from error
    syscalls.setns(network, syscalls.CLONE_NEWNET)


def has_fetches(order: LaunchOrder) -> bool:
    return bool(order.fetches.git or order.fetches.buckets)


def join_command(order: LaunchOrder, streams: tuple[int, int, int], report: int, parent: int, main: int) -> NoReturn:
    """Turn this process into a command that runs beside `main`, in the same namespaces and as the same user."""

    def join() -> int:
        folder = f"/proc/{main}/ns"
        files = [(name, os.open(f"{folder}/{name}", os.O_RDONLY | os.O_CLOEXEC)) for name in _NAMESPACES]
        # Compared before any is entered: another /proc may not know us.
        other = {name: file for name, file in files if os.fstat(file).st_ino != os.stat(f"/proc/self/ns/{name}").st_ino}
        for namespace in other.values():
            syscalls.setns(namespace, 0)
        # A process namespace holds for children only.
        return init_process.relay() if "pid" in other else parent

    _become(order, streams, report, join)


def _become(
    order: LaunchOrder,
    streams: tuple[int, int, int],
    report: int,
    enter: Callable[[], int],
    fetching: Fetching | None = None,
) -> NoReturn:
    try:
        _prepare(order, streams, enter)
        if fetching is not None:
            fetching.run()
        command = _load_image(order)
        _enter_directory(command)
        _execute(command)
    except FetchFailed as failed:
        _report(report, "fetch", str(failed), 0)
    except MountFailed as failed:
        _report(report, "volume", f"{failed.field} ({failed.subject}): {failed.error.strerror}", failed.error.errno)
    except StepFailed as failed:
        _report(report, failed.step, failed.subject, failed.error.errno)
    except OSError as error:
        _report(report, "session", str(error.filename or ""), error.errno)
    except ValueError as error:  # a byte that no argument or variable can hold
        _report(report, "session", str(error), errno.EINVAL)
    finally:
        os._exit(127)


def _report(descriptor: int, step: str, subject: str, number: int | None) -> None:
    os.write(descriptor, encode({"step": step, "subject": subject, "errno": number or 0})[HEADER.size :])


def _prepare(order: LaunchOrder, streams: tuple[int, int, int], enter: Callable[[], int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.umask(0o022)
    _apply_limits(order.limits)
    try:
        parent = enter()
    except OSError as error:
        raise StepFailed("isolation", str(error.filename or ""), error) from error
    os.setsid()
    if order.command.tty:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    _apply_rights(order.rights)
    # Only now: a change of user clears it. It ends the main process with its supervisor, even a killed one.
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(137)
    # Exec keeps what is ignored: Python ignores some signals, and nohup, under which the server may run, another. Those
    # with handlers go back by themselves.
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def _enter_directory(command: CommandLine) -> None:
    try:
        if command.makes_cwd:
            os.makedirs(command.cwd, exist_ok=True)
        os.chdir(command.cwd)
    except OSError as error:
        raise StepFailed("directory", command.cwd, error) from error


def _apply_limits(limits: ProcessLimits) -> None:
    try:
        if limits.groups is not None:
            cgroups.enter(limits.groups)
        if limits.affinity:
            os.sched_setaffinity(0, limits.affinity)
        if limits.priority:
            os.setpriority(os.PRIO_PROCESS, 0, limits.priority)
    except OSError as error:
        raise StepFailed("limits", str(error.filename or ""), error) from error


def _apply_rights(rights: ProcessRights) -> None:
    uid, gid = rights.uid, rights.gid
    try:
        if rights.bounding is not None:
            capabilities.limit(rights.bounding)
        if rights.no_new_privileges:
            syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        if rights.filtered:
            # While we are root: afterwards it requires no-new-privileges, which the pod need not have asked for.
            seccomp.apply(rights.added)
        if uid is not None and gid is not None:
            if rights.ambient:
                capabilities.keep_over_change_of_user()
            os.setgroups(rights.user_groups)
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
            if rights.ambient:
                capabilities.grant(rights.ambient)
    except OSError as error:
        raise StepFailed("identity", f"{uid}:{gid}", error) from error


def _execute(command: CommandLine) -> NoReturn:
    program = command.argv[0]
    if "/" in program:
        candidates = [program]
    else:
        folders = command.env.get("PATH", os.defpath).split(":")
        candidates = [f"{folder or '.'}/{program}" for folder in folders]
    refused = OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    for path in candidates:
        try:
            os.execve(path, list(command.argv), command.env)
        except OSError as error:
            # A file that exists but may not be run says more than its absence elsewhere.
            if error.errno not in (errno.ENOENT, errno.ENOTDIR) or refused.errno == errno.ENOENT:
                refused = error
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
                break
    raise StepFailed("command", program, refused) from refused


def _load_image(order: LaunchOrder) -> CommandLine:
    """The command to run; if a runtime has to load the image from a file first, with the name that it has there."""
    if order.container is None or order.container.load is None:
        return order.command
    # TERM ends this process at once.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        return container.load_image(order.container, order.command)
    except OSError as error:
        raise StepFailed("image", str(error.filename or ""), error) from error


def _fetch_first(plan: FetchPlan, report: int, files: NetworkFiles) -> None:
    """Fill a container's volumes in a process of its own; if that fails it has said why, and this process ends."""
    child = os.fork()
    if child == 0:
        _become_fetcher(plan, report, files)
    # TERM ends this process at once, and the other with it.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if os.waitpid(child, 0)[1] != 0:
        os._exit(127)


def _become_fetcher(plan: FetchPlan, report: int, files: NetworkFiles) -> NoReturn:
    code = 1
    try:
        fetching = Fetching(plan.fetches)
        _enter_as_fetcher(plan, files)
        fetching.run()
        code = 0
    except FetchFailed as failed:
        _report(report, "fetch", str(failed), 0)
    except MountFailed as failed:
        _report(report, "volume", f"{failed.field} ({failed.subject}): {failed.error.strerror}", failed.error.errno)
    except StepFailed as failed:
        _report(report, failed.step, failed.subject, failed.error.errno)
    except OSError as error:
        _report(report, "isolation", str(error.filename or ""), error.errno)
    finally:
        os._exit(code)


def _enter_as_fetcher(plan: FetchPlan, files: NetworkFiles) -> None:
    if files.user >= 0:
        syscalls.setns(files.user, syscalls.CLONE_NEWUSER)
    if files.network >= 0:
        syscalls.setns(files.network, syscalls.CLONE_NEWNET)
    isolation.enter(plan.isolation)
    _apply_rights(plan.rights)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)


def upload_plan(order: LaunchOrder) -> FetchPlan | None:
    """Who uploads changes of buckets after the end; None if nothing is to be uploaded."""
    if not order.fetches.buckets:
        return None
    if order.fetching is not None or order.isolation is None:
        return order.fetching
    return FetchPlan(order.isolation, order.fetches, order.rights)


def become_uploader(plan: FetchPlan, report: int, files: NetworkFiles) -> NoReturn:
    """Upload changes of volumes to where they were fetched from: in the same view, as the same user.

    It reports in lines: how far it is, and last what failed.
    """

    def write(line: Message) -> None:
        os.write(report, encode(line)[HEADER.size :] + b"\n")

    failure = ""
    try:
        fetching = Fetching(plan.fetches)
        _enter_as_fetcher(plan, files)
        failure = fetching.upload_changes(lambda text: write({"progress": text}))
    except (StepFailed, MountFailed) as failed:
        failure = f"{failed.subject}: {failed.error.strerror}"
    except OSError as error:
        failure = f"{error.filename}: {error.strerror}"
    finally:
        write({"failure": failure})
        os._exit(0)


def describe_failure(failure: Message, order: LaunchOrder) -> tuple[int, str]:
    """The exit code that a shell would give, and the message: what failed, on what, and the system's reason."""
    number: int = failure["errno"]
    step: str = failure["step"]
    reason, subject = os.strerror(number), failure["subject"]
    code = 127 if number in (errno.ENOENT, errno.ENOTDIR) else 126
    if step == "command":
        if number == errno.ENOENT and "/" in subject and os.path.exists(os.path.join(order.command.cwd, subject)):
            return 127, f"cannot run '{subject}': the interpreter that its first line names: {reason}"
        return code, f"cannot run '{subject}': {reason}"
    if step == "directory":
        return code, f"cannot enter the working directory '{subject}': {reason}"
    if step == "fetch":
        return 1, subject
    messages = {
        "image": (125, f"the runtime could not load the image '{subject}', see its output in the log"),
        "volume": (126, f"cannot provide {subject}"),
        "identity": (126, f"cannot run as user and group {subject}: {reason}"),
        "limits": (126, f"cannot apply the pod's limits ({subject}): {reason}"),
        "session": (126, f"cannot start '{order.command.argv[0]}' ({subject}): {reason}"),
    }
    return messages.get(step, (126, f"cannot isolate the pod from this machine ({subject}): {reason}"))


def describe_code(code: int) -> str:
    """How a process ended, for people; below zero it was a signal."""
    if code >= 0:
        return f"exit code {code}"
    known = {number.value: number.name for number in signal.Signals}
    return f"signal {-code} ({known.get(-code, 'real-time')})"
