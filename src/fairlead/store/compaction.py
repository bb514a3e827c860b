"""Deletes old events and audit lines from any store. The server's housekeeping calls it now and then.

It deletes the oldest first, in small commits, so that other commits are not held up. It always keeps the newest event:
the oldest event that is left then tells from which revision a watch can resume.
"""

from itertools import takewhile

from fairlead.model.clock import Millis
from fairlead.model.records.event import AuditLine, Event
from fairlead.store.base import Change, Collection, Comparison, Delete, Query, Store, Where
from fairlead.store.collections import AUDIT, EVENTS

#: Records per commit.
_PORTION = 200


async def compact(store: Store, now: Millis, keep_events: Millis, keep_audit: Millis) -> int:
    """Delete events and audit lines that are past their retention; returns how many were deleted."""
    return await _trim(store, EVENTS, now - keep_events) + await _trim(store, AUDIT, now - keep_audit)


async def _trim(store: Store, collection: Collection[Event | AuditLine], before: Millis) -> int:
    """Delete from the beginning of the list only, never from its middle, even if the clock was set back."""
    key = collection.key
    newest = await store.find(Query(collection=collection, order=((key, True),), limit=1))
    if not newest:
        return 0
    last = getattr(newest[0], key)
    deleted = 0
    while True:
        oldest = await store.find(
            Query(collection=collection, where=(Where(key, Comparison.BELOW, last),), limit=_PORTION)
        )
        old = _beginning(oldest, key, before)
        if old:
            await store.commit(Change(writes=tuple(Delete(collection, str(number)) for number in old)))
            deleted += len(old)
        if len(old) < _PORTION:
            return deleted


def _beginning(records: list[Event | AuditLine], key: str, before: Millis) -> list[int]:
    return [getattr(record, key) for record in takewhile(lambda record: record.at < before, records)]
