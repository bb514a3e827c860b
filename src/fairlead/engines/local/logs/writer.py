"""A pod's output on its way into rotated files, with an index of time and offset; the supervisor's half of logs.

Segment files are named by the attempt and the offset of their first byte (`1.000000000000.log`), so that offsets never
restart; beside each lies its index (`.index`): pairs of (time, offset), one whenever the millisecond changed. They are
made when there is something to write. `segments.py` reads them.
"""

import errno
import os
import struct
import time

ENTRY = struct.Struct("<QQ")
SEGMENT_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
#: What is moved in one go; the pipe holds less.
CHUNK = 1024 * 1024
#: Above so many entries in one segment the index becomes coarse, so that a chatty pod's index stays small beside it.
FINE_ENTRIES = 65_536
COARSE_MILLIS = 100
_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC


class Output:
    __slots__ = ("_entries", "_index", "_keep", "_last", "_prefix", "_segment", "_size", "_start", "end", "failure")

    def __init__(self, prefix: str, segment_bytes: int, segments: int) -> None:
        self._prefix = prefix
        self._size = segment_bytes
        self._keep = segments
        self._segment = -1
        self._index = -1
        #: Offsets of the present segment's first byte and of the next byte to come.
        self._start = 0
        self.end = 0
        self._last = 0
        self._entries = 0
        #: Why output is being thrown away, once the disk refused it.
        self.failure = ""

    def _open(self) -> None:
        name = f"{self._prefix}.{self.end:012d}"
        self._segment = os.open(name + SEGMENT_SUFFIX, _FILE_FLAGS, 0o600)
        self._index = os.open(name + INDEX_SUFFIX, _FILE_FLAGS, 0o600)
        self._start = self.end
        self._last = 0
        self._entries = 0

    def take(self, pipe: int) -> int:
        """Move what the pipe holds into the files: the number of bytes, 0 at its end; BlockingIOError when empty."""
        if self.failure:
            return len(os.read(pipe, CHUNK))
        try:
            room = self._room()
            moved = os.splice(pipe, self._segment, room, flags=os.SPLICE_F_NONBLOCK | os.SPLICE_F_MOVE)
        except BlockingIOError:
            raise
        except OSError as error:
            self._refuse(error)
            return self.take(pipe)
        self.end += moved
        return moved

    def write(self, data: bytes) -> None:
        """Output that came by a terminal, which cannot be spliced."""
        while data and not self.failure:
            try:
                room = self._room()
                written = os.write(self._segment, data[:room])
            except OSError as error:
                self._refuse(error)
                return
            self.end += written
            data = data[written:]

    def _room(self) -> int:
        """How much still goes into the present segment, after a rotation if it is full; its time is noted."""
        if self._segment < 0:
            os.makedirs(os.path.dirname(self._prefix), mode=0o700, exist_ok=True)
            self._open()
        elif self.end - self._start >= self._size:
            self._rotate()
        self._stamp()
        return min(CHUNK, self._size - (self.end - self._start))

    def _stamp(self) -> None:
        """Note when what comes next came; before it is there to be read, so that a reader never misses its time."""
        now = time.time_ns() // 1_000_000
        pause = 1 if self._entries < FINE_ENTRIES else COARSE_MILLIS
        if now - self._last >= pause:
            os.write(self._index, ENTRY.pack(now, self.end))
            self._last = now
            self._entries += 1

    def _rotate(self) -> None:
        self.close()
        self._open()
        folder, attempt = os.path.split(self._prefix)
        segments = sorted(name for name in os.listdir(folder) if name.startswith(f"{attempt}."))
        stems = [name.removesuffix(SEGMENT_SUFFIX) for name in segments if name.endswith(SEGMENT_SUFFIX)]
        for stem in stems[: -self._keep]:
            os.unlink(f"{folder}/{stem}{SEGMENT_SUFFIX}")
            os.unlink(f"{folder}/{stem}{INDEX_SUFFIX}")

    def _refuse(self, error: OSError) -> None:
        if error.errno == errno.EINVAL:
            raise error
        self.failure = f"output after byte {self.end} was not kept: {error.strerror}"

    def close(self) -> None:
        if self._segment >= 0:
            os.close(self._segment)
            os.close(self._index)
