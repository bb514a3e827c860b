"""Watches how much folders hold that no file system bounds. Part of the supervisor, which it never keeps for long."""

import contextlib
import os
import stat
import time
from collections.abc import Iterator

#: How long one look may take before the supervisor sees to other things again.
SLICE_SECONDS = 0.02


class VolumeUsageCheck:
    """Looks at its folders every so often, a slice at a time; `check` gives the words when one holds too much."""

    def __init__(self, folders: list[tuple[str, int, str]], period: float) -> None:
        self._folders = folders
        self._period = period
        self._next = time.monotonic() + period
        self._walk: Iterator[str] | None = None

    def wait(self, now: float) -> float:
        """Seconds until it wants to be asked again."""
        return 0.0 if self._walk is not None else max(0.0, self._next - now)

    def check(self, now: float) -> str:
        """Nothing, or which folder holds how much of how much."""
        if self._walk is None:
            if now < self._next:
                return ""
            self._walk = self._look()
        until = now + SLICE_SECONDS
        for words in self._walk:
            if words:
                return words
            if time.monotonic() >= until:
                return ""
        self._walk = None
        self._next = time.monotonic() + self._period
        return ""

    def _look(self) -> Iterator[str]:
        for path, limit, name in self._folders:
            used = 0
            for size in _sizes(path):
                used += size
                yield ""
            if used > limit:
                yield f"{name} holds {used} bytes, its size is {limit}"


def _sizes(path: str) -> Iterator[int]:
    """What each file below a folder takes on the disk, without following links; a file of several names counts once."""
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
