"""Records the scheduler's cycles: encodes each beside the decision, and stores it before what follows from it.

Called by `loop/schedule.py`. A cycle is handed to the store before the changes that it decided, and the store commits
in that order: after a crash, whatever happened has its cycle on record. A cycle that found nothing but another time and
changed nothing is stored with the next one, so an idle server writes next to nothing.
"""

import asyncio
import logging

import msgspec

from fairlead.control.context import Context
from fairlead.control.cycles.find import find_newest
from fairlead.control.cycles.segments import CycleEntry, SegmentWriter
from fairlead.model.clock import DAY, SECOND, Millis
from fairlead.model.errors import FairleadError
from fairlead.model.records.cycle import CyclePiece, piece_id
from fairlead.model.records.event import Event
from fairlead.scheduling.model.decisions import Decisions
from fairlead.scheduling.model.snapshot import Snapshot
from fairlead.store.base import Change, Put, Query
from fairlead.store.collections import CYCLES, EVENTS

log = logging.getLogger(__name__)

#: A segment ends when its changes are as large as its first piece, but not before it has so many bytes; or after so
#: many pieces. Reading a cycle back costs at most twice the whole state then, and so does storing it.
_MIN_BYTES = 65_536
_MAX_PIECES = 2_000
#: Retention drops whole segments.
_LONGEST: Millis = 1 * DAY
#: Quiet cycles are stored after this time at the latest, if there is another cycle by then.
_QUIET: Millis = 6 * 3600 * SECOND


class CycleRecorder:
    def __init__(self, context: Context, scheduler: str) -> None:
        self._context = context
        #: The version of Fairlead.
        self._scheduler = scheduler
        self._writer = SegmentWriter(scheduler)
        self._segment: Millis = 0
        #: Pieces of the segment; bytes of its first one, and of the others.
        self._position = 0
        self._first_bytes = 0
        self._further_bytes = 0
        self._total = 0
        #: Cycles that are not stored yet, because they changed nothing; and since when.
        self._quiet: list[CycleEntry] = []
        self._quiet_since: Millis = 0
        self._is_open = False
        #: Whether a piece could not be stored, so that what follows it in its segment could not be read.
        self._is_broken = False
        self._commits: set[asyncio.Task[None]] = set()

    @property
    def is_on(self) -> bool:
        return self._context.settings.keep_cycles_bytes > 0

    async def open(self) -> None:
        """Continue after what is stored; called before every cycle."""
        if self._is_open or not self.is_on:
            return
        store = self._context.store
        newest = await find_newest(self._context)
        if newest is not None:
            self._segment, self._total = newest.segment, newest.total
        events: list[Event] = await store.find(Query(collection=EVENTS, order=(("revision", True),), limit=1))
        if events:
            self._context.revision = max(self._context.revision, events[0].revision)
        self._is_open = True

    def encode(self, snapshot: Snapshot, decisions: Decisions) -> tuple[CyclePiece, ...]:
        """The pieces to store for this cycle and the quiet ones before it; none if it is quiet itself.

        Cycles must come in their order. It only computes, so it can run in the thread of the decision.
        """
        if not self.is_on:
            return ()
        now = round(snapshot.now * 1000)
        pieces: list[CyclePiece] = []
        if self._is_broken:
            self._quiet.clear()
        if self._is_broken or not self._position:
            self._begin_segment(now)
        entry = self._writer.add(snapshot, decisions, self._context.revision)
        is_quiet = entry.delta.is_quiet and not (entry.binds or entry.evictions or entry.pipelined)
        if is_quiet and self._position:
            self._quiet_since = self._quiet_since or now
            self._quiet.append(entry)
            return (self._make_piece(),) if now - self._quiet_since >= _QUIET else ()
        if self._is_full(now):
            pieces += [self._make_piece()] if self._quiet else []
            self._begin_segment(now)
            entry = self._writer.add(snapshot, decisions, self._context.revision)
        self._quiet.append(entry)
        return (*pieces, self._make_piece())

    def _begin_segment(self, now: Millis) -> None:
        self._writer = SegmentWriter(self._scheduler)
        self._segment = max(now, self._segment + 1)
        self._position = self._first_bytes = self._further_bytes = 0
        self._is_broken = False

    def _is_full(self, now: Millis) -> bool:
        return (
            self._further_bytes > max(_MIN_BYTES, self._first_bytes)
            or self._position >= _MAX_PIECES
            or (self._position > 0 and now - self._segment > _LONGEST)
        )

    def _make_piece(self) -> CyclePiece:
        data = self._writer.compress(self._quiet)
        self._quiet.clear()
        self._quiet_since = 0
        piece = CyclePiece(id=piece_id(self._segment, self._position), data=data, total=0)
        self._total += piece.size
        if self._position:
            self._further_bytes += piece.size
        else:
            self._first_bytes = piece.size
        piece = msgspec.structs.replace(piece, total=self._total)
        self._position += 1
        return piece

    def submit(self, piece: CyclePiece) -> None:
        """Store it, before every change that is committed after this call."""
        task = asyncio.create_task(self._commit(piece), name="recording a cycle")
        self._commits.add(task)
        task.add_done_callback(self._commits.discard)

    async def _commit(self, piece: CyclePiece) -> None:
        try:
            await self._context.store.commit(Change(writes=(Put(CYCLES, piece),)))
        except FairleadError as error:
            log.warning("a scheduling cycle could not be recorded: %s", error)
            self._is_broken = True

    async def close(self) -> None:
        """Store the quiet cycles that are left, and wait for everything that is under way."""
        if self._quiet and not self._is_broken:
            self.submit(self._make_piece())
        await asyncio.gather(*self._commits)
