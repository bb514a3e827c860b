"""From a fork of the supervisor to the user's command: session, terminal, isolation, identity, directory, exec.

Runs in the child between fork and exec. Whatever fails goes back over a pipe as (step, errno, subject), from which
`describe_failure` makes the words; it never returns.
"""

import errno
import fcntl
import os
import signal
import socket
import termios
from collections.abc import Callable
from typing import Any, NoReturn

from fairlead.engines.local.linux import capabilities, cgroups, seccomp, syscalls
from fairlead.engines.local.network import namespace as network_namespace
from fairlead.engines.local.storage import staging
from fairlead.engines.local.storage.fetching import FetchFailed, Fetching
from fairlead.engines.local.storage.mounts import MountFailed
from fairlead.engines.local.supervisor import container, init_process, isolation
from fairlead.engines.local.wire import HEADER, encode

#: The order to start one attempt, as the engine sends it (see `orders.render_order`).
LaunchOrder = dict[str, Any]


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
    if order["tty"]:
        ours, theirs = os.openpty()
        return (theirs, theirs, theirs), ours, -1
    ours, theirs = os.pipe2(os.O_CLOEXEC)
    if order["stdin"]:
        given, sink = os.pipe2(os.O_CLOEXEC)
        return (given, theirs, theirs), ours, sink
    return (os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), theirs, theirs), ours, -1


def become_command(
    order: LaunchOrder,
    streams: tuple[int, int, int],
    report: int,
    parent: int,
    namespace: int,
    first: socket.socket | None,
) -> NoReturn:
    """Turn this process into the pod's main process; `streams` become its input, output and error.

    `namespace` is the pod's own network, or -1; `first` the link of the first process of its own process namespace.
    """

    # Opened while the host is in sight.
    fetching = Fetching(order) if order["fetches"] and not order["container"] else None

    def leave_host() -> int:
        if order["container"]:
            # The runtime enters the pod's network and makes its view; what it needs for that is prepared here.
            if order["fetching"]:
                _fetch_first(order["fetching"], report, namespace)
            if order["container"]["staged"]:
                staging.enter(order["container"])
            if order["container"]["load"]:
                _load_image(order)
            return parent
        if order["network"]:
            network_namespace.enter(order["network"], namespace, order["user_file"])
        if order["isolation"]:
            isolation.enter(order["isolation"])
        if first is None:
            return parent
        return init_process.enter(first, order["own_ipc"], order["guard_knobs"])

    _become(order, streams, report, leave_host, fetching)


