"""When the ledger begins, and how it forgets: old intervals are dropped, and the ledger then begins later.

The loop begins it, housekeeping drops what is old.
"""

import msgspec

from fairlead.control.context import Context
from fairlead.control.ledger.intervals import LEDGER, close_ledger
from fairlead.model.clock import Millis
from fairlead.store.base import Change, Comparison, Delete, Put, Query, Where
from fairlead.store.collections import SUPPLY, USAGE

#: Records per commit.
_PORTION = 200


async def begin_ledger(context: Context) -> None:
    """Record since when the ledger is complete, at the first start with it."""
    if await context.store.get(SUPPLY, LEDGER) is None:
        await context.store.commit(Change(writes=(Put(SUPPLY, close_ledger(context.clock())),)))


async def drop_old_usage(context: Context, now: Millis) -> int:
    """Drop what is past its retention; returns how many intervals were dropped."""
    oldest = now - context.settings.keep_usage
    before = await context.store.get(SUPPLY, LEDGER)
    if before is None or before.until >= oldest:
        return 0
    # First, because a report must not cover a time of which a part is missing.
    start = msgspec.structs.replace(before, version=before.version + 1, until=oldest)
    await context.store.commit(Change(writes=(Put(SUPPLY, start),)))
    past = (Where("until", Comparison.BELOW, oldest),)
    dropped = 0
    while usage := await context.store.find(Query(collection=USAGE, where=past, limit=_PORTION)):
        await context.store.commit(Change(writes=tuple(Delete(USAGE, interval.id) for interval in usage)))
        dropped += len(usage)
    while supply := await context.store.find(Query(collection=SUPPLY, where=past, limit=_PORTION)):
        await context.store.commit(Change(writes=tuple(Delete(SUPPLY, interval.id) for interval in supply)))
        dropped += len(supply)
    return dropped
