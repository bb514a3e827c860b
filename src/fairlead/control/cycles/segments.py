"""Segments of recorded cycles: a first cycle with its whole state, then what changed, as one deflate stream. Pure.

A segment is read from its beginning. Each piece ends at a flush of the stream, so that everything up to it can be read
without the next one. A piece that is missing or broken ends the segment there; the next segment stands on its own.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from fairlead.control.cycles.delta import NOTHING, SnapshotDelta, apply_delta, compare_snapshots
from fairlead.model.clock import Millis
from fairlead.model.records.cycle import CyclePiece
from fairlead.scheduling.model.decisions import Bind, Decisions, Eviction, Pipelined
from fairlead.scheduling.model.snapshot import Plain, Snapshot

#: Deflate without a header, and the end of every flush, which is not stored.
_RAW, _FLUSH_END = -15, b"\x00\x00\xff\xff"
_DIGEST_BYTES = 8


class CycleEntry(Plain, frozen=True, kw_only=True):
    """One cycle in a segment: its input as a difference, and what it decided."""

    delta: SnapshotDelta
    #: The newest revision of the store that the cycle knew.
    revision: int
    #: Of all its decisions as JSON, reasons and figures included.
    digest: str
    #: The version of Fairlead that decided, in the first entry of a segment.
    scheduler: str = ""
    binds: tuple[Bind, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    pipelined: tuple[Pipelined, ...] = ()


class RecordedCycle(msgspec.Struct, frozen=True, kw_only=True):
    """A cycle that was read back."""

    snapshot: Snapshot
    entry: CycleEntry
    scheduler: str

    @property
    def at(self) -> Millis:
        return round(self.snapshot.now * 1000)


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(CycleEntry)


def digest_decisions(decisions: Decisions) -> str:
    return hashlib.blake2b(_encode(decisions), digest_size=_DIGEST_BYTES).hexdigest()


class SegmentWriter:
    """Turns cycles into pieces. What `add` returned must be stored in that order."""

    def __init__(self, scheduler: str) -> None:
        self._scheduler = scheduler
        self._deflate = zlib.compressobj(level=6, wbits=_RAW, memLevel=9)
        self._before = NOTHING

    def add(self, snapshot: Snapshot, decisions: Decisions, revision: int) -> CycleEntry:
        entry = CycleEntry(
            delta=compare_snapshots(self._before, snapshot),
            revision=revision,
            digest=digest_decisions(decisions),
            scheduler=self._scheduler,
            binds=decisions.starts,
            evictions=decisions.evictions,
            pipelined=decisions.pipelined,
        )
        self._before, self._scheduler = snapshot, ""
        return entry

    def compress(self, entries: Iterable[CycleEntry]) -> bytes:
        text = b"".join(_encode(entry) + b"\n" for entry in entries)
        flushed = self._deflate.compress(text) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return flushed.removesuffix(_FLUSH_END)


def read_cycles(pieces: Sequence[CyclePiece], until: Millis) -> Iterator[RecordedCycle]:
    """The cycles of one segment's pieces, up to that time or the first piece that is missing or broken."""
    snapshot, scheduler = NOTHING, ""
    for entry in _read_entries(pieces):
        scheduler = entry.scheduler or scheduler
        snapshot = apply_delta(snapshot, entry.delta)
        cycle = RecordedCycle(snapshot=snapshot, entry=entry, scheduler=scheduler)
        if cycle.at > until:
            return
        yield cycle


def _read_entries(pieces: Sequence[CyclePiece]) -> Iterator[CycleEntry]:
    inflate = zlib.decompressobj(wbits=_RAW)
    for position, piece in enumerate(pieces):
        if piece.position != position:
            return
        try:
            entries = [_decoder.decode(line) for line in inflate.decompress(piece.data + _FLUSH_END).splitlines()]
        except (zlib.error, msgspec.DecodeError):
            return
        yield from entries
