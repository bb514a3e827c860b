"""Questions about the past, from recorded cycles and events: a snapshot, a `why`, a timeline, who went first.

Called by the API. What the caller may not see is counted or left out, never named.
"""

from functools import partial

import msgspec

from fairlead import __version__
from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.cycles.load import load_cycle
from fairlead.control.cycles.segments import RecordedCycle
from fairlead.control.decide.placement.snapshot import key_in_snapshot, queue_of
from fairlead.foresight.precedence import PrecedenceAnswer, explain_precedence
from fairlead.foresight.timeline import (
    PastEviction,
    TimelineAnswer,
    describe_eviction,
    find_spans,
    sum_waits,
    summarize,
)
from fairlead.foresight.why import Asker, WhyAnswer, explain_why
from fairlead.foresight.workloads import SnapshotWorkloads, is_waiting
from fairlead.model.clock import Millis, in_words
from fairlead.model.errors import Dropped, NotFound
from fairlead.model.records.assets import INSTALLATION_SCOPE_KEY
from fairlead.model.records.event import Event
from fairlead.model.records.people import Caller
from fairlead.model.records.workload import Pod, Workload
from fairlead.scheduling.model.snapshot import Snapshot
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import EVENTS, PODS, WORKLOADS

#: Evictions that a timeline tells with their figures, the newest first; and starts of the other one that are tried.
_EVICTIONS, _STARTS = 20, 5
#: Own workloads that a `why` may suggest to suspend.
_OWN = 5_000


async def load_past_snapshot(context: Context, caller: Caller, at: Millis) -> Snapshot:
    """The snapshot of the last cycle at or before that time."""
    access.check_at(caller, "scheduling:read", INSTALLATION_SCOPE_KEY)
    return (await load_cycle(context, at)).snapshot


async def explain_past_pending(context: Context, caller: Caller, workload: Workload, at: Millis) -> WhyAnswer:
    """Why the workload waited in that cycle, and what would have started it."""
    access.check(caller, "workloads:read", workload.project_id)
    cycle = await load_cycle(context, at)
    if not _has_workload(cycle.snapshot, workload):
        return _unknown_then(cycle, workload)
    asker = await _load_asker(context, caller, at)
    ask = partial(explain_why, cycle.snapshot, key_in_snapshot(workload), asker)
    answer = await context.questions.ask_uncached(caller.name, ask)
    basis = f"The state of the scheduling cycle at {in_words(cycle.at)}, decided by version {cycle.scheduler}"
    other = f"; this is version {__version__}" if cycle.scheduler != __version__ else ""
    completed: WhyAnswer = msgspec.structs.replace(
        answer, revision=cycle.entry.revision, assumptions=(f"{basis}{other}.", *answer.assumptions)
    )
    return completed


def _has_workload(snapshot: Snapshot, workload: Workload) -> bool:
    """Whether the snapshot has it, and not another one of the same name."""
    queue, created = queue_of(workload.project_id), workload.created_at / 1000
    return any(
        job.name == workload.name and job.queue == queue and job.created == created and not job.deleting
        for job in snapshot.jobs
    )


def _unknown_then(cycle: RecordedCycle, workload: Workload) -> WhyAnswer:
    if workload.created_at > cycle.at:
        why = f"It was submitted later, at {in_words(workload.created_at)}."
    elif workload.completed_at is not None and workload.completed_at <= cycle.at:
        why = f"It had ended at {in_words(workload.completed_at)}."
    else:
        why = "It was suspended or had ended, or it was new and waited behind an equal workload."
    return WhyAnswer(
        workload=workload.name,
        project=workload.project_name,
        status="notWaiting",
        message=f"The scheduling cycle at {in_words(cycle.at)} did not involve any of its pods. {why}",
        now=cycle.snapshot.now,
        revision=cycle.entry.revision,
    )


def _asker(caller: Caller) -> Asker:
    projects = access.visible_projects(caller)
    return Asker(visible=None if projects is None else frozenset(map(queue_of, projects)), own=frozenset())


async def _load_asker(context: Context, caller: Caller, at: Millis) -> Asker:
    where = (Where("submitted_by", Comparison.EQUAL, caller.name), Where("created_at", Comparison.AT_MOST, at))
    query = Query(collection=WORKLOADS, where=where, order=(("created_at", True),), limit=_OWN)
    own = frozenset(map(key_in_snapshot, await context.store.find(query)))
    return _asker(caller)._replace(own=own)


