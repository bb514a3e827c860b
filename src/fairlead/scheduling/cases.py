"""Cases written by hand: a small cluster in few words, and what must come of it. Tests and users run the same files.

`build` turns a case into a snapshot, `judge` holds the decisions against what is expected and says what differs. The
format is described in `docs/reference/snapshot.md`; the caller reads the file (YAML or JSON) and passes plain data.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from fairlead.scheduling.cycle import decide
from fairlead.scheduling.model.decisions import Decisions
from fairlead.scheduling.model.snapshot import (
    Job,
    JobPodSet,
    Queue,
    QueueShares,
    QueueUsage,
    Settings,
    Share,
    Snapshot,
    SnapshotNode,
    SubGroup,
    Task,
    TaskStatus,
    Topology,
    TopologyConstraint,
)

NOW = 10_000.0
GB = 1_000_000_000
Entry = Mapping[str, Any]

_TASK_FIELDS = {
    "gpu": "gpu",
    "portion": "gpu_portion",
    "gpuMemory": "gpu_memory_mib",
    "devices": "gpu_devices",
    "mig": "mig",
    "extended": "extended",
    "labels": "labels",
    "selector": "node_selector",
    "nominated": "nominated_node",
    "legacyMig": "legacy_mig",
}

_POD_FIELDS = ("tolerations", "nodeAffinity", "podAffinity", "preferredPodAffinity", "podAntiAffinity")


_SHARE_KEYS = frozenset({"quota", "limit", "weight", "overQuotaWeight"})
_QUEUE_KEYS = frozenset(
    {"gpu", "cpu", "memory", "usage", "parent", "priority", "created", "nodePool", "preemptMinRuntime"}
    | {"reclaimMinRuntime"}
)
_JOB_KEYS = frozenset(
    {*_TASK_FIELDS, *_POD_FIELDS, "queue", "priority", "preemptible", "created", "started", "lastEviction"}
    | {"preemptionDelay", "min", "minSubGroup", "topology", "podSets", "groups", "stalenessGrace", "staleSince"}
    | {"pools", "deleting", "at", "tasks", "states", "sharedOn", "cpu", "memory", "taskPriority"}
)
_EXPECT_KEYS = frozenset({"starts", "kept", "moved", "evicted", "waits", "shares"})
_CASE_KEYS = frozenset({"name", "now", "nodes", "queues", "jobs", "topologies", "settings", "expect"})


def find_unknown_keys(case: Entry) -> list[str]:
    """The keys of a case that mean nothing, each as a sentence with what may be meant."""
    node_keys = {"cpu", "memory", *SnapshotNode.__struct_encode_fields__}
    problems = [
        *_unknown("the case", case, _CASE_KEYS),
        *_unknown("expect", case.get("expect"), _EXPECT_KEYS),
        *_unknown("settings", case.get("settings"), Settings.__struct_encode_fields__),
    ]
    for name, node in _entries(case, "nodes"):
        problems += _unknown(f"node {name}", node, node_keys)
    for name, queue in _entries(case, "queues"):
        problems += _unknown(f"queue {name}", queue, _QUEUE_KEYS)
        for resource in ("gpu", "cpu", "memory"):
            share = queue.get(resource) if isinstance(queue, Mapping) else None
            problems += _unknown(f"queue {name}, {resource}", share, _SHARE_KEYS)
    for name, job in _entries(case, "jobs"):
        problems += _unknown_in_job(f"job {name}", job)
    return problems


def _unknown_in_job(where: str, job: object) -> list[str]:
    problems = _unknown(where, job, _JOB_KEYS)
    for part in ("podSets", "groups"):
        for name, own in _entries(job, part):
            problems += _unknown_in_job(f"{where}, {name}", own)
    return problems


def _entries(entry: object, member: str) -> list[tuple[str, object]]:
    below = entry.get(member) if isinstance(entry, Mapping) else None
    return list(below.items()) if isinstance(below, Mapping) else []


def _unknown(where: str, entry: object, known: Iterable[str]) -> list[str]:
    if not isinstance(entry, Mapping):
        return []
    problems = []
    for key in entry:
        if key not in known:
            near = difflib.get_close_matches(str(key), list(known), n=1)
            problems.append(f"{where} has no key '{key}'.{f' Did you mean {near[0]}?' if near else ''}")
    return problems


def build(case: Entry) -> Snapshot:
    """The snapshot that a case describes."""
    nodes = tuple(_node(name, entry or {}) for name, entry in case.get("nodes", {}).items())
    queues = tuple(_queue(number, name, entry) for number, (name, entry) in enumerate(case.get("queues", {}).items()))
    jobs = tuple(_job(number, name, entry) for number, (name, entry) in enumerate(case.get("jobs", {}).items()))
    topologies = tuple(Topology(name=name, levels=tuple(levels)) for name, levels in case.get("topologies", {}).items())
    settings = msgspec.convert(dict(case.get("settings", {})), Settings)
    return Snapshot(
        now=case.get("now", NOW), nodes=nodes, queues=queues, jobs=jobs, topologies=topologies, settings=settings
    )


def _node(name: str, entry: Entry) -> SnapshotNode:
    raw = {"gpuMemoryMib": 40_000, **entry, "name": name}
    raw["cpuMilli"] = int(1000 * raw.pop("cpu", 100))
    raw["memoryBytes"] = int(GB * raw.pop("memory", 1000))
    return msgspec.convert(raw, SnapshotNode)


def _queue(number: int, name: str, entry: Entry | float) -> Queue:
    """A bare number is the GPU quota; CPU and memory are unlimited unless said otherwise. name@pool names the pool."""
    given: dict[str, Any] = dict(entry) if isinstance(entry, Mapping) else {"gpu": entry}
    free: dict[str, float] = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    shares = {
        "gpu": _share(given.pop("gpu", 0), 1),
        "cpu": _share(given.pop("cpu", free), 1000),
        "memory": _share(given.pop("memory", free), GB),
    }
    usage = msgspec.convert(given.pop("usage", {}), QueueUsage)
    owner, _, pool = name.partition("@")
    rest = {"created": number, "nodePool": pool or "default", **given}
    return Queue(
        name=owner,
        resources=QueueShares(**shares),
        usage=usage,
        parent=rest.get("parent"),
        priority=rest.get("priority", 100),
        created=rest["created"],
        node_pool=rest["nodePool"],
        preempt_min_runtime=rest.get("preemptMinRuntime"),
        reclaim_min_runtime=rest.get("reclaimMinRuntime"),
    )


def _share(entry: Entry | float, unit: float) -> Share:
    given = dict(entry) if isinstance(entry, Mapping) else {"quota": entry}
    quota, limit = given.get("quota", 0), given.get("limit", -1)
    return Share(
        quota=quota * unit if quota != -1 else -1,
        limit=limit * unit if limit != -1 else -1,
        over_quota_weight=given.get("weight", given.get("overQuotaWeight", 1)),
    )


def _job(number: int, name: str, entry: Entry) -> Job:
    given = dict(entry)
    priority = given.get("priority", 50)
    tasks: list[Task] = []
    pod_sets, groups = given.get("podSets"), given.get("groups")
    parts = _parts(pod_sets or {}, groups or {}) if pod_sets or groups else {"default": given}
    for part, own in parts.items():
        tasks += _tasks(name if part == "default" else f"{name}-{part}", part, {**given, **own})
    return Job(
        id=name,
        queue=given.get("queue", "q"),
        tasks=tuple(tasks),
        priority=priority,
        preemptible=given.get("preemptible", priority < 100),
        created=given.get("created", number),
        last_start=given.get("started"),
        last_eviction=given.get("lastEviction"),
        preemption_delay=given.get("preemptionDelay", 0),
        min_available=given.get("min", len(tasks)),
        min_sub_group=given.get("minSubGroup"),
        topology=_constraint(given.get("topology")),
        pod_sets=_pod_sets(pod_sets or {}),
        groups=_groups(groups or {}),
        staleness_grace=given.get("stalenessGrace"),
        stale_since=given.get("staleSince"),
        node_pools=tuple(given.get("pools", ("default",))),
        deleting=given.get("deleting", False),
    )


def _parts(pod_sets: Entry, groups: Entry) -> dict[str, Entry]:
    parts = dict(pod_sets)
    for entry in groups.values():
        parts.update(_parts(entry.get("podSets", {}), entry.get("groups", {})))
    return parts


def _pod_sets(entry: Entry) -> tuple[JobPodSet, ...]:
    return tuple(
        JobPodSet(
            name=name, min_available=own.get("min", own.get("tasks", 1)), topology=_constraint(own.get("topology"))
        )
        for name, own in entry.items()
    )


def _groups(entry: Entry) -> tuple[SubGroup, ...]:
    return tuple(
        SubGroup(
            name=name,
            min_sub_group=own.get("minSubGroup"),
            topology=_constraint(own.get("topology")),
            groups=_groups(own.get("groups", {})),
            pod_sets=_pod_sets(own.get("podSets", {})),
        )
        for name, own in entry.items()
    )


def _constraint(entry: Entry | None) -> TopologyConstraint | None:
    return None if entry is None else msgspec.convert({"topology": "net", **entry}, TopologyConstraint)


def _tasks(name: str, part: str, entry: Entry) -> list[Task]:
    """`at` names the node of each task that is placed already; the rest is pending."""
    at = entry.get("at", [])
    places = [at] if isinstance(at, str) else list(at)
    count = entry.get("tasks", max(1, len(places)))
    states = entry.get("states", [])
    shared = entry.get("sharedOn", [])
    fields = {field: entry[word] for word, field in _TASK_FIELDS.items() if word in entry}
    raw = {word: entry[word] for word in _POD_FIELDS if word in entry}
    pods = msgspec.convert({"id": "x", **raw}, Task)
    tasks = []
    for index in range(count):
        node = places[index] if index < len(places) else None
        status: TaskStatus = states[index] if index < len(states) else ("Running" if node else "Pending")
        task = Task(
            id=f"{name}-{index}",
            pod_set=part,
            status=status,
            node=node,
            gpu_groups=_groups_of(shared, index),
            cpu_milli=int(1000 * entry.get("cpu", 0)),
            memory_bytes=int(GB * entry.get("memory", 0)),
            priority=_nth(entry.get("taskPriority"), index),
            tolerations=pods.tolerations,
            node_affinity=pods.node_affinity,
            pod_affinity=pods.pod_affinity,
            preferred_pod_affinity=pods.preferred_pod_affinity,
            pod_anti_affinity=pods.pod_anti_affinity,
            **fields,
        )
        tasks.append(task)
    return tasks


def _groups_of(shared: Sequence[Any], index: int) -> tuple[str, ...]:
    if index >= len(shared):
        return ()
    return (shared[index],) if isinstance(shared[index], str) else tuple(shared[index])


def _nth(values: Sequence[int] | None, index: int) -> int | None:
    return None if values is None or index >= len(values) else values[index]


def judge(case: Entry) -> list[str]:
    """What differs from what the case expects; nothing if all is as it should be. Unknown keys are errors."""
    return find_unknown_keys(case) or compare(build(case), decide(build(case)), case.get("expect", {}))


def compare(snapshot: Snapshot, decisions: Decisions, expect: Entry) -> list[str]:
    """Starts, promises, evictions and moves must be exactly the expected ones; waits and shares at least those."""
    starts = _by_job((bind.job, bind.node) for bind in decisions.binds)
    pipelined = _by_job((p.job, p.node) for p in decisions.pipelined if not _is_moved(p.task, decisions))
    evicted = {eviction.task for eviction in decisions.evictions if eviction.moved_to is None}
    moved = {eviction.task: eviction.moved_to for eviction in decisions.evictions if eviction.moved_to is not None}
    wanted_moves = {task: node for name, node in expect.get("moved", {}).items() for task in _names(snapshot, name)}
    wanted_evicted = {task for name in expect.get("evicted", []) for task in _names(snapshot, name)}
    differences = [
        *_differ("starts", _lists(expect.get("starts", {})), starts),
        *_differ("kept", _lists(expect.get("kept", {})), pipelined),
        *_differ("moved", wanted_moves, moved),
        *_find_contradictions(decisions, moved),
    ]
    if wanted_evicted != evicted:
        differences.append(f"evicted: expected {sorted(wanted_evicted)}, got {sorted(evicted)}")
    waits = {pending.job: pending.reason.code for pending in decisions.pending}
    for job, code in expect.get("waits", {}).items():
        if waits.get(job) != code:
            differences.append(f"waits: expected {job} to wait for {code}, got {waits.get(job)}")
    shares = {share.queue: share.fair_share[0] for share in decisions.fair_shares}
    for queue, amount in expect.get("shares", {}).items():
        if shares.get(queue) != amount:
            differences.append(f"shares: expected {queue} to have {amount}, got {shares.get(queue)}")
    return differences + [f"failed: {failure.job}: {failure.error}" for failure in decisions.failures]


def _is_moved(task: str, decisions: Decisions) -> bool:
    return any(eviction.task == task and eviction.moved_to is not None for eviction in decisions.evictions)


def _find_contradictions(decisions: Decisions, moved: Mapping[str, str]) -> list[str]:
    """A moved task must be promised, and be shown, on the node that its eviction names."""
    promised = {promise.task: promise.node for promise in decisions.pipelined if promise.task in moved}
    shown = {state.task: state.node for state in decisions.states if state.task in moved}
    return [*_differ("moved, but pipelined", moved, promised), *_differ("moved, but its state", moved, shown)]


def _by_job(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    nodes_of: dict[str, list[str]] = {}
    for job, node in pairs:
        nodes_of.setdefault(job, []).append(node)
    return {job: sorted(nodes) for job, nodes in nodes_of.items()}


def _lists(expected: Entry) -> dict[str, list[str]]:
    return {job: sorted([nodes] if isinstance(nodes, str) else nodes) for job, nodes in expected.items()}


def _names(snapshot: Snapshot, name: str) -> list[str]:
    """A task, or all placed tasks of a job."""
    for job in snapshot.jobs:
        if job.id == name:
            return [task.id for task in job.tasks if task.node is not None]
    return [name]


def _differ(what: str, expected: Mapping[str, object], got: Mapping[str, object]) -> list[str]:
    return [
        f"{what}: expected {key} {expected.get(key)}, got {got.get(key)}"
        for key in sorted({*expected, *got})
        if expected.get(key) != got.get(key)
    ]
