"""What would happen if a workload were submitted now: where it starts, or what it waits for; whom it evicts or delays.

The plan compares the cluster without the workload with the cluster with it. Its id stands for what was planned and not
for when, so that a later submission can be held against it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from fairlead.foresight.effects import Effects, compare
from fairlead.foresight.messages import format_concerned, plural
from fairlead.foresight.outlook import ASSUMPTIONS, Outlook, look_ahead, starts_alone
from fairlead.foresight.runtimes import RunningTime
from fairlead.foresight.timing import PlanTiming, estimate_timing
from fairlead.foresight.why import ANYBODY, Asker, Status, redact
from fairlead.foresight.workloads import NOTHING_WAITS, SnapshotWorkloads, key_of
from fairlead.model.english import enumerate_names
from fairlead.scheduling.messages import NEVER, format_reason
from fairlead.scheduling.model.decisions import Eviction, Reason
from fairlead.scheduling.model.snapshot import Plain, Snapshot


class PlannedPod(Plain, frozen=True, kw_only=True, omit_defaults=False):
    node: str
    node_pool: str
    devices: tuple[int, ...] = ()
    #: The scheduling cycle in which it starts; with evictions that is the second.
    cycle: int = 1


class PlannedEviction(Plain, frozen=True, kw_only=True, omit_defaults=False):
    """One pod that has to stop, with the rule and the figures of both queues at that moment."""

    workload: str
    project: str
    node: str
    #: preempted, reclaimed, consolidated or stale.
    rule: str
    message: str
    moved_to: str | None = None


class QueueAfter(Plain, frozen=True, kw_only=True, omit_defaults=False):
    """A project or department before and after: GPUs, thousandths of a core, bytes; -1 is unlimited."""

    name: str
    #: PROJECT or DEPARTMENT.
    type: str
    node_pool: str
    quota: tuple[float, float, float]
    limit: tuple[float, float, float]
    used_before: tuple[float, float, float]
    used_after: tuple[float, float, float]


class PlanAnswer(Plain, frozen=True, kw_only=True, omit_defaults=False):
    #: Give it to the submission, which is then refused if the plan no longer holds.
    id: str = ""
    workload: str
    project: str
    status: Status
    message: str
    #: What it waits for, if it does not start.
    reason: Reason | None = None
    waiting_pods: int = 0
    pods: tuple[PlannedPod, ...] = ()
    effects: Effects = Effects()
    #: Of pods that the caller may see.
    evictions: tuple[PlannedEviction, ...] = ()
    queues: tuple[QueueAfter, ...] = ()
    #: When it starts, and whom it delays by how much; None if that was not asked.
    timing: PlanTiming | None = None
    #: What the rules of its project change in it, or what has no effect here.
    remarks: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ASSUMPTIONS
    now: float
    revision: int | None = None


def make_plan(
    snapshot: Snapshot, workload: str, asker: Asker = ANYBODY, runtimes: Mapping[str, RunningTime] | None = None
) -> PlanAnswer:
    """The plan of a workload that waits in the snapshot, as if it were submitted at this moment.

    `runtimes`: what is known of the others, by key; with them the plan tells times too.
    """
    workloads = SnapshotWorkloads(snapshot, asker.visible)
    key = workloads.find(workload)
    waiting = workloads.waiting_jobs(key)
    without: Snapshot = replace(snapshot, jobs=tuple(each for each in snapshot.jobs if key_of(each) != key))
    before, after = look_ahead(without), look_ahead(snapshot)
    cycle = after.starts(waiting)
    effects = compare(workloads, before, after, [key])
    pending = next((each for each in after.first.pending if each.job in waiting), None)
    reason = redact(pending.reason, workloads) if pending is not None and cycle is None else None
    plan = PlanAnswer(
        workload=workloads.name(key),
        project=workloads.project_of(key),
        status="starts" if cycle is not None else _status_alone(snapshot, workloads, key),
        message="",
        reason=reason,
        waiting_pods=sum(task.status == "Pending" for each in workloads.jobs[key] for task in each.tasks),
        pods=_pods(after, waiting),
        effects=effects,
        evictions=_evictions(workloads, before, after, key),
        queues=_queues(snapshot, workloads, key, (before, after)),
        now=snapshot.now,
    )
    timing = None
    if runtimes is not None and waiting and plan.status != "never":
        timing = estimate_timing(snapshot, key, runtimes, asker)
    planned: PlanAnswer = replace(
        plan, message=_message(plan, timing), id=_identify(plan, before, after), timing=timing
    )
    return planned


def _status_alone(snapshot: Snapshot, workloads: SnapshotWorkloads, key: str) -> Status:
    return "waits" if starts_alone(snapshot, workloads.jobs[key], workloads.waiting_jobs(key)) else "never"


def _pods(after: Outlook, waiting: frozenset[str]) -> tuple[PlannedPod, ...]:
    started = [(cycle, bind) for cycle, bind in after.binds.values() if bind.job in waiting]
    pods = [
        PlannedPod(node=bind.node, node_pool=bind.node_pool, devices=bind.devices, cycle=cycle)
        for cycle, bind in started
    ]
    return tuple(sorted(pods, key=lambda pod: (pod.cycle, pod.node_pool, pod.node, pod.devices)))


def _new_evictions(before: Outlook, after: Outlook) -> list[Eviction]:
    return [after.evictions[task] for task in sorted(after.evictions) if task not in before.evictions]


def _evictions(workloads: SnapshotWorkloads, before: Outlook, after: Outlook, key: str) -> tuple[PlannedEviction, ...]:
    return tuple(
        PlannedEviction(
            workload=workloads.name(victim),
            project=workloads.project_of(victim),
            node=eviction.node,
            rule=eviction.rule,
            message=eviction.message,
            moved_to=eviction.moved_to,
        )
        for eviction in _new_evictions(before, after)
        if (victim := workloads.key_by_job[eviction.job]) != key and workloads.is_visible(victim)
    )


def _queues(
    snapshot: Snapshot, workloads: SnapshotWorkloads, key: str, outlooks: tuple[Outlook, Outlook]
) -> tuple[QueueAfter, ...]:
    """Its project and the departments above, in the node pools that it may use."""
    job = workloads.jobs[key][0]
    used = [{(s.queue, s.node_pool): s.allocated for s in each.cycles[-1].fair_shares} for each in outlooks]
    rows = []
    for pool in job.node_pools:
        queues = {queue.name: queue for queue in snapshot.queues if queue.node_pool == pool}
        name: str | None = job.queue
        while name is not None and name in queues:
            queue = queues[name]
            shares = (queue.resources.gpu, queue.resources.cpu, queue.resources.memory)
            nothing = (0.0, 0.0, 0.0)
            rows.append(
                QueueAfter(
                    name=queue.display_name or name,
                    type="PROJECT" if name == job.queue else "DEPARTMENT",
                    node_pool=pool,
                    quota=(shares[0].quota, shares[1].quota, shares[2].quota),
                    limit=(shares[0].limit, shares[1].limit, shares[2].limit),
                    used_before=used[0].get((name, pool), nothing),
                    used_after=used[1].get((name, pool), nothing),
                )
            )
            name = queue.parent
    return tuple(rows)


def _message(plan: PlanAnswer, timing: PlanTiming | None) -> str:
    if plan.status != "starts":
        message = format_reason(plan.reason) if plan.reason is not None else NOTHING_WAITS
        if plan.status == "never" and not message.startswith(NEVER):
            message = f"{NEVER} as it is, even if all other workloads end. {message}"
        return f"{message} {timing.message}" if timing is not None else message
    nodes = sorted({pod.node for pod in plan.pods})
    where = enumerate_names([*nodes[:3], *([f"{len(nodes) - 3} more nodes"] if len(nodes) > 3 else [])])
    message = f"Starts {plural(len(plan.pods), 'pod')} on {where}"
    if len(plan.pods) < plan.waiting_pods:
        message += f"; {plan.waiting_pods - len(plan.pods)} wait"
    if plan.effects.evicted.count:
        message += f"; evicts {format_concerned(plan.effects.evicted)}"
    if plan.effects.moved.count:
        message += f"; moves {format_concerned(plan.effects.moved)}"
    if plan.effects.delayed.count:
        message += f"; delays {format_concerned(plan.effects.delayed)}"
    return f"{message}."


def _identify(plan: PlanAnswer, before: Outlook, after: Outlook) -> str:
    """Equal for equal plans: names are left out, because a prefix gets another suffix each time."""
    lost = [eviction.task for eviction in _new_evictions(before, after)]
    content = (plan.status, plan.pods, lost, plan.effects, plan.reason.code if plan.reason else "")
    return hashlib.sha256(msgspec.json.encode(content)).hexdigest()[:16]


def describe_difference(planned: PlanAnswer, present: PlanAnswer) -> list[str]:
    """What is different now, one sentence each."""
    differences = []
    if planned.status != present.status or planned.status != "starts":
        differences.append(f"It was planned: {planned.message} Now: {present.message}")
    elif _places(planned) != _places(present):
        differences.append(f"Its pods would be placed differently: {_places(present)} instead of {_places(planned)}.")
    elif planned.pods != present.pods:
        differences.append("Its pods start in another scheduling cycle than planned.")
    for member, verb in (("evicted", "evict"), ("moved", "move"), ("delayed", "delay")):
        was, now = getattr(planned.effects, member), getattr(present.effects, member)
        if was != now:
            names = [format_concerned(each) or "nobody" for each in (now, was)]
            differences.append(f"It would now {verb} {names[0]} instead of {names[1]}.")
    return differences or ["Other pods than planned would be evicted."]


def _places(plan: PlanAnswer) -> str:
    return enumerate_names(
        [f"{pod.node}{' ' + ','.join(map(str, pod.devices)) if pod.devices else ''}" for pod in plan.pods[:4]]
    )
