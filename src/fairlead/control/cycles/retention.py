"""Forgets old cycles, whole segments at a time, by age and by size. Called by housekeeping.

Oldest first and in small commits, so that nobody waits for it. The newest segment always stays.
"""

from fairlead.control.context import Context
from fairlead.control.cycles.find import find_following, find_newest, find_oldest
from fairlead.model.clock import Millis
from fairlead.model.records.cycle import last_possible_id
from fairlead.store.base import Change, Comparison, Delete, Query, Where
from fairlead.store.collections import CYCLES

#: Pieces per commit.
_PORTION = 200


async def drop_old_cycles(context: Context, now: Millis) -> int:
    """Drop segments that are past their retention; returns how many pieces were dropped."""
    oldest_kept = now - context.settings.keep_cycles
    dropped = 0
    while True:
        oldest, newest = await find_oldest(context), await find_newest(context)
        if oldest is None or newest is None or oldest.segment == newest.segment:
            return dropped
        following = await find_following(context, oldest.segment)
        # The state of the next segment's beginning is the one that held at its end.
        is_too_old = following is not None and following.segment <= oldest_kept
        is_too_much = newest.total - oldest.total > context.settings.keep_cycles_bytes
        if not (is_too_old or is_too_much):
            return dropped
        dropped += await _drop_segment(context, oldest.segment)


async def _drop_segment(context: Context, segment: Millis) -> int:
    """From its end, so that what is left of it can be read if the server stops in between."""
    where = (Where("id", Comparison.BELOW, last_possible_id(segment)),)
    query = Query(collection=CYCLES, where=where, order=(("id", True),), limit=_PORTION)
    dropped = 0
    while pieces := await context.store.find(query):
        await context.store.commit(Change(writes=tuple(Delete(CYCLES, piece.id) for piece in pieces)))
        dropped += len(pieces)
    return dropped
