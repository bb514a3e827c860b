"""Scheduling cycles as they are stored: pieces of compressed segments, in the order of the cycles.

`control/cycles/` writes and reads them. Records are found by id alone, so there are no further columns.
"""

import msgspec

from fairlead.model.clock import Millis

#: What a row takes beside its data: its id twice, the names of its members, the counters.
_ROW_BYTES = 120


class CyclePiece(msgspec.Struct, frozen=True, kw_only=True):
    """One or more cycles in a row. The first piece of a segment has the whole state, the others what changed."""

    #: The start of its segment and its position in it, so that ids sort as the cycles do.
    id: str
    version: int = 1
    #: The next part of the segment's deflate stream.
    data: bytes
    #: Bytes stored up to this piece, counted since the first piece ever: retention by size subtracts two of them.
    total: int

    @property
    def size(self) -> int:
        """Bytes that it takes in the store, which writes bytes as base64."""
        return _ROW_BYTES + 4 * (len(self.data) + 2) // 3

    @property
    def is_first(self) -> bool:
        """Whether it is the first piece ever, so that nothing before it was dropped."""
        return self.total == self.size

    @property
    def segment(self) -> Millis:
        return int(self.id.partition(".")[0], 16)

    @property
    def position(self) -> int:
        return int(self.id.partition(".")[2], 16)


def piece_id(segment: Millis, position: int) -> str:
    return f"{segment:012x}.{position:06x}"


def last_possible_id(segment: Millis) -> str:
    """Greater than the id of every piece of that segment and of earlier ones, less than those of later ones."""
    return f"{segment:012x}.g"
