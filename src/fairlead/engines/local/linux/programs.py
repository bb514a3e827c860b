"""Runs a program of this machine with a time limit and keeps the end of its output.

No shell, no inherited files. Used in pods' processes on their way to the command; small, because every supervisor
carries it.
"""

import os
import select
import signal
import time
from typing import NamedTuple

from fairlead.engines.local.linux import syscalls

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: What is kept of a program's output: its end, where the reason stands.
KEPT = 2000


class Ended(NamedTuple):
    #: The exit code; if negative, the number of the signal that killed it.
    code: int
    output: str
    out_of_time: bool = False


def find(name: str) -> str | None:
    """The path of a program; None if it cannot be executed. A name that begins with / is the path."""
    if name.startswith("/"):
        return name if os.access(name, os.X_OK) else None
    for folder in PATH.split(":"):
        path = f"{folder}/{name}"
        if os.access(path, os.X_OK):
            return path
    return None


def run(command: list[str], environment: dict[str, str], *, seconds: float, folder: str = "/") -> Ended:
    """Run it with nothing to read; output and error are kept together. Raises FileNotFoundError."""
    path = find(command[0])
    if path is None:
        raise FileNotFoundError(2, f"{command[0]} is not installed on this machine", command[0])
    reading, writing = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        _become(path, command, environment, writing, folder)
    os.close(writing)
    try:
        output, out_of_time = _listen(reading, time.monotonic() + seconds)
    finally:
        os.close(reading)
    if out_of_time:
        os.killpg(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return Ended(os.waitstatus_to_exitcode(status), output, out_of_time)


def _become(path: str, command: list[str], environment: dict[str, str], output: int, folder: str) -> None:
    try:
        os.setpgid(0, 0)
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(folder)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.execve(path, command, environment)
    finally:
        os._exit(127)


def _listen(reading: int, deadline: float) -> tuple[str, bool]:
    """Its output until it exited, and whether the time limit came first."""
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    output = b""
    while True:
        seconds_left = deadline - time.monotonic()
        if seconds_left <= 0 or not poll.poll(seconds_left * 1000):
            return output.decode("utf-8", "replace").strip(), True
        data = os.read(reading, 65_536)
        if not data:
            return output.decode("utf-8", "replace").strip(), False
        output = (output + data)[-KEPT:]
