"""Ending processes so that none is left: reap, walk, kill. For the supervisor, and for the engine after a lost one.

Loaded by the fork server too, so it imports little.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable

from fairlead.engines.local.linux import procfs

#: After this, what still lives cannot be killed by us (another user's, or stuck in the kernel).
KILL_SECONDS = 10.0
_PAGE = os.sysconf("SC_PAGE_SIZE")


def reap(main: int, note: Callable[[int, int], None] | None = None) -> int | None:
    """Take every child that ended; the wait status of `main` when it was among them. Others go to `note`."""
    main_status = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == main:
                main_status = status
            elif note is not None:
                note(pid, status)
    return main_status


def has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def kill_all(main: int) -> int | None:
    """Kill everything below this process and wait until nothing is left; the wait status of `main`.

    Stopped before it is killed: what stands still cannot fork, so one look finds the rest of a family that grows.
    """
    main_status: int | None = None
    deadline = time.monotonic() + KILL_SECONDS
    while time.monotonic() < deadline:
        _freeze_and_kill(os.getpid())
        status = reap(main)
        main_status = status if main_status is None else main_status
        if not has_children():
            break
        time.sleep(0.001)
    return main_status


def _freeze_and_kill(root: int) -> None:
    seen: set[int] = set()
    while True:
        fresh = [pid for pid in procfs.descendants(root) if pid not in seen]
        if not fresh:
            break
        seen.update(fresh)
        for pid in fresh:
            send(pid, signal.SIGSTOP)
    for pid in seen:
        send(pid, signal.SIGKILL)


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def kill_marked(mark: str) -> bool:
    """Kill what a lost supervisor left of an attempt, known by its mark; whether nothing of it lives any more."""
    deadline = time.monotonic() + KILL_SECONDS
    while time.monotonic() < deadline:
        remaining = procfs.marked(mark)
        if not remaining:
            return True
        for pid in remaining:
            send(pid, signal.SIGSTOP)
        for pid in remaining:
            send(pid, signal.SIGKILL)
        time.sleep(0.002)
    return False


def memory_of(pids: list[int], limit: int) -> int:
    """Bytes that these processes hold: their resident pages, or, where that is over the limit, shared ones once."""
    resident = sum(_resident(pid) for pid in pids)
    return resident if resident <= limit else sum(_proportional(pid) for pid in pids)


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE
    return 0


def _proportional(pid: int) -> int:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", "rb") as file:
        for line in file:
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    return 0
