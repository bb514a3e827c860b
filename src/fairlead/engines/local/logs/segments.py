"""A pod's kept output as one run of bytes with times, read from the files that `writer.py` writes.

Blocking reads of small pieces, for `reader.py`; safe beside a supervisor that writes and rotates at the same time.
"""

import os
from bisect import bisect_left, bisect_right

from fairlead.engines.local.logs.writer import ENTRY, INDEX_SUFFIX, SEGMENT_SUFFIX
from fairlead.model.clock import Millis

CHUNK = 65_536


class Segments:
    """What was rotated away lies before its start; offsets count from the attempt's first byte."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def starts(self) -> list[int]:
        """The offset at which each kept segment begins."""
        folder, attempt = os.path.split(self._prefix)
        try:
            names = os.listdir(folder)
        except FileNotFoundError:
            return []
        own_names = (name for name in names if name.startswith(f"{attempt}.") and name.endswith(SEGMENT_SUFFIX))
        return sorted(int(name.split(".")[1]) for name in own_names)

    def path(self, start: int, suffix: str = SEGMENT_SUFFIX) -> str:
        return f"{self._prefix}.{start:012d}{suffix}"

    def end(self) -> int:
        starts = self.starts()
        try:
            return starts[-1] + os.path.getsize(self.path(starts[-1])) if starts else 0
        except FileNotFoundError:  # rotated away since
            return self.end()

    def read(self, offset: int, count: int = CHUNK) -> tuple[int, bytes]:
        """Bytes from `offset`, or from the first that is still kept, and where they begin. Empty at the end."""
        while True:
            starts = self.starts()
            if not starts:
                return offset, b""
            offset = max(offset, starts[0])
            index = bisect_right(starts, offset) - 1
            try:
                with open(self.path(starts[index]), "rb") as file:
                    file.seek(offset - starts[index])
                    data = file.read(count)
            except FileNotFoundError:  # rotated away since
                continue
            if data or index == len(starts) - 1:
                return offset, data
            offset = starts[index + 1]

    def next_line(self, offset: int) -> int:
        """Where the first whole line at or after `offset` begins; the end when there is none."""
        if offset <= 0:
            return 0
        offset, data = self.read(offset - 1)
        while data:
            newline = data.find(b"\n")
            if newline >= 0:
                return offset + newline + 1
            offset, data = self.read(offset + len(data))
        return offset

    def last_lines(self, count: int) -> int:
        """Where the last `count` lines begin; a last line without an end counts."""
        end = self.end()
        starts = self.starts()
        first = starts[0] if starts else 0
        if count <= 0 or end == first:
            return end
        offset = end
        while offset > first:
            begin = max(first, offset - CHUNK)
            data = self._between(begin, offset)
            begin = offset - len(data)
            line_end = len(data)
            while (line_end := data.rfind(b"\n", 0, line_end)) >= 0:
                # The newline that ends the very last line begins none.
                count -= begin + line_end != end - 1
                if count == 0:
                    return begin + line_end + 1
            offset = begin
        return first

    def _between(self, begin: int, end: int) -> bytes:
        """The bytes from `begin`, or from the first that is still kept, up to `end`; across segments."""
        pieces = []
        while begin < end:
            begin, data = self.read(begin, end - begin)
            if not data:
                break
            pieces.append(data)
            begin += len(data)
        return b"".join(pieces)


class Index:
    """When which byte came; grows with the files."""

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self._times: list[Millis] = []
        self._offsets: list[int] = []
        #: How much of each segment's index was read.
        self._read: dict[int, int] = {}

    def refresh(self) -> None:
        for start in self._segments.starts():
            try:
                with open(self._segments.path(start, INDEX_SUFFIX), "rb") as file:
                    file.seek(self._read.get(start, 0))
                    data = file.read()
            except FileNotFoundError:  # rotated away since
                continue
            whole = len(data) // ENTRY.size * ENTRY.size
            for time, offset in ENTRY.iter_unpack(data[:whole]):
                self._times.append(time)
                self._offsets.append(offset)
            self._read[start] = self._read.get(start, 0) + whole

    def time_of(self, offset: int) -> Millis:
        """When the byte at `offset` came."""
        index = bisect_right(self._offsets, offset) - 1
        return self._times[max(index, 0)] if self._times else 0

    def offset_at(self, time: Millis, otherwise: int) -> int:
        """The first byte that came at `time` or later."""
        index = bisect_left(self._times, time)
        return self._offsets[index] if index < len(self._offsets) else otherwise
