"""The openb trace (Alibaba's cluster-trace-gpu-v2023): how much of the GPUs is given out when 130 % are asked for.

Protocol of its authors: pods in random order, further ones drawn until 130 % of all GPUs are asked for; each is tried
once, none leaves, what does not fit is dropped. Best fit, random and fragmentation gradient descent (FGD) are played
beside our strategies on the same streams; the last one's score is rounded coarsely, as its authors' is.

With consolidation, a second cycle may move what runs to make room for what was dropped.
"""

from __future__ import annotations

import csv
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fairlead.scheduling import (
    Job,
    Placement,
    Queue,
    QueueShares,
    Settings,
    Share,
    Snapshot,
    SnapshotNode,
    Task,
    advance,
    decide,
)
from fairlead.scheduling.model.requests import RequestClasses
from fairlead.scheduling.model.snapshot import Strategy
from fairlead.scheduling.placement.defragment import Fragmentation, place

SEEDS = tuple(range(42, 52))
#: Ours first.
STRATEGIES: tuple[Strategy, ...] = ("defragment", "binpack")
DEFAULT_FOLDER = Path(__file__).parent / "data" / "openb"
#: Mean of the authors' ten runs, and how far ours may be off.
PUBLISHED = {"random": (87.47, 0.5), "best fit": (93.08, 0.8), "FGD": (95.39, 0.5)}
SECONDS_GOAL = 10.0
RATE_GOAL = 95.4
CONSOLIDATED_GOAL = 97.7
#: Per hundred pods.
MOVES_GOAL = 2.0
FREE = Share(limit=-1, quota=-1, over_quota_weight=1)
#: CPU, memory in MiB, devices, thousandths of each.
Pod = tuple[int, int, int, int]


def load(folder: Path) -> tuple[list[tuple[int, int, int]], list[Pod]]:
    with (folder / "openb_node_list_gpu_node.csv").open() as file:
        nodes = [(int(n["cpu_milli"]), int(n["memory_mib"]), int(n["gpu"])) for n in csv.DictReader(file)]
    with (folder / "openb_pod_list_default.csv").open() as file:
        pods = [
            (int(p["cpu_milli"]), int(p["memory_mib"]), int(p["num_gpu"]), int(p["gpu_milli"]))
            for p in csv.DictReader(file)
        ]
    return nodes, pods


def stream(nodes: list[tuple[int, int, int]], pods: list[Pod], seed: int) -> tuple[list[Pod], int]:
    """Pods in the order in which they arrive, and all GPUs in thousandths."""
    dice = random.Random(seed)
    total = 1000 * sum(node[2] for node in nodes)
    order = list(pods)
    dice.shuffle(order)
    asked = sum(pod[2] * pod[3] for pod in order)
    while asked < 1.3 * total:
        order.append(dice.choice(pods))
        asked += order[-1][2] * order[-1][3]
    return order, total


def task_of(pod: Pod, name: str) -> Task:
    cpu, memory, devices, part = pod
    asked: dict[str, Any] = {"cpu_milli": cpu, "memory_bytes": memory << 20}
    if devices:
        asked |= {"gpu": devices} if part == 1000 else {"gpu_portion": part / 1000, "gpu_devices": devices}
    return Task(id=name, **asked)


def snapshot_of(nodes: list[tuple[int, int, int]], order: list[Pod], strategy: Strategy) -> Snapshot:
    return Snapshot(
        now=0,
        nodes=tuple(
            SnapshotNode(
                name=f"node-{number:04d}",
                cpu_milli=cpu,
                memory_bytes=memory << 20,
                gpu=gpus,
                gpu_memory_mib=100_000,
                pods=100_000,
            )
            for number, (cpu, memory, gpus) in enumerate(nodes)
        ),
        queues=(Queue(name="all", resources=QueueShares(gpu=FREE, cpu=FREE, memory=FREE)),),
        jobs=tuple(
            Job(id=f"pod-{n:05d}", queue="all", created=n, tasks=(task_of(pod, f"pod-{n:05d}"),))
            for n, pod in enumerate(order)
        ),
        settings=Settings(actions=("allocate",), placement=Placement(gpu=strategy, cpu=strategy)),
    )


