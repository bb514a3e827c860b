"""What must hold for every cluster. Clusters are random and small; hypothesis chooses the seeds."""

from __future__ import annotations

import random
from collections import defaultdict

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fairlead.scheduling import check, decide, simulate
from fairlead.scheduling.cycle import decide_without_shortcuts
from fairlead.scheduling.model.decisions import Decisions
from fairlead.scheduling.model.snapshot import Job, Snapshot, Task
from fairlead.scheduling.simulate import advance

from .clusters import Maker, mostly_one_gpu, whole_gpu_cluster, whole_gpu_job

seeds = st.integers(min_value=0, max_value=100_000)
some = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

PLACED = ("Allocated", "Binding", "Bound", "Running")


def decided(seed: int) -> tuple[Snapshot, Decisions]:
    snapshot = Maker(seed).snapshot()
    return snapshot, decide(snapshot)


def jobs_of(snapshot: Snapshot) -> dict[str, Job]:
    return {task.id: job for job in snapshot.jobs for task in job.tasks}


def tasks_of(snapshot: Snapshot) -> dict[str, Task]:
    return {task.id: task for job in snapshot.jobs for task in job.tasks}


def wants_gpu(task: Task) -> bool:
    return bool(task.gpu or task.gpu_portion or task.gpu_memory_mib)


@given(seed=seeds)
@some
def test_nothing_fails(seed: int) -> None:
    _, decisions = decided(seed)
    assert decisions.failures == ()


@given(seed=seeds)
@some
def test_never_above_capacity(seed: int) -> None:
    """Whatever three cycles do: no device twice, no group beyond a GPU, no node beyond its CPU, memory and pods."""
    for snapshot, decisions in simulate(Maker(seed).snapshot(), 3):
        check(snapshot)
        tasks = tasks_of(snapshot)
        use: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0])
        for task in tasks.values():
            if task.node is not None and task.status in (*PLACED, "Releasing", "StuckInReleasing"):
                add(use[task.node], task)
        for bind in decisions.starts:
            add(use[bind.node], tasks[bind.task])
        for node in snapshot.nodes:
            cpu, memory, pods = use[node.name]
            assert cpu <= node.cpu_milli
            assert memory <= node.memory_bytes
            assert pods <= node.pods


def add(use: list[float], task: Task) -> None:
    use[0] += task.cpu_milli
    use[1] += task.memory_bytes
    use[2] += 1


@given(seed=seeds)
@some
def test_starts_stay_within_limits(seed: int) -> None:
    snapshot, decisions = decided(seed)
    queues = {queue.name: queue for queue in snapshot.queues}
    tasks = tasks_of(snapshot)
    starters = {bind.job for bind in decisions.binds if wants_gpu(tasks[bind.task])}
    grew = {job.queue for job in snapshot.jobs if job.id in starters}
    for share in decisions.fair_shares:
        limit = queues[share.queue].resources.gpu.limit
        if share.queue in grew and limit != -1:
            assert share.allocated[0] <= limit + 1e-6


@given(seed=seeds)
@some
def test_non_preemptible_work_stays_and_keeps_to_its_quota(seed: int) -> None:
    snapshot, decisions = decided(seed)
    jobs, tasks = jobs_of(snapshot), tasks_of(snapshot)
    assert all(jobs[eviction.task].preemptible or eviction.rule == "stale" for eviction in decisions.evictions), (
        "non-preemptible work was evicted"
    )
    queues = {queue.name: queue for queue in snapshot.queues}
    grew = {jobs[b.task].queue for b in decisions.binds if not jobs[b.task].preemptible and wants_gpu(tasks[b.task])}
    for share in decisions.fair_shares:
        quota = queues[share.queue].resources.gpu.quota
        if share.queue in grew and quota != -1:
            assert share.allocated_non_preemptible[0] <= quota + 1e-6


@given(seed=seeds)
@some
def test_work_within_quota_is_never_reclaimed(seed: int) -> None:
    _, decisions = decided(seed)
    for eviction in decisions.evictions:
        if eviction.rule == "reclaimed" and eviction.moved_to is None:
            figures = eviction.victim_queue
            assert figures is not None
            over = [a > q for a, q in zip(figures.allocated, figures.quota, strict=True) if q != -1]
            assert any(over)


