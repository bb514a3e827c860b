"""Random clusters that are played over several cycles: jobs come and end, nodes and rules change. A seed gives a play.

Most plays have few features besides whole GPUs, because shortcuts of the scheduler apply there; some have all.
`python -m tests.properties.plays --seed 0 --plays 1000` compares `decide` with the plain way in each cycle.
"""

from __future__ import annotations

import argparse
import random
import traceback
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from fairlead.scheduling import advance, check, decide
from fairlead.scheduling.cycle import decide_without_shortcuts
from fairlead.scheduling.incremental import IncrementalCluster, can_decide_incrementally
from fairlead.scheduling.model.decisions import Decisions
from fairlead.scheduling.model.snapshot import (
    ForeignUsage,
    Job,
    JobPodSet,
    NodeTaint,
    Placement,
    PodTerm,
    PoolSettings,
    PreferredTerm,
    Queue,
    QueueShares,
    QueueUsage,
    Requirement,
    Settings,
    Share,
    Snapshot,
    SnapshotNode,
    Strategy,
    SubGroup,
    Task,
    TaskStatus,
    TaskToleration,
    Topology,
    TopologyConstraint,
)

GIB = 1 << 30
ENDED = ("Succeeded", "Failed", "Deleted")
FREE = Share(limit=-1, quota=-1, over_quota_weight=1)
#: What a play may have. Each name is asked for where it matters.
REQUESTS = ("portions", "memory", "devices", "mig", "extended", "cpu", "cpu-only", "few-pods")
SHAPES = ("elastic", "no-minimum", "pod-sets", "subgroups", "required", "preferred", "order", "gated")
NODES = ("pools", "selectors", "node-affinity", "taints", "pod-affinity", "cordons", "overbooked", "foreign", "lost")
QUEUES = ("departments", "three-levels", "limits", "cpu-quotas", "queue-priorities", "history", "changes", "orphans")
RULES = ("fixed", "min-runtimes", "delays", "priorities", "settings", "depth", "spread", "devices-spread", "defragment")
STATES = ("releasing", "stuck", "binding", "pipelined", "nominated", "stale", "deleting", "ends-in-part", "elsewhere")
FEATURES = REQUESTS + SHAPES + NODES + QUEUES + RULES + STATES