class Played(NamedTuple):
    """One stream: percent of the GPUs given out, CPU seconds of `decide`, and the same after a consolidating cycle."""

    rate: float
    seconds: float
    consolidated: float
    #: Per hundred pods.
    moves: float
    #: Percent that no policy exceeds which drops nothing that fits.
    most: float


def play_ours(folder: Path, seed: int, strategy: Strategy) -> Played:
    nodes, pods = load(folder)
    order, total = stream(nodes, pods, seed)
    snapshot = snapshot_of(nodes, order, strategy)
    begin = time.process_time()
    decisions = decide(snapshot)
    took = time.process_time() - begin
    given = sum(_gpus(order, bind.task) for bind in decisions.binds)
    settings = msgspec.structs.replace(snapshot.settings, actions=("consolidation",))
    again = decide(msgspec.structs.replace(advance(snapshot, decisions, 1), settings=settings))
    moved = {eviction.task for eviction in again.evictions}
    won = sum(_gpus(order, kept.task) for kept in again.pipelined if kept.task not in moved)
    return Played(
        rate=100 * given / total,
        seconds=took,
        consolidated=100 * (given + won) / total,
        moves=100 * len(moved) / len(order),
        most=100 * most_given(order, total) / total,
    )


def _gpus(order: list[Pod], task: str) -> int:
    pod = order[int(task.removeprefix("pod-"))]
    return pod[2] * pod[3]


def most_given(order: list[Pod], total: int) -> int:
    """No more than this is given out, whatever is moved, unless pods that fit are turned away or thrown out.

    A GPU with a pod of more than half of it has room only for smaller ones. What all pods of the whole stream cannot
    fill beside the most frequent of these large parts is lost, and it is lost before anything need be dropped.
    """
    parts = Counter(part for _, _, devices, part in order if devices == 1 and 500 < part < 1000)
    common = max(parts, key=lambda part: parts[part] * (1000 - part), default=1000)
    fillers = sum(part for _, _, devices, part in order if devices == 1 and part <= 1000 - common)
    given, held = 0, 0
    for _, _, devices, part in order:
        lost = max(0, (held + (devices == 1 and part == common)) * (1000 - common) - fillers)
        if given + devices * part + lost > total:
            break
        given += devices * part
        held += devices == 1 and part == common
    return total - max(0, held * (1000 - common) - fillers)


Gpus = tuple[int, ...]
#: Pod, node's number, its CPU, memory and GPUs; the smallest goes first.
Policy = Callable[[Pod, int, int, int, Gpus], float]


def play_peer(folder: Path, seed: int, name: str) -> float:
    """The peers in the simplest of simulators: per kind of pod a heap of nodes, changed nodes are ranked anew."""
    nodes, pods = load(folder)
    order, total = stream(nodes, pods, seed)
    rank = peer(name, pods, seed)
    state = [(cpu, memory, (1000,) * gpus) for cpu, memory, gpus in nodes]
    stamps = [0] * len(nodes)
    changed: list[int] = []
    heaps: dict[Pod, tuple[list[tuple[float, int, int]], list[int]]] = {}
    given = 0
    for pod in order:
        fresh = pod not in heaps
        heap, read = heaps.setdefault(pod, ([], [0]))
        for index in range(len(nodes)) if fresh else set(changed[read[0] :]):
            cpu, memory, gpus = state[index]
            if cpu >= pod[0] and memory >= pod[1] and sum(free >= pod[3] for free in gpus) >= pod[2]:
                heappush(heap, (rank(pod, index, cpu, memory, gpus), index, stamps[index]))
        read[0] = len(changed)
        while heap and stamps[heap[0][1]] != heap[0][2]:
            heappop(heap)
        if heap:
            index = heap[0][1]
            cpu, memory, gpus = state[index]
            state[index] = (cpu - pod[0], memory - pod[1], taken(pod, gpus))
            stamps[index] += 1
            changed.append(index)
            given += pod[2] * pod[3]
    return 100 * given / total


