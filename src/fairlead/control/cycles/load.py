"""Reads recorded cycles: the one of a time, or all of a period.

Called by `explain`, which checks access. Decoding runs in a thread; a segment is at most some hundred kilobytes.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence

from fairlead.control.context import Context
from fairlead.control.cycles.find import find_following, find_oldest, find_written_by
from fairlead.control.cycles.segments import RecordedCycle, read_cycles
from fairlead.model.clock import Millis, in_words
from fairlead.model.errors import Dropped, NotFound
from fairlead.model.records.cycle import CyclePiece, last_possible_id, piece_id
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import CYCLES, EVENTS

_NONE_YET = (
    "No scheduling cycle is on record: the scheduler has not run yet, its recording is off (--keep-cycles-size 0), or "
    "a cluster's own scheduler decides."
)


async def load_cycle(context: Context, at: Millis) -> RecordedCycle:
    """The last cycle at or before that time; raises Dropped or NotFound."""
    newest = await find_written_by(context, at)
    if newest is None:
        raise await _missing(context, at)
    pieces = await _load_pieces(context, newest.segment)
    cycles = await asyncio.to_thread(_read_all, pieces, at)
    if not cycles:
        raise NotFound(f"The record of the scheduling cycle at {in_words(at)} cannot be read by this version")
    return cycles[-1]


async def load_cycles(context: Context, since: Millis, until: Millis) -> AsyncIterator[list[RecordedCycle]]:
    """All cycles of a period, by segment; raises Dropped if cycles of its beginning are no longer kept, or NotFound."""
    piece = await find_written_by(context, since)
    if piece is None:
        piece = await find_oldest(context)
        if piece is None or not piece.is_first:
            raise await _missing(context, since)
    while piece is not None and piece.segment <= until:
        pieces = await _load_pieces(context, piece.segment)
        cycles = await asyncio.to_thread(_read_all, pieces, until)
        yield [cycle for cycle in cycles if cycle.at >= since]
        piece = await find_following(context, piece.segment)


def _read_all(pieces: Sequence[CyclePiece], until: Millis) -> list[RecordedCycle]:
    return list(read_cycles(pieces, until))


async def load_time_of(context: Context, revision: int) -> Millis:
    """When a revision was written; raises Dropped if events of that time are no longer kept."""
    event = await context.store.get(EVENTS, str(revision))
    if event is not None:
        return event.at
    newest = await context.store.find(Query(collection=EVENTS, order=(("revision", True),), limit=1))
    if not newest or revision > newest[0].revision:
        raise NotFound(f"There is no revision {revision} yet; the newest is {newest[0].revision if newest else 0}")
    oldest = await context.store.find(Query(collection=EVENTS, limit=1))
    raise Dropped(
        f"Revision {revision} is no longer kept; the oldest that is kept is {oldest[0].revision}, "
        f"of {in_words(oldest[0].at)}"
    )


async def _load_pieces(context: Context, segment: Millis) -> list[CyclePiece]:
    where = (
        Where("id", Comparison.AT_LEAST, piece_id(segment, 0)),
        Where("id", Comparison.BELOW, last_possible_id(segment)),
    )
    return await context.store.find(Query(collection=CYCLES, where=where, order=(("id", False),)))


async def _missing(context: Context, at: Millis) -> Dropped | NotFound:
    oldest = await find_oldest(context)
    if oldest is None:
        return NotFound(_NONE_YET)
    begin = f"No scheduling cycle of {in_words(at)} is on record: they begin at {in_words(oldest.segment)}"
    if oldest.is_first:
        return NotFound(begin)
    return Dropped(f"{begin}, older ones were dropped. The server keeps more with --keep-cycles and --keep-cycles-size")
