"""From a fork of the supervisor to the user's command: session, terminal, isolation, identity, directory, exec.

Runs in the child between fork and exec. Whatever fails goes back over a pipe as (step, errno, subject), from which
`describe_failure` makes the words; it never returns.
"""

import errno
import fcntl
import os
import signal
import termios
from typing import Any, NoReturn

from fairlead.engines.local import isolation, syscalls
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


def become_command(order: LaunchOrder, streams: tuple[int, int, int], report: int, parent: int) -> NoReturn:
    """Turn this process into the pod's main process; `streams` become its input, output and error."""
    try:
        _prepare(order, streams, parent)
        _execute(order)
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


def _prepare(order: LaunchOrder, streams: tuple[int, int, int], parent: int) -> None:
    os.setsid()
    if order["tty"]:
        fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.umask(0o022)
    if order["isolation"]:
        try:
            isolation.enter(order["isolation"])
        except OSError as error:
            raise StepFailed("isolation", str(error.filename or ""), error) from error
    _take_identity(order)
    # Only now: a change of user clears it. It ends the main process with its supervisor, even a killed one.
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(137)
    try:
        os.chdir(order["cwd"])
    except OSError as error:
        raise StepFailed("directory", order["cwd"], error) from error
    # Python ignores these, and exec keeps what is ignored; those with handlers go back by themselves.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)


def _take_identity(order: LaunchOrder) -> None:
    try:
        if order["uid"] is not None:
            os.setgroups(order["groups"])
            os.setresgid(order["gid"], order["gid"], order["gid"])
            os.setresuid(order["uid"], order["uid"], order["uid"])
        if order["no_new_privileges"]:
            syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
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


def describe_failure(failure: dict[str, Any], order: LaunchOrder) -> tuple[int, str]:
    """The exit code that a shell would give, and the words: what failed, on what, as the system says it."""
    number: int = failure["errno"]
    reason, subject = os.strerror(number), failure["subject"]
    code = 127 if number in (errno.ENOENT, errno.ENOTDIR) else 126
    if failure["step"] == "command":
        if number == errno.ENOENT and "/" in subject and os.path.exists(os.path.join(order["cwd"], subject)):
            return 127, f"cannot run '{subject}': the interpreter that its first line names: {reason}"
        return code, f"cannot run '{subject}': {reason}"
    if failure["step"] == "directory":
        return code, f"cannot enter the working directory '{subject}': {reason}"
    if failure["step"] == "identity":
        return 126, f"cannot run as user and group {subject}: {reason}"
    if failure["step"] == "session":
        return 126, f"cannot start '{order['argv'][0]}' ({subject}): {reason}"
    return 126, f"cannot isolate the pod from this machine ({subject}): {reason}"
