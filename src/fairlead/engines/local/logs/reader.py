"""Reading a pod's output, while it is written and after. Called by the engine.

The supervisor notifies a follower when there is more, so there is no polling; see `segments.py` for the files.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable

from fairlead.engines.base import LogRequest
from fairlead.engines.local import wire
from fairlead.engines.local.attempts import AttemptFolders, Key, remove_folder
from fairlead.engines.local.logs.segments import Index, Segments
from fairlead.model.clock import Millis, iso

#: How long a follower waits before it reads again while there is no supervisor yet to notify it.
PATIENCE_SECONDS = 0.05


def stream(
    folders: AttemptFolders, key: Key, request: LogRequest, may_write: Callable[[Key], bool]
) -> AsyncIterator[bytes]:
    """The output that `request` asks for; with `follow`, to the attempt's end.

    Where it begins is settled now, not at the first read: what comes between the two belongs to the reader.
    """
    segments = Segments(folders.logs(key))
    return _read_on(folders, key, request, may_write, segments, decide_begin(segments, request))


async def _read_on(
    folders: AttemptFolders,
    key: Key,
    request: LogRequest,
    may_write: Callable[[Key], bool],
    segments: Segments,
    offset: int,
) -> AsyncIterator[bytes]:
    stamps = Stamps(segments) if request.timestamps else None
    remaining = request.limit_bytes
    pokes = Pokes(folders.control(key)) if request.follow else None
    try:
        while remaining is None or remaining > 0:
            begin, data = segments.read(offset)
            if not data:
                if pokes is None or pokes.over:
                    return
                await pokes.wait(lambda: may_write(key))
                continue
            offset = begin + len(data)
            piece = stamps.render(begin, data) if stamps else data
            piece = piece if remaining is None else piece[:remaining]
            remaining = None if remaining is None else remaining - len(piece)
            yield piece
    finally:
        if pokes is not None:
            pokes.close()


def decide_begin(segments: Segments, request: LogRequest) -> int:
    """The offset from which to read: whole lines, of that age, and no more of them than asked for."""
    starts = segments.starts()
    begin = segments.next_line(starts[0]) if starts and starts[0] > 0 else 0
    if request.since is not None:
        index = Index(segments)
        index.refresh()
        begin = max(begin, segments.next_line(index.offset_at(request.since, segments.end())))
    if request.tail is not None:
        begin = max(begin, segments.last_lines(request.tail))
    return begin


class Stamps:
    """Puts the time at which it began to come before every line."""

    def __init__(self, segments: Segments) -> None:
        self._index = Index(segments)
        self._within_line = False

    def render(self, begin: int, data: bytes) -> bytes:
        self._index.refresh()
        pieces, offset = [], begin
        for line in _lines(data):
            if not self._within_line:
                pieces.append(iso(self._index.time_of(offset)).encode() + b" ")
            pieces.append(line)
            offset += len(line)
            self._within_line = not line.endswith(b"\n")
        return b"".join(pieces)


def _lines(data: bytes) -> list[bytes]:
    """Lines with their ends, by newline alone: `splitlines` also cuts at the carriage returns of progress bars."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


class Pokes:
    """Waits until the supervisor says that there is more output, or that it has ended."""

    def __init__(self, control: str) -> None:
        self._control = control
        self._link: socket.socket | None = None
        self.over = False

    async def wait(self, may_write: Callable[[], bool]) -> None:
        """Return when there may be something new to read."""
        if self._link is not None:
            try:
                self.over = not await asyncio.get_running_loop().sock_recv(self._link, 65_536)
            except OSError:
                self.over = True
            return
        try:
            self._link = wire.connect(self._control)
            self._link.send(wire.encode({"op": "follow"}))
        except OSError:
            self.close()
            if may_write():
                await asyncio.sleep(PATIENCE_SECONDS)
            else:
                self.over = True

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None


def expire(folders: AttemptFolders, before: Millis, is_known: Callable[[str], bool]) -> int:
    """Remove the output of pods that are forgotten and wrote nothing since `before`; how many pods' output went."""
    expired = 0
    for pod in os.listdir(f"{folders.root}/logs"):
        newest = max((os.stat(path).st_mtime for _, path in folders.log_files(pod)), default=0.0)
        if not is_known(pod) and newest * 1000 < before:
            remove_folder(folders.pod_logs(pod))
            expired += 1
    return expired