def join_command(order: LaunchOrder, streams: tuple[int, int, int], report: int, parent: int, main: int) -> NoReturn:
    """Turn this process into a command that runs beside `main`, in the same namespaces and as the same user."""

    def join() -> int:
        folder = f"/proc/{main}/ns"
        files = [(name, os.open(f"{folder}/{name}", os.O_RDONLY | os.O_CLOEXEC)) for name in _NAMESPACES]
        # Looked at before any is entered: another /proc may not know us.
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
        _enter_directory(order)
        _execute(order)
    except FetchFailed as failed:
        _report(report, "fetch", str(failed), 0)
    except MountFailed as failed:
        words = f"{failed.field} ({failed.subject}): {failed.error.strerror}"
        _report(report, "volume", words, failed.error.errno)
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
    _take_limits(order)
    try:
        parent = enter()
    except OSError as error:
        raise StepFailed("isolation", str(error.filename or ""), error) from error
    os.setsid()
    if order["tty"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    _take_identity(order)
    # Only now: a change of user clears it. It ends the main process with its supervisor, even a killed one.
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(137)
    # Python ignores these, and exec keeps what is ignored; those with handlers go back by themselves.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)


def _enter_directory(order: LaunchOrder) -> None:
    try:
        if order["makes_cwd"]:
            os.makedirs(order["cwd"], exist_ok=True)
        os.chdir(order["cwd"])
    except OSError as error:
        raise StepFailed("directory", order["cwd"], error) from error


def _take_limits(order: LaunchOrder) -> None:
    try:
        if order["groups"]:
            cgroups.enter(order["groups"])
        if order["affinity"]:
            os.sched_setaffinity(0, order["affinity"])
        if order["priority"]:
            os.setpriority(os.PRIO_PROCESS, 0, order["priority"])
    except OSError as error:
        raise StepFailed("limits", str(error.filename or ""), error) from error


def _take_identity(order: LaunchOrder) -> None:
    try:
        if order["bounding"] is not None:
            capabilities.limit(order["bounding"])
        if order["no_new_privileges"]:
            syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        if order["filtered"]:
            # While we are root: afterwards it takes no new privileges, which the pod need not have asked for.
            seccomp.apply(order["added"])
        if order["uid"] is not None:
            if order["ambient"]:
                capabilities.keep_over_change_of_user()
            os.setgroups(order["user_groups"])
            os.setresgid(order["gid"], order["gid"], order["gid"])
            os.setresuid(order["uid"], order["uid"], order["uid"])
            if order["ambient"]:
                capabilities.grant(order["ambient"])
    except OSError as error:
        raise StepFailed("identity", f"{order['uid']}:{order['gid']}", error) from error


def _execute(order: LaunchOrder) -> NoReturn:
    command, environment = order["argv"][0], order["env"]
    if "/" in command:
        candidates = [command]
    else:
        folders = environment.get("PATH", os.defpath).split(":")
        candidates = [f"{folder or '.'}/{command}" for folder in folders]
    refused = OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    for path in candidates:
        try:
            os.execve(path, order["argv"], environment)
        except OSError as error:
            # A file that is there but may not be run says more than its absence elsewhere.
            if error.errno not in (errno.ENOENT, errno.ENOTDIR) or refused.errno == errno.ENOENT:
                refused = error
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
                break
    raise StepFailed("command", command, refused) from refused


def _load_image(order: LaunchOrder) -> None:
    # Told to end meanwhile, this process just ends.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        container.load(order)
    except OSError as error:
        raise StepFailed("image", str(error.filename or ""), error) from error


def _fetch_first(order: LaunchOrder, report: int, namespace: int) -> None:
    """Fill a container's volumes in a process of its own; where that fails it has said why, and this one ends."""
    child = os.fork()
    if child == 0:
        _become_fetcher(order, report, namespace)
    # Told to end meanwhile, this process just ends, and the other with it.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if os.waitpid(child, 0)[1] != 0:
        os._exit(127)


def _become_fetcher(order: LaunchOrder, report: int, namespace: int) -> NoReturn:
    code = 1
    try:
        fetching = Fetching(order)
        _enter_as_fetcher(order, namespace)
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


def _enter_as_fetcher(order: LaunchOrder, namespace: int) -> None:
    if order.get("user_file", -1) >= 0:
        syscalls.setns(order["user_file"], syscalls.CLONE_NEWUSER)
    if namespace >= 0:
        syscalls.setns(namespace, syscalls.CLONE_NEWNET)
    isolation.enter(order["isolation"])
    _take_identity(order)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)


def become_finisher(order: LaunchOrder, report: int, namespace: int) -> NoReturn:
    """Bring changes of volumes back to where they were fetched from: in the same view, as the same user."""
    words = ""
    try:
        fetching = Fetching(order)
        _enter_as_fetcher(order, namespace)
        words = fetching.bring_back()
    except (StepFailed, MountFailed) as failed:
        words = f"{failed.subject}: {failed.error.strerror}"
    except OSError as error:
        words = f"{error.filename}: {error.strerror}"
    finally:
        os.write(report, encode({"words": words})[HEADER.size :])
        os._exit(0)


def describe_failure(failure: dict[str, Any], order: LaunchOrder) -> tuple[int, str]:
    """The exit code that a shell would give, and the words: what failed, on what, as the system says it."""
    number: int = failure["errno"]
    reason, subject = os.strerror(number), failure["subject"]
    code = 127 if number in (errno.ENOENT, errno.ENOTDIR) else 126
    if failure["step"] == "command":
        if number == errno.ENOENT and "/" in subject and os.path.exists(os.path.join(order["cwd"], subject)):
            return 127, f"cannot run '{subject}': the interpreter that its first line names: {reason}"
        return code, f"cannot run '{subject}': {reason}"
    if failure["step"] == "fetch":
        return 1, subject
    if failure["step"] == "image":
        return 125, f"the runtime could not load the image in '{subject}', its words are in the log"
    if failure["step"] == "volume":
        return 126, f"cannot provide {subject}"
    if failure["step"] == "directory":
        return code, f"cannot enter the working directory '{subject}': {reason}"
    if failure["step"] == "identity":
        return 126, f"cannot run as user and group {subject}: {reason}"
    if failure["step"] == "limits":
        return 126, f"cannot hold the pod to its limits ({subject}): {reason}"
    if failure["step"] == "session":
        return 126, f"cannot start '{order['argv'][0]}' ({subject}): {reason}"
    return 126, f"cannot isolate the pod from this machine ({subject}): {reason}"


def describe_code(code: int) -> str:
    """How a process ended, in words; below zero it was a signal."""
    if code >= 0:
        return f"exit code {code}"
    known = {number.value: number.name for number in signal.Signals}
    return f"signal {-code} ({known.get(-code, 'real-time')})"