async def load_timeline(context: Context, caller: Caller, workload: Workload) -> TimelineAnswer:
    """Since when it waited for what, when it ran, and why it was evicted."""
    access.check(caller, "workloads:read", workload.project_id)
    where = (
        Where("subject_id", Comparison.EQUAL, workload.id),
        Where("subject", Comparison.EQUAL, WORKLOADS.name),
    )
    events: list[Event] = await context.store.find(Query(collection=EVENTS, where=where, order=(("revision", False),)))
    now = context.clock()
    is_complete = bool(events) and events[0].at <= workload.created_at
    spans = find_spans(events, workload.created_at, now)
    waited = sum_waits(spans)
    evicted = [event for event in events if event.reason == "Evict"]
    evictions = tuple([await _load_eviction(context, caller, event) for event in evicted[-_EVICTIONS:]])
    return TimelineAnswer(
        workload=workload.name,
        project=workload.project_name,
        message=summarize(spans, waited, len(evicted)),
        spans=spans,
        waited=waited,
        evictions=evictions,
        is_complete=is_complete,
        now=now / 1000,
        revision=events[-1].revision if events else None,
    )


async def _load_eviction(context: Context, caller: Caller, event: Event) -> PastEviction:
    """From the cycle that decided it; without that record, as its event tells it."""
    try:
        cycle = await load_cycle(context, event.at)
    except (Dropped, NotFound):
        cycle = None
    evictions = [each for each in cycle.entry.evictions if each.task == event.pod_id] if cycle is not None else []
    if cycle is None or cycle.at != event.at or not evictions:
        message = event.message_for(access.visible_projects(caller))
        return PastEviction(at=event.at / 1000, pod=event.pod_name, node="", rule="", message=message)
    return describe_eviction(cycle.snapshot, evictions[0], event.pod_name, _asker(caller))


async def explain_who_went_first(
    context: Context, caller: Caller, workload: Workload, other: Workload
) -> PrecedenceAnswer:
    """Why the other one got a place while this one waited: on the cycle in which it got it."""
    for each in (workload, other):
        access.check(caller, "workloads:read", each.project_id)
    of_other = (Where("workload_id", Comparison.EQUAL, other.id),)
    pods: list[Pod] = await context.store.find(Query(collection=PODS, where=of_other, order=(("created_at", False),)))
    starts = sorted({pod.created_at for pod in pods if pod.created_at >= workload.created_at})
    for at in starts[:_STARTS]:
        cycle = await load_cycle(context, at)
        if cycle.at == at and _waits(cycle, workload):
            return await _compare(context, caller, cycle, (workload, other))
    return _not_compared(context, workload, other, bool(starts))


def _waits(cycle: RecordedCycle, workload: Workload) -> bool:
    """Whether it had pods to place in that cycle, and the cycle placed none."""
    key = key_in_snapshot(workload)
    jobs = SnapshotWorkloads(cycle.snapshot).jobs.get(key, ())
    waiting = {job.id for job in jobs if is_waiting(job)}
    return bool(waiting) and not any(bind.job in waiting for bind in cycle.entry.binds)


async def _compare(
    context: Context, caller: Caller, cycle: RecordedCycle, pair: tuple[Workload, Workload]
) -> PrecedenceAnswer:
    keys = [key_in_snapshot(each) for each in pair]
    ask = partial(explain_precedence, cycle.snapshot, keys[0], keys[1], _asker(caller))
    answer = await context.questions.ask_uncached(caller.name, ask)
    completed: PrecedenceAnswer = msgspec.structs.replace(answer, revision=cycle.entry.revision)
    return completed


def _not_compared(context: Context, workload: Workload, other: Workload, has_started: bool) -> PrecedenceAnswer:
    if has_started:
        message = f"{workload.name} was not waiting when {other.name} was placed."
    else:
        message = f"{other.name} has not been placed since {workload.name} was submitted."
    return PrecedenceAnswer(
        workload=workload.name,
        project=workload.project_name,
        other=other.name,
        other_project=other.project_name,
        cause="notCompared",
        message=message,
        now=context.clock() / 1000,
    )