@given(seed=seeds)
@some
def test_gangs_start_whole(seed: int) -> None:
    snapshot, decisions = decided(seed)
    started = {bind.job for bind in decisions.binds}
    gone = {eviction.task for eviction in decisions.evictions}
    placed = {bind.task for bind in decisions.binds}
    for job in snapshot.jobs:
        if job.id in started and not job.groups:
            active = [
                t for t in job.tasks if t.id in placed or (t.status in (*PLACED, "Releasing") and t.id not in gone)
            ]
            assert len(active) >= job.min_available


@given(seed=seeds)
@example(seed=66)
@example(seed=112)
@some
def test_a_cycle_that_takes_back_its_own_placements_starts_somebody(seed: int) -> None:
    """Otherwise the next cycle would do the same again, for ever. Stale gangs are ended, not replaced."""
    for snapshot, decisions in simulate(Maker(seed).snapshot(), 4):
        leaving = any(task.status in ("Releasing", "StuckInReleasing") for task in tasks_of(snapshot).values())
        taken_back = [each for each in decisions.evictions if each.never_started and each.rule != "stale"]
        if taken_back and len(taken_back) == len(decisions.evictions) and not leaving:
            assert decisions.starts


@given(seed=seeds)
@some
def test_somebody_gains_by_every_eviction(seed: int) -> None:
    _, decisions = decided(seed)
    placed = {bind.job for bind in decisions.binds} | {kept.job for kept in decisions.pipelined}
    for eviction in decisions.evictions:
        assert eviction.by_job is None or eviction.by_job in placed or eviction.by_job in lost(decisions)


def lost(decisions: Decisions) -> set[str]:
    """Winners that lost their own promise again to a later one in the same cycle."""
    return {pending.job for pending in decisions.pending}


def has_limit(snapshot: Snapshot, queue: str | None) -> bool:
    """Whether a queue or one above it has a limit."""
    queues = {known.name: known for known in snapshot.queues}
    while queue is not None and queue in queues:
        shares = queues[queue].resources
        if any(share.limit != -1 for share in (shares.gpu, shares.cpu, shares.memory)):
            return True
        queue = queues[queue].parent
    return False


@given(seed=seeds)
@some
def test_no_single_victim_could_have_stayed(seed: int) -> None:
    """With one winner: a job of one task that was evicted would not fit beside it on the node it had.

    Unless a limit kept it from coming back: what runs beyond a limit that was lowered stays only until it is moved. And
    unless tasks were leaving the node already: what they free is given out in the order in which KAI tries scenarios.
    """
    snapshot, decisions = decided(seed)
    winners = {eviction.by_job for eviction in decisions.evictions}
    if len(winners) != 1 or decisions.binds:
        return
    tasks, jobs = tasks_of(snapshot), jobs_of(snapshot)
    gone = {eviction.task for eviction in decisions.evictions}
    for eviction in decisions.evictions:
        task = tasks[eviction.task]
        alone = len(jobs[task.id].tasks) == 1 and not (task.pod_affinity or task.pod_anti_affinity)
        if eviction.moved_to is not None or not alone or not task.gpu or has_limit(snapshot, jobs[task.id].queue):
            continue
        node = next(node for node in snapshot.nodes if node.name == eviction.node)
        if any(t.node == node.name and t.status in ("Releasing", "StuckInReleasing") for t in tasks.values()):
            continue
        rest = [t for t in tasks.values() if t.node == node.name and t.status in PLACED and t.id not in gone]
        coming = [tasks[kept.task] for kept in decisions.pipelined if kept.node == node.name]
        if any(t.gpu_portion or t.gpu_memory_mib for t in [*rest, *coming]) or not node.ready:
            continue
        used = sum(t.gpu for t in [*rest, *coming])
        cpu = sum(t.cpu_milli for t in [*rest, *coming])
        assert (
            used + task.gpu > node.gpu or cpu + task.cpu_milli > node.cpu_milli or len(rest) + len(coming) >= node.pods
        )


