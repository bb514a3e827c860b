"""Letting go of old events and audit lines, on any store. The server's housekeeping calls it now and then.

It deletes in small commits between which everybody else's go through, oldest first, and always leaves the newest
event: so the oldest one that is kept tells from where on a watch can be resumed, without a note of its own.
"""

from itertools import takewhile

from fairlead.model.clock import Millis
from fairlead.model.records.event import AuditLine, Event
from fairlead.store.base import Change, Collection, Comparison, Delete, Query, Store, Where
from fairlead.store.collections import AUDIT, EVENTS

#: Records per commit.
_PORTION = 200


async def compact(store: Store, now: Millis, keep_events: Millis, keep_audit: Millis) -> int:
    """Delete events and audit lines older than they are kept; returns how many went."""
    return await _trim(store, EVENTS, now - keep_events) + await _trim(store, AUDIT, now - keep_audit)


async def oldest_revision(store: Store) -> int:
    """The first revision that is still there; a watch that saw the one before it, or a later one, misses nothing."""
    oldest = await store.find(Query(collection=EVENTS, limit=1))
    return int(oldest[0].revision) if oldest else 1


async def newest_revision(store: Store) -> int:
    """The revision at which the store is now; 0 before the first event."""
    newest = await store.find(Query(collection=EVENTS, order=((EVENTS.key, True),), limit=1))
    return int(newest[0].revision) if newest else 0


async def _trim(store: Store, collection: Collection, before: Millis) -> int:
    """Only a beginning of the list goes, never something out of its middle: a clock that was set back keeps more."""
    key = collection.key
    newest = await store.find(Query(collection=collection, order=((key, True),), limit=1))
    if not newest:
        return 0
    last = getattr(newest[0], key)
    gone = 0
    while True:
        oldest = await store.find(
            Query(collection=collection, where=(Where(key, Comparison.BELOW, last),), limit=_PORTION)
        )
        old = _beginning(oldest, key, before)
        if old:
            await store.commit(Change(writes=tuple(Delete(collection, str(number)) for number in old)))
            gone += len(old)
        if len(old) < _PORTION:
            return gone


def _beginning(records: list[Event | AuditLine], key: str, before: Millis) -> list[int]:
    return [getattr(record, key) for record in takewhile(lambda record: record.at < before, records)]