class Play:
    """One cluster and what happens to it. `snapshots` expects the decisions that are to be carried out."""

    def __init__(self, seed: int, features: tuple[str, ...] | None = None) -> None:
        self.dice = random.Random(seed)
        count = self.dice.choice((0, 1, 1, 2, 2, 3, 4, 6, 10, 20))
        chosen = features if features is not None else tuple(self.dice.sample(FEATURES, count))
        self.features = frozenset(chosen)
        self.number = 0
        self.pools = ("default", "other") if self.has("pools") else ("default",)
        self.leaves: list[str] = []
        self.snapshot: Snapshot = Snapshot(
            now=0,
            nodes=tuple(self._node(number) for number in range(self.dice.randint(1, 7))),
            queues=self._queues(),
            topologies=(Topology(name="net", levels=("zone", "rack", "kubernetes.io/hostname")),),
            settings=self._settings(),
        )

    def has(self, feature: str) -> bool:
        return feature in self.features

    def chance(self, feature: str, often: float) -> bool:
        return self.has(feature) and self.dice.random() < often

    def pick(self, *choices: Any) -> Any:
        return self.dice.choice(choices)

    # Nodes

    def _node(self, number: int) -> SnapshotNode:
        name = f"n{number}"
        gpus = self.pick(1, 2, 4, 4, 8, 8)
        mig: dict[str, Any] = {}
        if self.chance("mig", 0.5):
            mig = {
                "mig_strategy": self.pick("mixed", "mixed", "single"),
                "mig": {"1g.5gb": self.pick(2, 7), "3g.20gb": self.pick(0, 2)},
                "labels": {"node-role.kubernetes.io/mig-enabled": "true"},
            }
            gpus = 0 if mig["mig_strategy"] == "mixed" else gpus
        elif self.chance("cpu-only", 0.3):
            gpus = 0
        return SnapshotNode(
            name=name,
            cpu_milli=self.pick(4000, 16_000) if self.has("cpu") else 64_000,
            memory_bytes=self.pick(16, 64) * GIB if self.has("cpu") else 512 * GIB,
            pods=self.pick(3, 6, 12) if self.has("few-pods") else 110,
            gpu=gpus,
            gpu_memory_mib=self.pick(0, 16_000, 40_000, 40_050) if self.has("memory") else 40_000,
            mig_strategy=mig.get("mig_strategy", "none"),
            mig=mig.get("mig", {}),
            extended={"rdma/hca": self.pick(0, 1, 2)} if self.has("extended") else {},
            labels={
                "zone": f"z{number % 2}",
                "rack": f"r{number % 3}",
                "type": self.pick("a", "b"),
                "kubernetes.io/hostname": name,
                **mig.get("labels", {}),
            },
            taints=(NodeTaint(key="special", value="x"),) if self.chance("taints", 0.4) else (),
            node_pool=self.pick(*self.pools),
        )

    def _change_nodes(self) -> None:
        nodes = []
        for node in self.snapshot.nodes:
            changes: dict[str, Any] = {}
            if self.chance("cordons", 0.2):
                changes["unschedulable"] = self.pick(True, False)
            if self.chance("lost", 0.1):
                changes["ready"] = self.pick(True, False)
            if self.chance("foreign", 0.2):
                changes["foreign"] = ForeignUsage(
                    gpu=self.dice.randint(0, min(2, self._idle(node))),
                    cpu_milli=self.pick(0, 500),
                    memory_bytes=GIB,
                    pods=1,
                )
            if self.chance("overbooked", 0.1):
                changes["gpu"] = max(0, node.gpu + self.pick(-2, -1, 1, 2))
            nodes.append(replace(node, **changes))
        jobs = self._devices_of(nodes) if self.has("overbooked") else self.snapshot.jobs
        self.snapshot = replace(self.snapshot, nodes=tuple(nodes), jobs=jobs)

    def _devices_of(self, nodes: list[SnapshotNode]) -> tuple[Job, ...]:
        """Without numbers of devices, of which a node may have lost some."""
        return tuple(
            replace(job, tasks=tuple(replace(task, devices=()) for task in job.tasks)) for job in self.snapshot.jobs
        )

    def _idle(self, node: SnapshotNode) -> int:
        used = sum(t.gpu for job in self.snapshot.jobs for t in job.tasks if t.node == node.name)
        shared = {g for job in self.snapshot.jobs for t in job.tasks if t.node == node.name for g in t.gpu_groups}
        return max(0, node.gpu - used - len(shared))

    # Queues

    def _queues(self) -> tuple[Queue, ...]:
        self.leaves = [f"q{number}" for number in range(self.dice.randint(1, 4))]
        above: list[str] = []
        parents: dict[str, str | None] = dict.fromkeys(self.leaves)
        if self.has("departments") or self.has("three-levels"):
            above = [f"d{number}" for number in range(self.dice.randint(1, 3))]
            parents = {leaf: self.pick(None, *above, *above) for leaf in self.leaves}
            parents.update(dict.fromkeys(above))
        if self.has("three-levels"):
            parents.update({"top": None, **{name: self.pick("top", None) for name in above}})
        if self.has("orphans"):
            parents["lost"] = "nobody"
        used = {parent for parent in parents.values() if parent is not None}
        names = [name for name in parents if name in self.leaves or name in used or name == "lost"]
        return tuple(
            self._queue(name, parents[name], pool, name in self.leaves) for pool in self.pools for name in names
        )

    def _queue(self, name: str, parent: str | None, pool: str, is_leaf: bool) -> Queue:
        cpu = memory = FREE
        if self.chance("cpu-quotas", 0.6):
            cpu = Share(limit=self.pick(-1, 8000), quota=self.pick(0, 2000, 8000, -1), over_quota_weight=1)
            memory = Share(limit=-1, quota=self.pick(-1, 0, 8 * GIB), over_quota_weight=self.pick(0, 1))
        return Queue(
            name=name,
            parent=parent,
            node_pool=pool,
            priority=self.pick(100, 100, 200, 50) if self.has("queue-priorities") else 100,
            created=self.dice.randint(0, 3),
            resources=QueueShares(gpu=self._gpus(is_leaf), cpu=cpu, memory=memory),
            preempt_min_runtime=self.pick(None, 0, 15, 40) if self.has("min-runtimes") else None,
            reclaim_min_runtime=self.pick(None, 0, 15, 40) if self.has("min-runtimes") else None,
            usage=QueueUsage(gpu=self.dice.random()) if self.has("history") else QueueUsage(),
        )

    def _gpus(self, is_leaf: bool) -> Share:
        limit = self.pick(-1, 1, 4, 8) if self.has("limits") else -1
        quota = self.pick(0, 1, 2, 4, 6, *((-1,) if not is_leaf else ()))
        return Share(limit=limit, quota=quota, over_quota_weight=self.pick(0, 1, 1, 2, 3))

    def _change_queues(self) -> None:
        leaves = set(self.leaves)
        queues = [
            replace(queue, resources=replace(queue.resources, gpu=self._gpus(queue.name in leaves)))
            if self.chance("changes", 0.15)
            else queue
            for queue in self.snapshot.queues
        ]
        self.snapshot = replace(self.snapshot, queues=tuple(queues))

    def _settings(self) -> Settings:
        strategy: Strategy = self.pick("spread", "binpack") if self.has("spread") else "binpack"
        if self.has("defragment"):
            strategy = "defragment"
        device = self.pick("spread", "binpack") if self.has("devices-spread") else None
        changed: dict[str, Any] = {}
        if self.has("settings"):
            changed = {
                "max_consolidation_victims": self.pick(16, -1, 0, 1, 3),
                "allow_consolidating_reclaim": self.pick(True, False),
                "filter_reclaim_victims": self.pick(True, False),
                "multi_node_victims": self.pick(True, False),
                "k_value": self.pick(1, 0, 4),
                "saturation_multiplier": self.pick(1, 2),
                "use_signatures": self.pick(True, False),
                "actions": self.pick(
                    None,
                    ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"),
                    ("allocate", "preempt", "reclaim", "consolidation"),
                    ("reclaim", "preempt"),
                ),
            }
        return Settings(
            placement=Placement(gpu=strategy, cpu=self.pick(strategy, "binpack"), device=device),
            pools=(PoolSettings(name="other", placement=Placement(gpu="spread", cpu="spread"), reclaim_min_runtime=20),)
            if self.has("pools") and self.has("spread")
            else (),
            staleness_grace=self.pick(0, 15, -1),
            queue_depth={self.pick("allocate", "reclaim", "preempt"): self.pick(1, 3)} if self.has("depth") else {},
            min_runtime_method=self.pick("lca", "queue"),
            preempt_min_runtime=self.pick(0, 25) if self.has("min-runtimes") else 0,
            reclaim_min_runtime=self.pick(0, 25) if self.has("min-runtimes") else 0,
            **changed,
        )

    # Jobs

    def _job(self) -> Job:
        self.number += 1
        name = f"j{self.number:03d}"
        count = self.pick(1, 1, 1, 2, 2, 3, 4, 6)
        request = self._request()
        constraints = self._constraints()
        one = not self.chance("portions", 0.2)
        tasks = tuple(
            Task(
                id=f"{name}-{index}",
                namespace="team",
                pod_set=f"s{index % 2}" if self._is_split(count) else "default",
                status="Gated" if self.chance("gated", 0.15) else "Pending",
                labels={"app": self.pick("web", name)},
                priority=self.pick(None, 1, 2) if self.has("order") else None,
                leader=self.chance("order", 0.2),
                created=self.pick(0, 1) if self.has("order") else 0,
                nominated_node=self.pick(*(node.name for node in self.snapshot.nodes))
                if self.chance("nominated", 0.3)
                else None,
                **(request if one else self._request()),
                **constraints,
            )
            for index in range(count)
        )
        return self._group(name, tasks)

    def _is_split(self, count: int) -> bool:
        return count > 1 and (self.has("subgroups") or self.has("pod-sets"))

    def _group(self, name: str, tasks: tuple[Task, ...]) -> Job:
        count = len(tasks)
        minimum = self.dice.randint(1, count) if self.has("elastic") and self.dice.random() < 0.7 else count
        if self.chance("no-minimum", 0.3):
            minimum = 0
        priority = self.pick(50, 50, 60, 75, 100, 125) if self.has("priorities") else self.pick(50, 50, 50, 75)
        queue = "lost" if self.chance("orphans", 0.05) else self.pick(*self.leaves)
        return Job(
            id=name,
            queue=queue,
            tasks=tasks,
            namespace="team",
            priority=priority,
            preemptible=not self.chance("fixed", 0.3),
            created=self.snapshot.now - self.pick(0, 0, 5),
            preemption_delay=self.pick(0, 15, 30) if self.has("delays") else 0,
            staleness_grace=self.pick(None, 0, 20, -1) if self.has("stale") else None,
            node_pools=self._job_pools(),
            **self._shape(tasks, minimum),
        )

    def _job_pools(self) -> tuple[str, ...]:
        if not self.has("pools"):
            return ("default",)
        return self.dice.choice((("default",), ("other",), ("default", "other"), ("other", "default")))

    def _topology(self) -> TopologyConstraint | None:
        required = self.pick("zone", "rack", "kubernetes.io/hostname") if self.chance("required", 0.5) else None
        preferred = self.pick("rack", "kubernetes.io/hostname") if self.chance("preferred", 0.5) else None
        if required is None and preferred is None:
            return None
        return TopologyConstraint(topology="net", required=required, preferred=preferred)

    def _shape(self, tasks: tuple[Task, ...], minimum: int) -> dict[str, Any]:
        if not self._is_split(len(tasks)):
            return {"min_available": minimum, "topology": self._topology()}
        sizes = [sum(task.pod_set == f"s{part}" for task in tasks) for part in (0, 1)]
        sets = tuple(
            JobPodSet(name=f"s{part}", min_available=min(minimum, sizes[part]), topology=self._topology())
            for part in (0, 1)
        )
        if not self.has("subgroups"):
            return {"pod_sets": sets, "topology": self._topology(), "min_sub_group": self.pick(None, None, 1)}
        if self.dice.random() < 0.5:
            inner = SubGroup(name="g", pod_sets=sets, min_sub_group=self.pick(None, 1), topology=self._topology())
            return {"groups": (inner,), "topology": self._topology()}
        groups = tuple(SubGroup(name=f"g{part}", pod_sets=(sets[part],), topology=self._topology()) for part in (0, 1))
        return {"groups": groups, "min_sub_group": self.pick(None, 1)}

    def _request(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.has("cpu"):
            found = {"cpu_milli": self.pick(0, 500, 1000, 3000), "memory_bytes": self.pick(0, 1, 4, 12) * GIB}
        if self.chance("extended", 0.3):
            found["extended"] = {"rdma/hca": 1}
        roll = self.dice.random()
        if self.has("cpu-only") and roll < 0.2:
            return {"cpu_milli": 500, **found}
        if self.has("mig") and roll < 0.5:
            return {**found, "mig": {self.pick("1g.5gb", "1g.5gb", "3g.20gb"): self.pick(1, 1, 2)}}
        if self.has("portions") and roll < 0.6:
            found["gpu_portion"] = self.pick(0.1, 0.25, 0.5, 0.5, 0.75, 0.333)
            found["gpu_devices"] = self.pick(1, 2, 3) if self.has("devices") else 1
        elif self.has("memory") and roll < 0.7:
            found["gpu_memory_mib"] = self.pick(4000, 10_000, 16_000, 20_000, 41_000)
            found["gpu_devices"] = self.pick(1, 2) if self.has("devices") else 1
        else:
            found["gpu"] = self.pick(1, 1, 1, 2, 2, 3, 4, 8)
        return found

    def _constraints(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.chance("selectors", 0.4):
            found["node_selector"] = {"type": self.pick("a", "b")}
        if self.chance("node-affinity", 0.4):
            terms = (
                Requirement(key="type", operator=self.pick("In", "NotIn"), values=("a",)),
                Requirement(key="rack", operator=self.pick("In", "Exists"), values=("r0", "r1")),
            )
            found["node_affinity"] = self.pick((terms,), (terms[:1], terms[1:]))
            found["preferred_node_affinity"] = (PreferredTerm(weight=5, requirements=terms[:1]),)
        if self.chance("taints", 0.5):
            found["tolerations"] = (TaskToleration(key="special", operator="Exists"),)
        if self.chance("pod-affinity", 0.4):
            term = PodTerm(topology_key=self.pick("rack", "kubernetes.io/hostname"), match_labels={"app": "web"})
            found[self.pick("pod_affinity", "preferred_pod_affinity", "pod_anti_affinity")] = (term,)
        return found

    # What happens

    def _change_jobs(self) -> None:
        jobs = []
        for job in self.snapshot.jobs:
            is_there = any(task.node is not None for task in job.tasks)
            if is_there and self.dice.random() < 0.15:
                continue
            if is_there and self.chance("deleting", 0.1):
                job = replace(job, deleting=True)
            jobs.append(replace(job, tasks=tuple(self._change_task(task, job) for task in job.tasks)))
        jobs += [self._job() for _ in range(self.dice.randint(0, 5))]
        self.snapshot = replace(self.snapshot, jobs=tuple(jobs))

    def _change_task(self, task: Task, job: Job) -> Task:
        if task.status == "Gated":
            return replace(task, status=self.pick("Gated", "Pending"))
        if task.status == "Pending":
            return self._promise(task) if self.chance("pipelined", 0.1) else task
        if task.status != "Running":
            return task
        status: TaskStatus = "Running"
        for feature, often, states in (
            ("releasing", 0.15, ("Releasing",)),
            ("stuck", 0.1, ("StuckInReleasing",)),
            ("binding", 0.3, ("Binding", "Bound", "Allocated")),
            ("stale", 0.1, ("Failed",)),
            ("ends-in-part", 0.1, ("Succeeded", "Failed")),
        ):
            if self.chance(feature, often):
                status = self.pick(*states)
        if job.deleting:
            status = "Releasing"
        gone = status in ("Succeeded", "Failed")
        return replace(task, status=status, **({"gpu_groups": (), "devices": ()} if gone else {}))

    def _promise(self, task: Task) -> Task:
        """A place that an earlier cycle has promised on a node that has one."""
        if not task.gpu:
            return task
        rooms = [node for node in self.snapshot.nodes if self._idle(node) >= task.gpu]
        return replace(task, status="Pipelined", node=self.pick(*rooms).name) if rooms else task

    def turn(self) -> Snapshot:
        """The next snapshot, `after` the decisions on the one before."""
        self._change_jobs()
        self._change_nodes()
        self._change_queues()
        return self.snapshot

    def carry_out(self, decisions: Decisions) -> None:
        self.snapshot = advance(self.snapshot, decisions, self.snapshot.now + 10)


def play(seed: int, turns: int, features: tuple[str, ...] | None = None) -> Iterator[tuple[Snapshot, Decisions]]:
    """What each cycle finds, and what it decides without shortcuts."""
    current = Play(seed, features)
    for _ in range(turns):
        snapshot = current.turn()
        check(snapshot)
        decisions = decide_without_shortcuts(snapshot)
        yield snapshot, decisions
        current.carry_out(decisions)


def differences(snapshot: Snapshot, plain: Decisions) -> list[str]:
    """Members of the decisions in which the quick way differs from the plain one."""
    quick = decide(snapshot)
    names = [name for name in quick.__struct_fields__ if getattr(quick, name) != getattr(plain, name)]
    names += above_capacity(snapshot, quick) + contradicting_evictions(quick)
    if names == ["next_change_at"] and not overlooks_a_change(snapshot, plain, quick.next_change_at):
        names = []
    if not names and can_decide_incrementally(snapshot, snapshot.jobs):
        cluster = IncrementalCluster(snapshot)
        for job in snapshot.jobs:
            cluster.put(job)
        kept = cluster.decide(snapshot.now)
        names += [
            f"{name} of an incremental cluster"
            for name in ("evictions", "pipelined", "stale", "last_starts")
            if getattr(kept, name) != getattr(plain, name)
        ]
        if kept.next_change_at != plain.next_change_at and overlooks_a_change(snapshot, plain, kept.next_change_at):
            names.append("next_change_at of an incremental cluster")
        for name in ("binds", "early_binds"):
            places = [{(bind.task, bind.node) for bind in getattr(each, name)} for each in (kept, plain)]
            if places[0] != places[1]:
                names.append(f"{name} of an incremental cluster")
    return names


def above_capacity(snapshot: Snapshot, decisions: Decisions) -> list[str]:
    """Nodes on which more starts than has room beside what is still there."""
    tasks = {task.id: task for job in snapshot.jobs for task in job.tasks}
    problems = []
    for node in snapshot.nodes:
        coming = [tasks[bind.task] for bind in decisions.starts if bind.node == node.name]
        there = [task for task in tasks.values() if task.node == node.name and task.status not in ("Pipelined", *ENDED)]
        groups = {group for bind in decisions.starts if bind.node == node.name for group in bind.gpu_groups}
        groups |= {group for task in there for group in task.gpu_groups}
        gpus = sum(task.gpu for task in (*there, *coming)) + len(groups) + node.foreign.gpu
        cpu = sum(task.cpu_milli for task in (*there, *coming)) + node.foreign.cpu_milli
        pods = len(there) + len(coming) + node.foreign.pods
        if coming and (
            (gpus > node.gpu and any(task.gpu or task.gpu_portion or task.gpu_memory_mib for task in coming))
            or (cpu > node.cpu_milli and any(task.cpu_milli for task in coming))
            or pods > node.pods
        ):
            problems.append(f"{node.name} above its capacity")
    return problems


def contradicting_evictions(decisions: Decisions) -> list[str]:
    """Evictions that say something else of a task than its final state."""
    states = {state.task: state for state in decisions.states}
    wrong = []
    for eviction in decisions.evictions:
        state = states.get(eviction.task)
        if state is None:
            wrong.append(f"{eviction.task} is evicted and stays")
        elif (state.node if state.status == "Pipelined" else None) != eviction.moved_to:
            wrong.append(f"{eviction.task} is moved to {eviction.moved_to} and ends {state.status} on {state.node}")
    return wrong


def overlooks_a_change(snapshot: Snapshot, plain: Decisions, until: float | None) -> bool:
    """Whether time alone changes the decisions before `until`. What is proved to fail needs no timer."""
    now = plain
    # What starts in this cycle is protected from its start on, at whatever time that is: there is always a next change.
    for _ in range(8):
        if now.next_change_at is None or (until is not None and now.next_change_at >= until):
            return False
        now = decide_without_shortcuts(replace(snapshot, now=now.next_change_at))
        if (now.binds, now.pipelined) != (plain.binds, plain.pipelined):
            return True
        if [each.task for each in now.evictions] != [each.task for each in plain.evictions]:
            return True
        if [each.job for each in now.stale] != [each.job for each in plain.stale]:
            return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare `decide` with the plain way on random plays.")
    parser.add_argument("--plays", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    given, _ = parser.parse_known_args()
    cycles = failed = 0
    for seed in range(given.seed, given.seed + given.plays):
        if seed % 500 == 0:
            print(f"at play {seed}: {cycles} cycles, {failed} differ", flush=True)
        try:
            for cycle, (snapshot, plain) in enumerate(play(seed, given.turns)):
                cycles += 1
                names = differences(snapshot, plain)
                if names:
                    failed += 1
                    print(f"play {seed}, cycle {cycle}: {', '.join(names)}", flush=True)
                    break
        except Exception:
            failed += 1
            print(f"play {seed} failed: {traceback.format_exc()}", flush=True)
    print(f"{given.plays} plays, {cycles} cycles: {failed} differ", flush=True)


if __name__ == "__main__":
    main()
