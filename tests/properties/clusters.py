"""Random small clusters that hold together: what runs fits where it runs. Seeds in, snapshots out."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec

from fairlead.scheduling.model.snapshot import (
    Job,
    JobPodSet,
    Placement,
    PodTerm,
    Queue,
    QueueShares,
    Settings,
    Share,
    Snapshot,
    SnapshotNode,
    Strategy,
    SubGroup,
    Task,
    TaskStatus,
    Topology,
    TopologyConstraint,
)

GIB = 1 << 30
FEATURES = ("fractions", "memory", "elastic", "subgroups", "topology", "limits", "affinity", "cpu", "spread", "mig")


class Maker:
    """One random cluster; `features` is what may occur in it."""

    def __init__(self, seed: int, features: tuple[str, ...] = FEATURES) -> None:
        self.random = random.Random(seed)
        self.features = {feature for feature in features if self.random.random() < 0.4}
        self.nodes: list[SnapshotNode] = []
        #: Node to free GPUs, portions of shared GPUs by group, free cores.
        self.free: dict[str, list[int]] = {}
        self.groups: dict[str, dict[str, float]] = {}
        self.jobs: list[Job] = []
        self.leaves: list[str] = []

    def has(self, feature: str) -> bool:
        return feature in self.features

    def snapshot(self) -> Snapshot:
        self._make_nodes()
        queues = self._make_queues()
        for number in range(self.random.randint(1, 12)):
            self._make_job(number, running=True)
        for number in range(self.random.randint(1, 6)):
            self._make_job(100 + number, running=False)
        strategy: Strategy = "spread" if self.has("spread") else "binpack"
        topologies = (Topology(name="net", levels=("zone", "rack")),) if self.has("topology") else ()
        return Snapshot(
            now=1000,
            nodes=tuple(self.nodes),
            queues=queues,
            jobs=tuple(self.jobs),
            topologies=topologies,
            settings=Settings(
                placement=Placement(gpu=strategy, cpu=strategy if self.random.random() < 0.5 else "binpack"),
                max_consolidation_victims=self.random.choice((16, 16, -1)),
                allow_consolidating_reclaim=self.random.random() < 0.8,
                staleness_grace=self.random.choice((0, 60)),
                reclaim_min_runtime=self.random.choice((0, 0, 500)),
            ),
        )

    def _make_nodes(self) -> None:
        for number in range(self.random.randint(1, 5)):
            name = f"n{number}"
            gpus = self.random.choice((1, 2, 4, 4, 8))
            node = SnapshotNode(
                name=name,
                cpu_milli=self.random.choice((4000, 16000)),
                memory_bytes=64 * GIB,
                pods=self.random.choice((6, 110)),
                gpu=gpus,
                gpu_memory_mib=self.random.choice((16000, 40000)) if self.has("memory") else 40000,
                labels={"zone": f"z{number % 2}", "rack": f"r{number % 3}", "kubernetes.io/hostname": name},
                ready=self.random.random() > 0.05,
            )
            self.nodes.append(node)
            self.free[name] = [gpus, node.cpu_milli, node.pods]
            self.groups[name] = {}

    def _share(self, unlimited: bool) -> Share:
        if unlimited:
            return Share(limit=-1, quota=-1, over_quota_weight=1)
        limit = self.random.choice((-1, -1, 4)) if self.has("limits") else -1
        return Share(limit=limit, quota=self.random.randint(0, 4), over_quota_weight=self.random.choice((0, 1, 2)))

    def _make_queues(self) -> tuple[Queue, ...]:
        departments = self.random.randint(0, 2)
        found = [self._queue(f"d{number}", None, self.random.random() < 0.5) for number in range(departments)]
        for number in range(self.random.randint(1, 4)):
            parent = f"d{number % departments}" if departments else None
            found.append(self._queue(f"q{number}", parent, False))
            self.leaves.append(f"q{number}")
        return tuple(found)

    def _queue(self, name: str, parent: str | None, unlimited: bool) -> Queue:
        free = Share(limit=-1, quota=-1, over_quota_weight=1)
        cpu = free if self.random.random() < 0.8 else Share(limit=-1, quota=4000, over_quota_weight=1)
        return Queue(
            name=name,
            parent=parent,
            priority=self.random.choice((100, 100, 200)),
            created=self.random.randint(0, 3),
            resources=QueueShares(gpu=self._share(unlimited), cpu=cpu, memory=free),
        )

    def _make_job(self, number: int, running: bool) -> None:
        count = self.random.choice((1, 1, 1, 2, 3, 4))
        job_id = f"j{number:03d}"
        ask = self._ask()
        minimum = self.random.randint(1, count) if self.has("elastic") else count
        placed = self._place(ask, count if not self.has("elastic") else self.random.randint(minimum, count))
        if running and placed is None:
            return
        spots = placed if running and placed is not None else []
        tasks = tuple(
            Task(
                id=f"{job_id}-{index}",
                status="Pending" if index >= len(spots) else self._status(),
                node=None if index >= len(spots) else spots[index][0],
                gpu_groups=() if index >= len(spots) else spots[index][1],
                labels={"app": job_id if self.random.random() < 0.5 else "web"},
                pod_set=f"s{index % 2}" if self._split(count) else "default",
                **ask,
            )
            for index in range(count)
        )
        self.jobs.append(self._job(job_id, tasks, minimum, bool(spots)))

    def _split(self, count: int) -> bool:
        return self.has("subgroups") and count > 1

    def _status(self) -> TaskStatus:
        often: tuple[TaskStatus, ...] = ("Running", "Running", "Running", "Running", "Bound", "Releasing")
        return self.random.choice(often)

    def _job(self, job_id: str, tasks: tuple[Task, ...], minimum: int, running: bool) -> Job:
        priority = self.random.choice((50, 50, 60, 100))
        topology = None
        if self.has("topology") and self.random.random() < 0.5 and not running:
            topology = TopologyConstraint(
                topology="net",
                required=self.random.choice(("zone", "rack", None)),
                preferred=self.random.choice(("rack", None)) or "rack",
            )
        shape: dict[str, Any] = {"min_available": minimum, "topology": topology}
        if self._split(len(tasks)):
            sizes = [sum(task.pod_set == f"s{part}" for task in tasks) for part in (0, 1)]
            sets = tuple(JobPodSet(name=f"s{part}", min_available=min(minimum, sizes[part])) for part in (0, 1))
            inner = SubGroup(name="g", pod_sets=sets, min_sub_group=self.random.choice((None, 1)))
            shape = {"groups": (inner,), "topology": topology}
        return Job(
            id=job_id,
            queue=self.random.choice(self.leaves),
            tasks=tasks,
            priority=priority,
            preemptible=priority < 100,
            created=self.random.randint(0, 5),
            last_start=self.random.choice((100, 900)) if running else None,
            **shape,
        )

    def _ask(self) -> dict[str, Any]:
        ask: dict[str, Any] = {"cpu_milli": self.random.choice((0, 500, 1000)), "memory_bytes": GIB}
        roll = self.random.random()
        if self.has("fractions") and roll < 0.4:
            ask["gpu_portion"] = self.random.choice((0.25, 0.5, 0.5, 0.7))
            ask["gpu_devices"] = self.random.choice((1, 1, 1, 2))
        elif self.has("memory") and roll < 0.6:
            ask["gpu_memory_mib"] = self.random.choice((4000, 10000, 20000))
        elif self.has("cpu") and roll < 0.75:
            ask["cpu_milli"] = self.random.choice((1000, 3000))
        else:
            ask["gpu"] = self.random.choice((1, 1, 1, 2, 4))
        if self.has("affinity") and self.random.random() < 0.4:
            term = PodTerm(
                topology_key=self.random.choice(("rack", "kubernetes.io/hostname")), match_labels={"app": "web"}
            )
            ask[self.random.choice(("pod_affinity", "pod_anti_affinity"))] = (term,)
        return ask

    def _place(self, ask: dict[str, Any], count: int) -> list[tuple[str, tuple[str, ...]]] | None:
        """Somewhere with room, if there is; books what it takes."""
        spots: list[tuple[str, tuple[str, ...]]] = []
        for _ in range(count):
            options = [node for node in self.nodes if self._fits(node, ask)]
            if not options:
                return None
            node = self.random.choice(options)
            spots.append((node.name, self._book(node, ask)))
        return spots

    def _portion(self, node: SnapshotNode, ask: dict[str, Any]) -> float:
        if "gpu_portion" in ask:
            return float(ask["gpu_portion"])
        return int(ask["gpu_memory_mib"]) / node.gpu_memory_mib

    def _fits(self, node: SnapshotNode, ask: dict[str, Any]) -> bool:
        gpus, cpu, pods = self.free[node.name]
        if int(ask["cpu_milli"]) > cpu or pods < 3:
            return False
        if "gpu_portion" in ask or "gpu_memory_mib" in ask:
            devices = int(ask.get("gpu_devices", 1))
            portion = self._portion(node, ask)
            open_groups = [g for g, used in self.groups[node.name].items() if used + portion <= 1]
            return portion <= 1 and len(open_groups) + gpus >= devices
        return int(ask.get("gpu", 0)) <= gpus

    def _book(self, node: SnapshotNode, ask: dict[str, Any]) -> tuple[str, ...]:
        room = self.free[node.name]
        room[1] -= int(ask["cpu_milli"])
        room[2] -= 1
        if "gpu_portion" not in ask and "gpu_memory_mib" not in ask:
            room[0] -= int(ask.get("gpu", 0))
            return ()
        portion = self._portion(node, ask)
        groups = self.groups[node.name]
        chosen = [group for group, used in groups.items() if used + portion <= 1]
        devices = int(ask.get("gpu_devices", 1))
        while len(chosen) < devices:
            room[0] -= 1
            chosen.append(f"{node.name}-g{len(groups)}")
            groups[chosen[-1]] = 0
        for group in chosen[:devices]:
            groups[group] += portion
        return tuple(chosen[:devices])


def whole_gpu_cluster(dice: random.Random) -> Snapshot:
    """Nodes and queues for jobs that ask for whole GPUs and nothing else."""
    nodes = tuple(
        SnapshotNode(
            name=f"n{number}", gpu=dice.choice((4, 8, 8)), cpu_milli=64_000, memory_bytes=GIB, gpu_memory_mib=80_000
        )
        for number in range(dice.randint(2, 6))
    )
    total, count = sum(node.gpu for node in nodes), dice.randint(2, 4)
    free = Share(limit=-1, quota=-1)
    queues = []
    for number in range(count):
        quota = dice.choice((0, total / count, total / count / 2))
        shares = Share(limit=-1, quota=quota, over_quota_weight=dice.choice((1, 1, 2)))
        resources = QueueShares(gpu=shares, cpu=free, memory=free)
        protected = dice.choice((None, None, 30))
        queues.append(Queue(name=f"q{number}", resources=resources, created=number, reclaim_min_runtime=protected))
    return Snapshot(now=0, nodes=nodes, queues=tuple(queues))


def whole_gpu_job(dice: random.Random, cluster: Snapshot, number: int, now: float) -> Job:
    gpus = dice.choice((1, 1, 1, 2, 2, 3, 4, 4, 8))
    pods = dice.choice((1, 1, 1, 2, 3))
    return Job(
        id=f"j{number:03d}",
        queue=dice.choice(cluster.queues).name,
        tasks=tuple(Task(id=f"j{number:03d}-{pod}", gpu=gpus) for pod in range(pods)),
        min_available=pods,
        created=now,
        priority=dice.choice((50, 50, 50, 75)),
        preemptible=dice.random() < 0.9,
    )


def mostly_one_gpu(dice: random.Random) -> tuple[Snapshot, Callable[[int, float], Job]]:
    """A cluster in which nearly everything waits for few GPUs, and a maker of jobs: number and time to job."""
    cluster = whole_gpu_cluster(dice)
    if dice.random() < 0.7:
        nodes = tuple(msgspec.structs.replace(node, gpu=8) for node in cluster.nodes)
        cluster = msgspec.structs.replace(cluster, nodes=nodes)
    queues = []
    for queue in cluster.queues:
        quota = dice.choice((0, 0, queue.resources.gpu.quota))
        shares = msgspec.structs.replace(queue.resources.gpu, over_quota_weight=1, quota=quota)
        resources = msgspec.structs.replace(queue.resources, gpu=shares)
        queues.append(msgspec.structs.replace(queue, resources=resources))
    cluster = msgspec.structs.replace(cluster, queues=tuple(queues))
    sizes = dice.choice(((8, 0, 0, 1), (8, 1, 1, 1), (8, 0, 2, 1), (5, 2, 0, 1), (6, 1, 1, 0), (9, 1, 2, 2)))
    busy = [dice.choice((1, 1, 3, 6)) for _ in queues]

    def make(number: int, now: float) -> Job:
        gpus = dice.choices((1, 2, 4, 8), sizes)[0]
        pods = 1 if dice.random() < 0.85 else dice.choice((2, 3, 4))
        queue = dice.choices(queues, busy)[0]
        return Job(
            id=f"j{number:03d}",
            queue=queue.name,
            tasks=tuple(Task(id=f"j{number:03d}-{pod}", gpu=gpus) for pod in range(pods)),
            min_available=pods,
            created=now + dice.random(),
            priority=50,
        )

    return cluster, make
