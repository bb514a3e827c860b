"""Reclaim between queues: what a queue deserves comes back from those that hold more than their share.

In-quota use is never taken. Figures of queues in the checks are those before the search for this job began.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.scheduling.actions.allocate import pending_requests
from fairlead.scheduling.actions.search import Search
from fairlead.scheduling.fairness.usage import Usage
from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.live import LiveJob, LiveTask
from fairlead.scheduling.model.queues import GPU, INFINITE, NOTHING, Amounts, LiveQueue
from fairlead.scheduling.model.requests import KIND_MIG
from fairlead.scheduling.model.subgroups import next_request
from fairlead.scheduling.session.record import Record
from fairlead.scheduling.session.session import SchedulingSession
from fairlead.scheduling.solver.evictions import split_level
from fairlead.scheduling.solver.min_runtime import is_elastic, is_protected, leaves_minimum, reclaim_until
from fairlead.scheduling.solver.scenarios import PlacementProbe, Unit
from fairlead.scheduling.solver.solver import Rules, Solver
from fairlead.scheduling.solver.victims import VictimOrder, held

#: What one piece of a victim gives, and the resources that it asks for.
Part = tuple[Amounts, set[int]]


def reclaim(session: SchedulingSession, record: Record) -> None:
    Search("reclaim", _prepare, _nobody_may_reclaim, may_reclaim).run(session, record)


def _nobody_may_reclaim(session: SchedulingSession) -> bool:
    """Whether every queue would exceed its fair share with any of its pending jobs."""
    return not any(_within(_plus(queue.allocated, request), queue.fair) for queue, request in pending_requests(session))


def may_reclaim(job: LiveJob) -> bool:
    """With its request the queue stays within its fair share, and with non-preemptible work within its quota."""
    request, queue = next_request(job), job.queue
    if not _within(_plus(queue.allocated, request), queue.fair):
        return False
    return job.preemptible or _within(_plus(queue.non_preemptible, request), queue.quota)


def _plus(left: Sequence[float], right: Sequence[float]) -> Amounts:
    return (left[0] + right[0], left[1] + right[1], left[2] + right[2])


def _within(amounts: Sequence[float], bound: Amounts) -> bool:
    return amounts[0] <= bound[0] and amounts[1] <= bound[1] and amounts[2] <= bound[2]


def _prepare(session: SchedulingSession, job: LiveJob, usage: Usage) -> Solver | None:
    validator = ReclaimValidator(session, job, usage)
    may_leave = validator.may_leave if session.settings.allow_consolidating_reclaim else None
    rules = Rules(validator.is_allowed, validator.max_freed, may_leave)
    return Solver(session, job, lambda: _victims(session, job), rules)


def _victims(session: SchedulingSession, job: LiveJob) -> VictimOrder:
    request, victims = next_request(job), session.possible_victims()
    queues = (session.queues[leaf] for leaf, entries in victims.leaves.items() if entries)
    others = [queue for queue in queues if queue is not job.queue]
    is_filtered = session.settings.filter_reclaim_victims
    allowed = [queue for queue in others if not is_filtered or is_candidate(job.queue, queue, request)]

    def accept(victim: LiveJob) -> bool:
        return is_elastic(victim) or not is_protected(session, reclaim_until(session, job.queue, victim))

    return VictimOrder(victims, allowed, session.total, accept)


def is_candidate(reclaimer: LiveQueue, victim: LiveQueue, request: Amounts) -> bool:
    """Whether jobs of a queue may be proposed at all; the validator decides on what is taken in the end."""
    ours, theirs = split_level(reclaimer, victim)
    if not _within(_plus(ours.allocated, request), ours.quota):
        return not _within(theirs.allocated, theirs.share)
    below = False
    for resource in (0, 1, 2):
        if request[resource] <= 0 or theirs.quota[resource] == INFINITE:
            continue
        if theirs.allocated[resource] > theirs.quota[resource]:
            return True
        below = below or theirs.allocated[resource] < theirs.quota[resource]
    return not below


class ReclaimValidator:
    """Judges the outcome of a simulation: may these units be taken from their queues for this job?"""

    def __init__(self, session: SchedulingSession, job: LiveJob, usage: Usage) -> None:
        self.session = session
        self.job = job
        self.usage = usage
        self.fixed = {queue.name: tuple(queue.non_preemptible) for queue in job.queue.path}

    def is_allowed(self, probe: PlacementProbe, units: Sequence[Unit]) -> bool:
        if not leaves_minimum(units, self._protected(units)):
            return False
        ignore_moved = self.session.settings.allow_consolidating_reclaim
        return self._is_fair(probe, parts_by_queue(units, ignore_moved))

    def may_leave(self, probe: PlacementProbe, jobs: Sequence[LiveJob]) -> bool:
        """The same for whole jobs that leave, none of them elastic, while all others keep a place or move."""
        queues: dict[str, tuple[LiveQueue, list[Part]]] = {}
        for job in jobs:
            queues.setdefault(job.queue.name, (job.queue, []))[1].append((held(job), _resources(job.tasks)))
        return self._is_fair(probe, queues.values())

    def _is_fair(self, probe: PlacementProbe, freed: Iterable[tuple[LiveQueue, list[Part]]]) -> bool:
        request = next_request(probe.job)
        remaining: dict[str, Amounts] = {}
        involved: dict[str, set[int]] = {}
        for queue, parts in freed:
            if not self._may_take_all(queue, parts, request, remaining, involved):
                return False
        return self._stays_fair(request, probe.tasks, remaining, involved)

    def max_freed(self) -> float | None:
        """A bound on the GPUs that may be taken: each queue gives while it is above its bound, and one unit beyond.

        Only where CPU and memory can never be the reason to go on taking; otherwise there is no telling.
        """
        request = next_request(self.job)
        largest: dict[str, float] = {}
        sides: dict[str, tuple[LiveQueue, LiveQueue]] = {}
        index = self.session.possible_victims()
        for name, entries in index.leaves.items():
            leaf = self.session.queues[name]
            if leaf is self.job.queue or not entries:
                continue
            ours, theirs = split_level(self.job.queue, leaf)
            sides[theirs.name] = (ours, theirs)
            largest[theirs.name] = max(index.most_held.get(name, 0), largest.get(theirs.name, 0))
        total = 0.0
        for name, (ours, theirs) in sides.items():
            bound = theirs.share
            if _within(_plus(self.usage[ours.name], request), ours.quota):
                bound = (
                    min(bound[0], theirs.quota[0]),
                    min(bound[1], theirs.quota[1]),
                    min(bound[2], theirs.quota[2]),
                )
            used = self.usage[name]
            if used[0] > bound[0] or used[1] > bound[1]:
                return None
            if used[GPU] > bound[GPU]:
                total += used[GPU] - bound[GPU] + largest[name]
        return total / 1000

    def _protected(self, units: Sequence[Unit]) -> dict[str, bool]:
        jobs = {unit[0].job.id: unit[0].job for unit in units}
        return {
            job.id: is_protected(self.session, reclaim_until(self.session, self.job.queue, job))
            for job in jobs.values()
            if is_elastic(job)
        }

    def _may_take_all(
        self,
        queue: LiveQueue,
        parts: Sequence[Part],
        request: Amounts,
        left: dict[str, Amounts],
        involved: dict[str, set[int]],
    ) -> bool:
        """Take the parts from a queue one by one, as long as the queue still holds too much."""
        ours, theirs = split_level(self.job.queue, queue)
        names = {resource for _, resources in parts for resource in resources}
        for part, _ in parts:
            remaining = left.get(theirs.name, self.usage[theirs.name])
            if not self._may_take(ours, theirs, request, remaining):
                return False
            for level in queue.path:
                before = left.get(level.name, self.usage[level.name])
                left[level.name] = (before[0] - part[0], before[1] - part[1], before[2] - part[2])
                involved.setdefault(level.name, set()).update(names)
        return True

    def _may_take(self, ours: LiveQueue, theirs: LiveQueue, request: Amounts, remaining: Amounts) -> bool:
        """Above its share in some resource; or above its quota in some, while we stay within ours in all."""
        if not _within(remaining, theirs.share):
            return True
        return _within(_plus(self.usage[ours.name], request), ours.quota) and not _within(remaining, theirs.quota)

    def _stays_fair(
        self, request: Amounts, tasks: Sequence[LiveTask], remaining: dict[str, Amounts], involved: dict[str, set[int]]
    ) -> bool:
        """At every level: we do not end up above our fair share and at least as saturated as a queue we took from."""
        requested = _resources(tasks)
        for queue in self.job.queue.path:
            now = _plus(remaining.get(queue.name, self.usage[queue.name]), request)
            for name, rest in remaining.items():
                sibling = self.session.queues[name]
                if sibling is queue or sibling.parent is not queue.parent:
                    continue
                if not self._less_saturated(involved[name] | requested, (now, queue.fair), (rest, sibling.fair)):
                    return False
            if not self.job.preemptible and not _within(_plus(self.fixed[queue.name], request), queue.quota):
                return False
        return True

    def _less_saturated(
        self, resources: set[int], ours: tuple[Amounts, Amounts], theirs: tuple[Amounts, Amounts]
    ) -> bool:
        multiplier = max(1.0, self.session.settings.saturation_multiplier)
        for resource in resources:
            own = _saturation(ours[0][resource], ours[1][resource])
            other = _saturation(theirs[0][resource], theirs[1][resource])
            if own > 1 and theirs[1][resource] > 0 and own * multiplier >= other:
                return False
        return True


def _saturation(used: float, fair: float) -> float:
    if fair == 0:
        return INFINITE if used > 0 else 0
    return used / fair


def _resources(tasks: Sequence[LiveTask]) -> set[int]:
    """Resources that tasks ask for; MIG instances are not seen here, as in KAI."""
    positions = set()
    for task in tasks:
        if task.cpu > 0:
            positions.add(0)
        if task.memory > 0:
            positions.add(1)
        if task.kind != KIND_MIG and (task.charge or task.request)[GPU] > 0:
            positions.add(GPU)
    return positions


def parts_by_queue(units: Sequence[Unit], ignore_moved: bool) -> list[tuple[LiveQueue, list[Part]]]:
    """Per queue what each victim job gives, in pieces: every surplus task for itself, then the core as one."""
    by_job: dict[str, list[LiveTask]] = {}
    for unit in units:
        by_job.setdefault(unit[0].job.id, []).extend(unit)
    queues: dict[str, tuple[LiveQueue, list[Part]]] = {}
    for tasks in by_job.values():
        parts = _parts(tasks, ignore_moved)
        if parts:
            queue = tasks[0].job.queue
            queues.setdefault(queue.name, (queue, []))[1].extend(parts)
    return list(queues.values())


def _parts(tasks: list[LiveTask], ignore_moved: bool) -> list[Part]:
    by_pod_set: dict[str, list[LiveTask]] = {}
    for task in tasks:
        by_pod_set.setdefault(task.pod_set.name, []).append(task)
    core: list[LiveTask] = []
    surplus: list[LiveTask] = []
    for own in by_pod_set.values():
        minimum = own[0].pod_set.minimum
        core += own[:minimum]
        surplus += own[minimum:]
    parts = []
    for piece in [*([task] for task in surplus), core]:
        leaving = [task for task in piece if not (ignore_moved and st.ACTIVE[task.status])]
        if leaving:
            parts.append((_sum(leaving), _resources(leaving)))
    return parts


def _sum(tasks: Sequence[LiveTask]) -> Amounts:
    total = NOTHING
    for task in tasks:
        if task.charge is not None:
            total = _plus(total, task.charge)
    return total
