"""Recorded cycles are read back exactly as they were, and up to the first piece that is missing or broken."""

import itertools
import random
from collections.abc import Sequence

import msgspec

from fairlead.control.cycles.delta import apply_delta, compare_snapshots
from fairlead.control.cycles.segments import RecordedCycle, SegmentWriter, digest_decisions, read_cycles
from fairlead.model.records.cycle import CyclePiece, piece_id
from fairlead.scheduling import Snapshot, advance, decide
from fairlead.scheduling.model.snapshot import Settings, Topology
from tests.unit.foresight.test_why import cluster, job, node, queue

END = 10**15


def play(seed: int, cycles: int) -> list[Snapshot]:
    """A cluster to which jobs, nodes and queues come, change and go, in changing order."""
    dice = random.Random(seed)
    snapshot = cluster(nodes=(node("n1"), node("n2", gpu=2)))
    played = []
    for number in range(cycles):
        played.append(snapshot)
        snapshot = advance(snapshot, decide(snapshot), snapshot.now + 1)
        jobs = [each for each in snapshot.jobs if dice.random() > 0.2]
        jobs += [job(f"j{number}-{index}", dice.choice("ab")) for index in range(dice.randint(0, 3))]
        if dice.random() < 0.3:
            dice.shuffle(jobs)
        nodes = list(snapshot.nodes)
        if dice.random() < 0.3:
            nodes[0] = msgspec.structs.replace(nodes[0], unschedulable=not nodes[0].unschedulable)
        if dice.random() < 0.2:
            nodes.insert(dice.randint(0, len(nodes)), node(f"m{number}"))
        if dice.random() < 0.1:
            snapshot = msgspec.structs.replace(
                snapshot, settings=Settings(k_value=number), topologies=(Topology(name="t", levels=(f"l{number}",)),)
            )
        if dice.random() < 0.2:
            snapshot = msgspec.structs.replace(snapshot, queues=(queue("a", number), queue("b")))
        snapshot = msgspec.structs.replace(snapshot, jobs=tuple(jobs), nodes=tuple(nodes))
    return played


def record(snapshots: Sequence[Snapshot]) -> list[CyclePiece]:
    writer = SegmentWriter("1.0")
    return [
        CyclePiece(id=piece_id(7, number), data=writer.compress([writer.add(each, decide(each), number)]), total=0)
        for number, each in enumerate(snapshots)
    ]


def read(pieces: Sequence[CyclePiece], until: int = END) -> list[RecordedCycle]:
    return list(read_cycles(pieces, until))


def test_a_snapshot_follows_exactly_from_the_one_before() -> None:
    for seed in range(20):
        snapshots = play(seed, 15)
        for before, after in itertools.pairwise(snapshots):
            assert apply_delta(before, compare_snapshots(before, after)) == after


def test_cycles_are_read_back_with_the_same_decisions_to_the_byte() -> None:
    snapshots = play(1, 30)
    cycles = read(record(snapshots))
    assert [cycle.snapshot for cycle in cycles] == snapshots
    assert [cycle.entry.digest for cycle in cycles] == [digest_decisions(decide(each)) for each in snapshots]
    assert {cycle.scheduler for cycle in cycles} == {"1.0"}
    assert [cycle.entry.revision for cycle in cycles] == list(range(30))


def test_reading_ends_at_the_time_that_is_asked_for() -> None:
    snapshots = play(2, 5)
    assert [cycle.at for cycle in read(record(snapshots), 1_002_500)] == [1_000_000, 1_001_000, 1_002_000]


def test_a_torn_or_missing_piece_ends_the_segment_before_it() -> None:
    pieces = record(play(3, 6))
    torn = msgspec.structs.replace(pieces[4], data=pieces[4].data[: len(pieces[4].data) // 2])
    assert len(read([*pieces[:4], torn, pieces[5]])) == 4
    assert len(read([*pieces[:2], *pieces[3:]])) == 2
    assert len(read(pieces)) == 6


def test_a_cycle_that_finds_only_another_time_is_quiet() -> None:
    [first, *_] = play(4, 1)
    later = msgspec.structs.replace(first, now=first.now + 60)
    assert compare_snapshots(first, later).is_quiet
    assert not compare_snapshots(first, msgspec.structs.replace(later, jobs=(job("x"),))).is_quiet
