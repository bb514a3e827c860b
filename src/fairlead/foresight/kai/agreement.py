"""How often Fairlead's scheduler and KAI decide the same on a cluster where KAI decides.

Called by the loop of a cluster, with its state before KAI decided and afterwards. Workloads are compared, not pods: on
which of two equal nodes a pod starts does not matter to anybody.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from fairlead.foresight.workloads import HOLDING, SnapshotWorkloads, is_waiting, key_of
from fairlead.scheduling import advance, decide
from fairlead.scheduling.model.decisions import Decisions
from fairlead.scheduling.model.snapshot import Job, Plain, Snapshot

#: Scheduling cycles after which the outcome is taken as it is.
_CYCLES = 12
_INTRODUCTION = "KAI decides here; this is what Fairlead's scheduler would do on its state."


class SchedulingOutcome(NamedTuple):
    """What a scheduler made of a snapshot: workloads by key."""

    #: Waited before, and all their pods have nodes now.
    placed: frozenset[str]
    #: Held nodes before, and had to leave one.
    victims: frozenset[str]


class Agreement(Plain, frozen=True, kw_only=True):
    """Numbers of comparisons, and of those in which both decided the same."""

    placements: int = 0
    equal_placements: int = 0
    victims: int = 0
    equal_victims: int = 0

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(
            placements=self.placements + other.placements,
            equal_placements=self.equal_placements + other.equal_placements,
            victims=self.victims + other.victims,
            equal_victims=self.equal_victims + other.equal_victims,
        )


def find_waiting(snapshot: Snapshot) -> frozenset[str]:
    return frozenset(key_of(job) for job in snapshot.jobs if is_waiting(job))


def predict_outcome(before: Snapshot) -> SchedulingOutcome:
    """What Fairlead's scheduler makes of it.

    Evicted pods leave at once and wait again only when the other pods are decided about: a cluster deletes them, and
    until their controller has made new ones, KAI decides several times without them.
    """
    snapshot, evicted, evicted_jobs = before, set[str](), dict[str, Job]()
    for _ in range(_CYCLES):
        decisions = decide(snapshot)
        if decisions.starts or decisions.evictions:
            evicted |= {eviction.job for eviction in decisions.evictions if not eviction.never_started}
            snapshot = advance(snapshot, decisions, snapshot.now + 1)
            snapshot = _without_evicted(snapshot, decisions, evicted_jobs)
        elif evicted_jobs:
            snapshot = _with_new_pods(snapshot, evicted_jobs)
            evicted_jobs = {}
        else:
            break
    keys = SnapshotWorkloads(before).key_by_job
    return observe_outcome(before, _with_new_pods(snapshot, evicted_jobs), {keys[job] for job in evicted})


def _without_evicted(snapshot: Snapshot, decisions: Decisions, evicted_jobs: dict[str, Job]) -> Snapshot:
    """Pods that have just been evicted go from the snapshot into `gone`, which has jobs with only such pods by id."""
    tasks = {each.task for each in decisions.evictions if not each.never_started}
    jobs = []
    for job in snapshot.jobs:
        remaining = tuple(task for task in job.tasks if task.id not in tasks or task.status != "Pending")
        if len(remaining) < len(job.tasks):
            known = evicted_jobs[job.id].tasks if job.id in evicted_jobs else ()
            task_ids = {task.id for task in remaining}
            lost = tuple(task for task in job.tasks if task.id not in task_ids)
            evicted_jobs[job.id] = replace(job, tasks=(*known, *lost))
        if remaining:
            jobs.append(job if len(remaining) == len(job.tasks) else replace(job, tasks=remaining))
    without: Snapshot = replace(snapshot, jobs=tuple(jobs))
    return without


def _with_new_pods(snapshot: Snapshot, evicted_jobs: Mapping[str, Job]) -> Snapshot:
    present = {job.id: job for job in snapshot.jobs}
    for id, job in evicted_jobs.items():
        present[id] = replace(present[id], tasks=(*present[id].tasks, *job.tasks)) if id in present else job
    whole: Snapshot = replace(snapshot, jobs=tuple(present.values()))
    return whole


def observe_outcome(before: Snapshot, after: Snapshot, evicted: Collection[str]) -> SchedulingOutcome:
    """What became of it. `evicted`: workloads that lost pods to others in between, by key."""
    return SchedulingOutcome(
        placed=(find_waiting(before) - find_waiting(after)) & _find_holders(after),
        victims=_find_holders(before).intersection(evicted),
    )


def _find_holders(snapshot: Snapshot) -> frozenset[str]:
    return frozenset(key_of(job) for job in snapshot.jobs if any(task.status in HOLDING for task in job.tasks))


def compare_outcomes(judged: Collection[str], ours: SchedulingOutcome, theirs: SchedulingOutcome) -> Agreement:
    """`judged`: the workloads that waited, and about which both have decided."""
    victims = ours.victims | theirs.victims
    return Agreement(
        placements=len(judged),
        equal_placements=sum((key in ours.placed) == (key in theirs.placed) for key in judged),
        victims=len(victims),
        equal_victims=len(ours.victims & theirs.victims),
    )


def describe_agreement(agreement: Agreement) -> str:
    """For the assumptions of an answer."""
    if not agreement.placements and not agreement.victims:
        return f"{_INTRODUCTION} The two have not been compared since this server started."
    return (
        f"{_INTRODUCTION} Since this server started, both agreed in {agreement.equal_placements} of "
        f"{agreement.placements} placements and {agreement.equal_victims} of {agreement.victims} evictions."
    )
