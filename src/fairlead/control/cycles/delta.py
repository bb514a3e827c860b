"""What differs between the snapshots of two cycles, and how a snapshot follows from the one before it. Pure.

Called by `segments.py`. Exact: a rebuilt snapshot equals the original, the order of its parts included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from fairlead.scheduling.model.snapshot import Job, Plain, Queue, Settings, Snapshot, SnapshotNode, Topology

Part = TypeVar("Part", Job, SnapshotNode, Queue, Topology)

#: What comes before the first cycle of a segment.
NOTHING = Snapshot(now=0)


class PartsDelta(Plain, Generic[Part], frozen=True, kw_only=True):
    """Changes of a list whose parts have keys. Changed parts keep their position."""

    dropped: tuple[str, ...] = ()
    changed: tuple[Part, ...] = ()
    added: tuple[Part, ...] = ()
    #: The positions of the added parts in the new list, growing.
    positions: tuple[int, ...] = ()
    #: All keys in order, if the rules above do not give the new order.
    order: tuple[str, ...] | None = None


class SnapshotDelta(Plain, frozen=True, kw_only=True):
    now: float
    nodes: PartsDelta[SnapshotNode] | None = None
    queues: PartsDelta[Queue] | None = None
    jobs: PartsDelta[Job] | None = None
    topologies: PartsDelta[Topology] | None = None
    settings: Settings | None = None

    @property
    def is_quiet(self) -> bool:
        """Whether nothing but the time has changed."""
        return self == SnapshotDelta(now=self.now)


def compare_snapshots(before: Snapshot, after: Snapshot) -> SnapshotDelta:
    return SnapshotDelta(
        now=after.now,
        nodes=_compare(before.nodes, after.nodes, node_key),
        queues=_compare(before.queues, after.queues, queue_key),
        jobs=_compare(before.jobs, after.jobs, job_key),
        topologies=_compare(before.topologies, after.topologies, topology_key),
        settings=None if after.settings == before.settings else after.settings,
    )


def apply_delta(before: Snapshot, delta: SnapshotDelta) -> Snapshot:
    after: Snapshot = msgspec.structs.replace(
        before,
        now=delta.now,
        nodes=_apply(before.nodes, delta.nodes, node_key),
        queues=_apply(before.queues, delta.queues, queue_key),
        jobs=_apply(before.jobs, delta.jobs, job_key),
        topologies=_apply(before.topologies, delta.topologies, topology_key),
        settings=delta.settings or before.settings,
    )
    return after


def job_key(job: Job) -> str:
    return job.id


def node_key(node: SnapshotNode) -> str:
    return node.name


def queue_key(queue: Queue) -> str:
    return f"{queue.node_pool}/{queue.name}"


def topology_key(topology: Topology) -> str:
    return topology.name


def _compare(before: Sequence[Part], after: Sequence[Part], key_of: Callable[[Part], str]) -> PartsDelta[Part] | None:
    if before is after:
        return None
    known = {key_of(part): part for part in before}
    keys = [key_of(part) for part in after]
    present = set(keys)
    # Most parts of a loop's snapshots are the same objects in the next one.
    changed = tuple(
        part
        for key, part in zip(keys, after, strict=True)
        if (old := known.get(key)) is not part and old is not None and old != part
    )
    positions = tuple(position for position, key in enumerate(keys) if key not in known)
    dropped = tuple(key for key in known if key not in present) if len(known) + len(positions) > len(keys) else ()
    added = tuple(after[position] for position in positions)
    order = [key for key in known if key in present] if dropped else list(known)
    for position in positions:
        order.insert(position, keys[position])
    is_moved = order != keys
    if not (dropped or changed or positions or is_moved):
        return None
    return PartsDelta(
        dropped=dropped,
        changed=changed,
        added=added,
        positions=positions,
        order=tuple(keys) if is_moved else None,
    )


def _apply(before: tuple[Part, ...], delta: PartsDelta[Part] | None, key_of: Callable[[Part], str]) -> tuple[Part, ...]:
    if delta is None:
        return before
    parts = {key_of(part): part for part in before}
    for key in delta.dropped:
        del parts[key]
    parts.update((key_of(part), part) for part in delta.changed)
    if delta.order is not None:
        parts.update((key_of(part), part) for part in delta.added)
        return tuple(parts[key] for key in delta.order)
    after = list(parts.values())
    for position, part in zip(delta.positions, delta.added, strict=True):
        after.insert(position, part)
    return tuple(after)
