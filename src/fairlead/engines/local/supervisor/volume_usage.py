"""Checks the size of folders that no file system limits. Part of the supervisor, which it never blocks for long."""

import contextlib
import os
import stat
import time
from collections.abc import Iterator, Sequence

from fairlead.engines.local.launch_order import WatchedFolder

#: How long one check may take before the supervisor goes on with other work.
SLICE_SECONDS = 0.02


class VolumeUsageCheck:
    """Checks its folders periodically, a slice at a time; `check` gives a message when one holds too much."""

    def __init__(self, folders: Sequence[WatchedFolder], period: float) -> None:
        self._folders = folders
        self._period = period
        self._next = time.monotonic() + period
        self._walk: Iterator[str] | None = None

    def wait(self, now: float) -> float:
        """Seconds until the next check is due."""
        return 0.0 if self._walk is not None else max(0.0, self._next - now)

    def check(self, now: float) -> str:
        """Which folder holds more than its size; empty if none does."""
        if self._walk is None:
            if now < self._next:
                return ""
            self._walk = self._measure()
        until = now + SLICE_SECONDS
        for message in self._walk:
            if message:
                return message
            if time.monotonic() >= until:
                return ""
        self._walk = None
        self._next = time.monotonic() + self._period
        return ""

    def _measure(self) -> Iterator[str]:
        for folder in self._folders:
            used = 0
            for size in _sizes(folder.path):
                used += size
                yield ""
            if used > folder.limit:
                yield f"{folder.field} holds {used} bytes, its size is {folder.limit}"


def _sizes(path: str) -> Iterator[int]:
    """What each file below a folder takes on the disk, without following links; hard links count once."""
    seen: set[int] = set()
    folders = [path]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                state = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(state.st_mode):
                    folders.append(entry.path)
                elif state.st_nlink > 1:
                    if state.st_ino in seen:
                        continue
                    seen.add(state.st_ino)
                yield state.st_blocks * 512
