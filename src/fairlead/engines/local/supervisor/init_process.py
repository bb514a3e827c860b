"""The first process of a pod's own process namespace: starts the command, reaps orphans, and ends everything with it.

Forked on the way from the supervisor to the command (`launch.py`). It stands between the two because the kernel ignores
TERM for a namespace's first process: so the command is the second. Its link to the supervisor carries the command's
wait status; when the supervisor's end of it closes, however that came about, everything in the namespace ends.
Loaded by the fork server, so it imports little.
"""

import contextlib
import os
import select
import signal
import socket
import struct
from typing import NoReturn

from fairlead.engines.local.linux import mount_syscalls, reaping, syscalls
from fairlead.engines.local.linux.mount_syscalls import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_REC

STATUS = struct.Struct("=Bi")
#: What the link carries: the pid of the first process as the supervisor sees it, later the command's wait status.
FIRST, ENDED = 1, 2
#: What root in a pod could change the whole machine with.
_KERNEL_KNOBS = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")


def enter(link: socket.socket, own_ipc: bool, guard_knobs: bool) -> int:
    """Returns in the process that becomes the command, inside new namespaces, with its parent; the others never do."""
    syscalls.unshare(syscalls.CLONE_NEWPID | (syscalls.CLONE_NEWIPC if own_ipc else 0))
    first = os.fork()
    if first:
        link.send(STATUS.pack(FIRST, first))
        os._exit(0)
    _mount_views(own_ipc, guard_knobs)
    command = os.fork()
    if command:
        _watch(command, link)
    return os.getppid()


def relay() -> int:
    """Returns in a child, with its parent, which passes signals on to it and ends as it does."""
    os.setsid()
    child = os.fork()
    if not child:
        return os.getppid()

    def forward(number: int, frame: object) -> None:
        reaping.send(child, number)

    try:
        os.closerange(0, os.sysconf("SC_OPEN_MAX"))
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, forward)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code < 0:
            if -code != signal.SIGKILL:
                signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        os._exit(code)
    finally:
        os._exit(126)


def _mount_views(own_ipc: bool, guard_knobs: bool) -> None:
    mount_syscalls.mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    if own_ipc and os.path.ismount("/dev/mqueue"):
        mount_syscalls.mount("mqueue", "/dev/mqueue", "mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    for path in _KERNEL_KNOBS if guard_knobs else ():
        if os.path.exists(path):
            mount_syscalls.mount(path, path, flags=MS_BIND | MS_REC)
            mount_syscalls.make_read_only(path)


def _watch(command: int, link: socket.socket) -> NoReturn:
    try:
        # The pod must not read our memory, in which the order and its secrets are.
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
        own = link.fileno()
        os.closerange(0, own)
        os.closerange(own + 1, os.sysconf("SC_OPEN_MAX"))
        wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _ignore)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        poll = select.poll()
        poll.register(own, select.POLLIN)
        poll.register(wake, select.POLLIN)
        while True:
            status = reaping.reap(command)
            if status is not None:
                link.send(STATUS.pack(ENDED, status))
                break
            events = poll.poll()
            if any(descriptor == own for descriptor, _ in events):
                break  # the supervisor is gone
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 4096)
    finally:
        os._exit(0)


def _ignore(number: int, frame: object) -> None:
    """A handler only so that the signal reaches the wake-up pipe."""


def receive(link: socket.socket, wanted: int) -> int | None:
    """The number of that kind that waits on the link; None when there is none."""
    with contextlib.suppress(BlockingIOError, ConnectionError):
        while data := link.recv(STATUS.size):
            kind, number = STATUS.unpack(data)
            if kind == wanted:
                return int(number)
    return None