@given(seed=seeds)
@some
def test_same_input_same_output(seed: int) -> None:
    snapshot = Maker(seed).snapshot()
    first = msgspec.json.encode(decide(snapshot))
    assert msgspec.json.encode(decide(snapshot)) == first


@given(seed=seeds, shuffle=st.integers(0, 1000))
@some
def test_order_of_lists_does_not_matter(seed: int, shuffle: int) -> None:
    snapshot = Maker(seed).snapshot()
    mixed = msgspec.structs.replace(
        snapshot,
        nodes=shuffled(snapshot.nodes, shuffle),
        queues=shuffled(snapshot.queues, shuffle),
        jobs=shuffled(snapshot.jobs, shuffle),
    )
    assert decide(mixed) == decide(snapshot)


def shuffled(items: tuple[object, ...], seed: int) -> tuple[object, ...]:
    mixed = list(items)
    random.Random(seed).shuffle(mixed)
    return tuple(mixed)


@given(seed=seeds)
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_shortcuts_find_what_the_plain_way_finds(seed: int) -> None:
    snapshot = Maker(seed).snapshot()
    quick, plain = decide(snapshot), decide_without_shortcuts(snapshot)
    assert quick.states == plain.states
    assert quick.binds == plain.binds
    assert quick.evictions == plain.evictions
    assert quick.pipelined == plain.pipelined


@pytest.mark.parametrize("seed", range(30))
def test_shortcuts_on_full_clusters_of_equal_gangs(seed: int) -> None:
    """Whole GPUs only and nothing free: where bounds and forecasts bite."""
    maker = Maker(seed, features=("elastic",))
    snapshot = maker.snapshot()
    jobs = tuple(
        msgspec.structs.replace(job, tasks=tuple(msgspec.structs.replace(t, gpu=1, cpu_milli=0) for t in job.tasks))
        for job in snapshot.jobs
        if all(task.gpu == 1 for task in job.tasks)
    )
    snapshot = msgspec.structs.replace(snapshot, jobs=jobs)
    assert decide(snapshot).states == decide_without_shortcuts(snapshot).states


def assert_equal_decisions(snapshot: Snapshot) -> Decisions:
    quick, plain = decide(snapshot), decide_without_shortcuts(snapshot)
    assert (quick.binds, quick.early_binds) == (plain.binds, plain.early_binds)
    assert quick.evictions == plain.evictions
    assert quick.pipelined == plain.pipelined
    assert quick.next_change_at == plain.next_change_at
    return quick


#: In the last one, a GPU is idle but promised.
@pytest.mark.parametrize("seed", [*range(40), 244])
def test_shortcuts_on_busy_clusters_of_whole_gpus(seed: int) -> None:
    """Jobs come and end over several cycles, so that queues are above and below their shares."""
    dice = random.Random(seed)
    snapshot = whole_gpu_cluster(dice)
    number = 0
    for cycle in range(14):
        now = cycle * 10.0
        jobs = [job for job in snapshot.jobs if any(task.node is None for task in job.tasks) or dice.random() > 0.15]
        for _ in range(dice.randint(0, 6)):
            number += 1
            jobs.append(whole_gpu_job(dice, snapshot, number, now))
        snapshot = msgspec.structs.replace(snapshot, jobs=tuple(jobs), now=now)
        snapshot = advance(snapshot, assert_equal_decisions(snapshot), now)


#: In the last one, a victim was moved before in the same cycle.
@pytest.mark.parametrize("seed", [*range(30), 1933])
def test_shortcuts_where_most_jobs_ask_for_one_gpu(seed: int) -> None:
    """Nothing is free, few victims are large, and gangs that do not fit wait before the others."""
    dice = random.Random(seed)
    snapshot, make = mostly_one_gpu(dice)
    number = 0
    for cycle in range(16):
        now = cycle * 10.0
        jobs = [job for job in snapshot.jobs if any(task.node is None for task in job.tasks) or dice.random() > 0.1]
        for _ in range(dice.choice((25, 40)) if cycle == 0 else dice.randint(0, 5)):
            number += 1
            jobs.append(make(number, now))
        snapshot = msgspec.structs.replace(snapshot, jobs=tuple(jobs), now=now)
        snapshot = advance(snapshot, assert_equal_decisions(snapshot), now)
