"""The openb trace (Alibaba's cluster-trace-gpu-v2023): how much of the GPUs is given out when 130 % are asked for.

Protocol of its authors: pods in random order, further ones drawn until 130 % of all GPUs are asked for; each is tried
once, none leaves, what does not fit is dropped. Best fit, random and fragmentation gradient descent (FGD) are played
beside our strategies on the same streams; the last one's score is rounded coarsely, as its authors' is.
"""

from __future__ import annotations

import csv
import random
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

from fairlead.scheduling import Job, Node, Placement, Queue, QueueShares, Settings, Share, Snapshot, Task, decide
from fairlead.scheduling.defragment import Fragmentation, place
from fairlead.scheduling.requests import RequestClasses
from fairlead.scheduling.snapshot import Strategy

SEEDS = tuple(range(42, 52))
PUBLISHED = {"random": 87.47, "best fit": 93.08, "FGD": 95.39}
FREE = Share(limit=-1, quota=-1, over_quota_weight=1)
#: CPU, memory in MiB, devices, thousandths of each.
Pod = tuple[int, int, int, int]


def load(folder: str) -> tuple[list[tuple[int, int, int]], list[Pod]]:
    root = Path(folder)
    with (root / "openb_node_list_gpu_node.csv").open() as file:
        nodes = [(int(n["cpu_milli"]), int(n["memory_mib"]), int(n["gpu"])) for n in csv.DictReader(file)]
    with (root / "openb_pod_list_default.csv").open() as file:
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
            Node(
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


def play_ours(folder: str, seed: int, strategy: Strategy) -> tuple[float, float]:
    """Part of the GPUs given out, and seconds of `decide`."""
    nodes, pods = load(folder)
    order, total = stream(nodes, pods, seed)
    snapshot = snapshot_of(nodes, order, strategy)
    begin = time.perf_counter()
    decisions = decide(snapshot)
    took = time.perf_counter() - begin
    given = sum(order[int(bind.task[4:])][2] * order[int(bind.task[4:])][3] for bind in decisions.binds)
    return 100 * given / total, took


Gpus = tuple[int, ...]
#: Pod, node's number, its CPU, memory and GPUs; the smallest goes first.
Policy = Callable[[Pod, int, int, int, Gpus], float]


def play_peer(folder: str, seed: int, name: str) -> float:
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


def bench_openb(folder: str) -> None:
    out = sys.stdout
    with ProcessPoolExecutor(max_workers=2) as pool:
        strategies: tuple[Strategy, ...] = ("defragment", "binpack")
        for strategy in strategies:
            begin = time.perf_counter()
            jobs = [pool.submit(play_ours, folder, seed, strategy) for seed in SEEDS]
            results = [job.result() for job in jobs]
            wall = time.perf_counter() - begin
            rates = [rate for rate, _ in results]
            inside = sum(took for _, took in results)
            out.write(
                f"openb, ours: {strategy}: {statistics.mean(rates):.2f} % given out "
                f"(from {min(rates):.2f} to {max(rates):.2f}), 10 seeds in {wall:.1f} s on 2 cores, "
                f"{inside:.1f} s of it in decide\n"
            )
            out.flush()
        for name, published in PUBLISHED.items():
            rates = [job.result() for job in [pool.submit(play_peer, folder, seed, name) for seed in SEEDS]]
            out.write(f"openb, {name}: {statistics.mean(rates):.2f} % (published {published} %)\n")
            out.flush()
