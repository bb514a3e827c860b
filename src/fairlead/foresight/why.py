"""Why a workload waits, and the smallest changes that start it.

    answer = explain_why(snapshot, "team-a/train")

Every change in the answer was verified: `decide` on the changed snapshot starts the workload. The price of each is who
would be evicted, moved or delayed by it. The same snapshot gives the same answer, byte for byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec.structs import replace

from fairlead.foresight.changes import AddJobs, AddNodes, Change, RemoveWorkload, SetNode, SetShare
from fairlead.foresight.effects import Effects, compare
from fairlead.foresight.families import Party, WaitingWorkload, families
from fairlead.foresight.messages import format_changes, format_concerned
from fairlead.foresight.outlook import ASSUMPTIONS, look_ahead
from fairlead.foresight.search import ChangeSearch, Method, Solution
from fairlead.foresight.workloads import HIDDEN_POD, NOTHING_WAITS, Concerned, SnapshotWorkloads
from fairlead.model.clock import in_words
from fairlead.scheduling.messages import NEVER, format_reason
from fairlead.scheduling.model.decisions import Reason
from fairlead.scheduling.model.snapshot import Plain, Snapshot

#: How many times a result that changes by time alone is followed.
_MOMENTS = 3
_PARTIES: dict[Party, int] = {"user": 0, "administrator": 1, "time": 2}

Status = Literal["starts", "waits", "never", "notWaiting"]


class VerifiedChange(Plain, frozen=True, kw_only=True, omit_defaults=False):
    """A change that starts the workload; one step less of its family does not."""

    by: Party
    family: str
    message: str
    #: What to change. Workloads that the caller may not see are left out here and counted in `ends`.
    changes: tuple[Change, ...] = ()
    #: Workloads that have to end or to be suspended.
    ends: Concerned = Concerned()
    #: When it starts by waiting, in the snapshot's time; None for all other changes.
    at: float | None = None
    #: How the smallest one was looked for.
    method: Method
    #: Part of the largest change of its family that was looked at.
    size: float
    #: In which scheduling cycle after the change it starts; with evictions that is the second.
    cycle: int
    #: How many of its pods start, and where.
    pods: int
    nodes: tuple[str, ...]
    effects: Effects


class WhyAnswer(Plain, frozen=True, kw_only=True, omit_defaults=False):
    workload: str
    project: str
    status: Status
    message: str
    #: The blocker of the first pod that waits; None if it starts or does not wait.
    reason: Reason | None = None
    waiting_pods: int = 0
    #: Best first: without harm to others, then what the user can do, then the smallest.
    changes: tuple[VerifiedChange, ...] = ()
    #: What happens to others when it starts by itself.
    effects: Effects = Effects()
    #: Families that were not searched, because the cluster is large and others came first.
    not_searched: tuple[str, ...] = ()
    #: How often the scheduler was asked.
    decisions: int = 0
    assumptions: tuple[str, ...] = ASSUMPTIONS
    #: The snapshot's own time.
    now: float
    #: The revision of the server's state; None for a snapshot from a file.
    revision: int | None = None


class Asker(NamedTuple):
    """Who asks: the queues whose workloads may be named, None for all; and the workloads that they may suspend."""

    visible: frozenset[str] | None = None
    #: By key; None: the workloads of the same queue.
    own: frozenset[str] | None = None


ANYBODY = Asker()


def explain_why(snapshot: Snapshot, workload: str, asker: Asker = ANYBODY, *, budget: int | None = None) -> WhyAnswer:
    """Why this workload waits and what would start it; raises UnknownName.

    `budget`: calls of `decide` after which no further family is begun; None allows what an answer may take.
    """
    return _Explanation(snapshot, workload, asker, budget).answer()


def redact(reason: Reason, workloads: SnapshotWorkloads) -> Reason:
    """With the names of pods instead of their ids; those that the caller may not see are not named."""
    shown = []
    for task in reason.waits_for:
        queue, name = workloads.task_names.get(task, ("", task))
        shown.append(name if workloads.visible is None or queue in workloads.visible else HIDDEN_POD)
    redacted: Reason = replace(reason, waits_for=tuple(dict.fromkeys(shown)))
    return redacted


class _Explanation:
    def __init__(self, snapshot: Snapshot, workload: str, asker: Asker, budget: int | None) -> None:
        self.snapshot = snapshot
        self.workloads = SnapshotWorkloads(snapshot, asker.visible)
        self.key = self.workloads.find(workload)
        self.waiting = self.workloads.waiting_jobs(self.key)
        self.asker = asker
        self.search = ChangeSearch(snapshot, self.waiting, budget)
        self.not_searched: list[str] = []

    def answer(self) -> WhyAnswer:
        empty = WhyAnswer(
            workload=self.workloads.name(self.key),
            project=self.workloads.project_of(self.key),
            status="notWaiting",
            message=NOTHING_WAITS,
            now=self.snapshot.now,
        )
        if not self.waiting:
            return empty
        self.before = look_ahead(self.snapshot)
        self.search.calls += len(self.before.cycles)
        waiting_pods = sum(task.status == "Pending" for each in self.workloads.jobs[self.key] for task in each.tasks)
        cycle = self.before.starts(self.waiting)
        if cycle is not None:
            answer = replace(empty, status="starts", message=self._starts(cycle), effects=self._own_effects())
        else:
            answer = self._waits(empty)
        answered: WhyAnswer = replace(answer, waiting_pods=waiting_pods, decisions=self.search.calls)
        return answered

    def _starts(self, cycle: int) -> str:
        if cycle == 1:
            return "It starts by itself in the next scheduling cycle."
        return f"It starts by itself {cycle} scheduling cycles from now, when the pods that make room have stopped."

    def _own_effects(self) -> Effects:
        """Evictions that happen for it anyway."""
        mine = {task: each for task, each in self.before.evictions.items() if each.by_job in self.waiting}
        lost = sorted((each.job, task) for task, each in mine.items() if task not in self.before.binds)
        moved = sorted((each.job, task) for task, each in mine.items() if task in self.before.binds)
        return Effects(evicted=self.workloads.refer(lost), moved=self.workloads.refer(moved))

    def _waits(self, empty: WhyAnswer) -> WhyAnswer:
        reason = self._reason()
        changes = self._search()
        never = not self._starts_alone()
        message = format_reason(reason)
        if never and not message.startswith(NEVER):
            message = f"{NEVER} as it is, even if all other workloads end. {message}"
        answer: WhyAnswer = replace(
            empty,
            status="never" if never else "waits",
            message=message,
            reason=reason,
            changes=tuple(sorted(changes, key=_rank)),
            not_searched=tuple(dict.fromkeys(self.not_searched)),
        )
        return answer

    def _reason(self) -> Reason:
        pending = next((each for each in self.before.first.pending if each.job in self.waiting), None)
        return redact(pending.reason, self.workloads) if pending is not None else Reason(code="NextCycle")

    def _starts_alone(self) -> bool:
        alone: Snapshot = replace(self.snapshot, jobs=tuple(self.workloads.jobs[self.key]))
        outlook = look_ahead(alone)
        self.search.calls += len(outlook.cycles)
        return outlook.starts(self.waiting) is not None

    def _search(self) -> list[VerifiedChange]:
        changes = [self._verified("time", "guaranteedRuntime", *moment) for moment in self._moments()]
        for family in families(self._question()):
            if family.is_fallback and any(change.family == family.name for change in changes):
                continue
            if self.search.is_spent or (self.search.is_large and self._is_pointless(family.name)):
                self.not_searched.append(family.name)
                continue
            solution = self.search.search(family.space)
            if solution is not None:
                changes.append(self._verified(family.by, family.name, solution))
        return changes

    def _is_pointless(self, family: str) -> bool:
        """Less of a resource that no node and no queue is short of is not tried on large clusters."""
        resource = {"cpuMilli": "cpu", "memoryBytes": "memory"}.get(family)
        if resource is None:
            return False
        reason = self._reason()
        return resource != reason.resource and all(cause.cause != resource for cause in reason.causes)

    def _question(self) -> WaitingWorkload:
        own = self.asker.own
        if own is None:
            queue = self.workloads.jobs[self.key][0].queue
            own = frozenset(key for key, jobs in self.workloads.jobs.items() if jobs[0].queue == queue)
        return WaitingWorkload(self.snapshot, self.workloads, self.key, own, self.before.first.fair_shares)

    def _moments(self) -> list[tuple[Solution, float]]:
        """The first time at which it starts though nothing but time passes, if there is one."""
        now, next_change = self.snapshot.now, self.before.first.next_change_at
        for _ in range(_MOMENTS):
            if next_change is None or next_change <= now:
                break
            now = next_change
            later: Snapshot = replace(self.snapshot, now=now)
            outlook = look_ahead(later)
            self.search.calls += len(outlook.cycles)
            if outlook.starts(self.waiting) is not None:
                return [(Solution((), outlook, "every step", 1.0), now)]
            next_change = outlook.first.next_change_at
        return []

    def _verified(self, by: Party, family: str, solution: Solution, at: float | None = None) -> VerifiedChange:
        removed = [each.workload for each in solution.changes if isinstance(each, RemoveWorkload)]
        solutions = tuple(
            self._shown(each)
            for each in solution.changes
            if not isinstance(each, RemoveWorkload) or self.workloads.is_visible(each.workload)
        )
        started = [(cycle, bind) for cycle, bind in solution.outlook.binds.values() if bind.job in self.waiting]
        ends = self.workloads.refer(_pods_of(self.workloads, removed))
        return VerifiedChange(
            by=by,
            family=family,
            message=self._message(family, solution.changes, ends, at),
            changes=solutions,
            ends=ends,
            at=at,
            method=solution.method,
            size=round(solution.size, 6),
            cycle=min(cycle for cycle, _ in started),
            pods=len(started),
            nodes=tuple(sorted({bind.node for _, bind in started})),
            effects=compare(self.workloads, self.before, solution.outlook, [self.key], removed),
        )

    def _shown(self, change: Change) -> Change:
        """With the names by which the caller knows workload, project and department."""
        if isinstance(change, SetShare):
            shared: Change = replace(change, queue=self.workloads.shown_queue(change.queue))
            return shared
        if isinstance(change, AddNodes | SetNode | AddJobs):
            return change
        shown: Change = replace(change, workload=self.workloads.shown_key(change.workload))
        return shown

    def _message(self, family: str, changes: Sequence[Change], ends: Concerned, at: float | None) -> str:
        if at is not None:
            return f"Wait until {in_words(round(at * 1000))}: others are protected from eviction until then"
        if family == "ends":
            return f"Wait until {format_concerned(ends)} {'ends' if ends.count == 1 else 'end'}"
        if family == "suspend":
            return f"Suspend {format_concerned(ends)}"
        return format_changes(self.snapshot, self.workloads, changes)


def _pods_of(workloads: SnapshotWorkloads, keys: Sequence[str]) -> list[tuple[str, str]]:
    """Pods of each workload that are on a node; of one that only waits, those that wait."""
    chosen: list[tuple[str, str]] = []
    for key in keys:
        tasks = [(job.id, task) for job in workloads.jobs[key] for task in job.tasks]
        placed = [(job_id, task.id) for job_id, task in tasks if task.node is not None]
        chosen += placed or [(job_id, task.id) for job_id, task in tasks]
    return chosen


def _rank(change: VerifiedChange) -> tuple[int, int, bool, float, str, str]:
    """Harm to others, who acts, suspending and new nodes last, size; ties by name and text."""
    return (
        change.effects.harm,
        _PARTIES[change.by],
        change.family in ("suspend", "addNodes"),
        change.size,
        change.family,
        change.message,
    )
