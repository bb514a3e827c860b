"""Finds single pieces of recorded cycles by their ids, which sort as the cycles do."""

from fairlead.control.context import Context
from fairlead.model.clock import Millis
from fairlead.model.records.cycle import CyclePiece, last_possible_id
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import CYCLES


async def find_newest(context: Context) -> CyclePiece | None:
    return await _find_one(context, (), is_last=True)


async def find_oldest(context: Context) -> CyclePiece | None:
    return await _find_one(context, (), is_last=False)


async def find_written_by(context: Context, at: Millis) -> CyclePiece | None:
    """The last piece of the last segment that had begun at that time."""
    below = Where("id", Comparison.BELOW, last_possible_id(max(at, 0)))
    return await _find_one(context, (below,), is_last=True)


async def find_following(context: Context, segment: Millis) -> CyclePiece | None:
    """The first piece of the next segment."""
    above = Where("id", Comparison.ABOVE, last_possible_id(segment))
    return await _find_one(context, (above,), is_last=False)


async def _find_one(context: Context, where: tuple[Where, ...], *, is_last: bool) -> CyclePiece | None:
    query = Query(collection=CYCLES, where=where, order=(("id", is_last),), limit=1)
    pieces: list[CyclePiece] = await context.store.find(query)
    return pieces[0] if pieces else None