def taken(pod: Pod, gpus: Gpus) -> Gpus:
    """The fullest GPUs with room, as all policies here do it."""
    left, missing = list(gpus), pod[2]
    for position, free in enumerate(gpus):
        if missing and free >= pod[3]:
            left[position] = free - pod[3]
            missing -= 1
    return tuple(sorted(left))


def peer(name: str, pods: list[Pod], seed: int) -> Policy:
    dice = random.Random(seed)
    if name == "random":
        return lambda pod, index, cpu, memory, gpus: dice.random()
    if name == "best fit":
        return lambda pod, index, cpu, memory, gpus: cpu / 128_000 + sum(gpus) / 8_000
    return gradient_descent(pods)


def gradient_descent(pods: list[Pod]) -> Policy:
    """FGD by our own reckoning of fragments, without the part for CPU, in steps of 70 thousandths."""
    classes = RequestClasses(100_000, 100_000)
    kinds = [classes.of(task_of(pod, "pod")) for pod in pods]
    fragmentation = Fragmentation(kinds)
    costs: dict[tuple[int, Gpus], float] = {}

    def cost(cpu: int, gpus: Gpus) -> float:
        found = costs.get((cpu, gpus))
        if found is None:
            found = costs[cpu, gpus] = fragmentation.fragments(cpu, gpus)
        return found

    def rank(pod: Pod, index: int, cpu: int, memory: int, gpus: Gpus) -> float:
        after = place(classes.of(task_of(pod, "pod")), gpus)
        return (cost(cpu - pod[0], after) - cost(cpu, gpus)) // 70

    return rank


def bench_openb(folder: Path, seeds: Sequence[int] = SEEDS) -> None:
    write_row(f"openb, {len(seeds)} seeds", "goal", "reached", "")
    write_row(*["---"] * 4)
    with ProcessPoolExecutor(max_workers=2) as pool:
        for strategy in STRATEGIES:
            _bench_ours(pool, folder, seeds, strategy)
        for name, (published, tolerance) in PUBLISHED.items():
            rates = [job.result() for job in [pool.submit(play_peer, folder, seed, name) for seed in seeds]]
            mean = statistics.mean(rates)
            verdict = "" if abs(mean - published) <= tolerance else " (missed)"
            write_row(name, f"{published} % ± {tolerance}", f"{mean:.2f} %{verdict}", "published mean of ten runs")


def _bench_ours(pool: ProcessPoolExecutor, folder: Path, seeds: Sequence[int], strategy: Strategy) -> None:
    played = [job.result() for job in [pool.submit(play_ours, folder, seed, strategy) for seed in seeds]]
    rate = statistics.mean(each.rate for each in played)
    moved = statistics.mean(each.consolidated for each in played)
    moves, most = statistics.mean(each.moves for each in played), statistics.mean(each.most for each in played)
    seconds = sum(each.seconds for each in played)
    is_ours = strategy == STRATEGIES[0]
    spread = f"from {min(each.rate for each in played):.2f} to {max(each.rate for each in played):.2f}"
    goal, verdict = (f">= {RATE_GOAL} %", "" if rate >= RATE_GOAL else " (missed)") if is_ours else ("", "")
    write_row(f"placement {strategy}, nothing moved", goal, f"{rate:.2f} %{verdict}", spread)
    if is_ours:
        verdict = "" if moved >= CONSOLIDATED_GOAL and moves <= MOVES_GOAL else " (missed)"
        goal = f">= {CONSOLIDATED_GOAL} % at <= {MOVES_GOAL} moves per 100 pods"
        note = f"no policy that drops nothing that fits passes {most:.2f} %, however much it moves"
        write_row("the same with consolidation", goal, f"{moved:.2f} % at {moves:.2f}{verdict}", note)
        verdict = "" if seconds / 2 <= SECONDS_GOAL else " (missed)"
        write_row(
            "time of all seeds on 2 cores", f"<= {SECONDS_GOAL} s", f"{seconds / 2:.1f} s{verdict}", "CPU, halved"
        )


def write_row(*cells: str) -> None:
    sys.stdout.write("| " + " | ".join(cells) + " |\n")
    sys.stdout.flush()
