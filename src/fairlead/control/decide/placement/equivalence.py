"""A shortcut: a new workload that requests exactly what another one already waits for would wait too. Pure.

The plain way is to ask `scheduling` about the whole cluster for every submission. That is needless if nothing has
changed since the last decision except workloads equal to one that was left pending: same project, priority and spec.
Such a newcomer changes only how much its queues request in total. Fair shares follow from that, and they decide who may
evict whom. So the shortcut holds if nobody can be evicted, and for queues that already request more than their share,
because more of the same leaves all shares as they are. Tests compare both ways.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from fairlead.control.decide.draft import WorkloadEntry
from fairlead.control.decide.placement.missing_pods import count_missing_pods
from fairlead.control.decide.review import ISOLATION, NOT_ENFORCED
from fairlead.model.clock import Millis
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import Condition, Workload
from fairlead.scheduling import format_reason
from fairlead.scheduling.model.decisions import Decisions, FairShare, Pending

#: Everything of a workload that a scheduling decision reads, except its age.
SchedulingKey = tuple[str, str, str, int, bool, tuple[str, ...], tuple[str, ...], bytes]
#: Stands for the name of the workload; no name of a workload, node or queue contains it.
_NAME = "\0"


def scheduling_key(workload: Workload) -> SchedulingKey:
    return (
        workload.kind,
        workload.dialect,
        workload.project_id,
        workload.priority,
        workload.preemptible,
        workload.node_pools,
        workload.node_types,
        bytes(workload.spec),
    )


class Equivalent(msgspec.Struct, frozen=True, eq=False):
    """A recorded workload that waits, and what its newcomers share: their records differ in the name only."""

    workload: Workload
    #: The sentence of the reason, with _NAME where it names the workload.
    message: str
    #: The reason as data. It names the workload if it has the member "task".
    blocked_by: dict[str, object]
    names_task: bool
    notes: tuple[Condition, ...]


class Newcomer(NamedTuple):
    """A workload that was just written, and the one that it waits like, if it is Pending from its first record."""

    workload: Workload
    like: Equivalent | None = None


def make_equivalent(workload: Workload, pending: Pending) -> Equivalent:
    reason = pending.reason
    names_task = reason.task is not None
    if names_task:
        reason = msgspec.structs.replace(reason, task=_NAME)
    return Equivalent(
        workload=workload,
        message=format_reason(reason),
        blocked_by=msgspec.to_builtins(reason, str_keys=True),
        names_task=names_task,
        notes=tuple(note for note in workload.conditions if note.type in (NOT_ENFORCED, ISOLATION)),
    )


@dataclass
class KnownBlockers:
    """Why workloads wait since the last decision, by scheduling key. Forgotten as soon as anything else changes."""

    #: A recorded workload per key. Submissions read it, so that an equal newcomer is Pending from its first record.
    equivalents: dict[SchedulingKey, Equivalent] = field(default_factory=dict)
    _reasons: dict[SchedulingKey, Pending] = field(default_factory=dict)

    def clear(self) -> None:
        self._reasons.clear()
        self.equivalents.clear()

    def note(self, workload: Workload) -> None:
        """A workload was recorded: if it waits for a known reason, equal newcomers can be compared with it."""
        if self._reasons and workload.phase is Phase.PENDING and workload.blocked_by is not None:
            key = scheduling_key(workload)
            pending = self._reasons.get(key)
            if pending is not None and key not in self.equivalents:
                self.equivalents[key] = make_equivalent(workload, pending)

    def learn(self, entries: Mapping[str, WorkloadEntry], decisions: Decisions) -> None:
        """Remember what was left pending, if more of the same cannot change the fair shares."""
        self.clear()
        if decisions.binds or decisions.evictions or decisions.pipelined or decisions.next_change_at is not None:
            # Something moves, so the next decision is about a different cluster.
            return
        has_victims = any(entry.pods and entry.workload.preemptible for entry in entries.values())
        saturated = {share.queue for share in decisions.fair_shares if not (has_victims and _is_satisfied(share))}
        for pending in decisions.pending:
            entry = entries.get(pending.tasks[0].split("/")[0])
            if entry is not None and saturated >= _queues(entry.workload) and not _is_unlike_others(entry):
                self._reasons[scheduling_key(entry.workload)] = pending

    def reason(self, entry: WorkloadEntry, now: Millis) -> Pending | None:
        """Why a workload with missing pods would wait, if that is known without asking the scheduler."""
        if not self._reasons or entry.pods or not count_missing_pods(entry, now):
            return None
        known = self._reasons.get(scheduling_key(entry.workload))
        return None if known is None else _named(known, entry.workload)


def _is_unlike_others(entry: WorkloadEntry) -> bool:
    """Whether it has URLs, which each workload gets at its own first decision, or waits to be near its own pods."""
    fields = [podset.container.fields for podset in entry.podsets]
    return any(each.exposed_urls or each.pod_affinity is not None for each in fields)


def _named(pending: Pending, workload: Workload) -> Pending:
    """The same reason, with this workload's name instead of the equal one's."""
    if pending.reason.task is None:
        return pending
    return msgspec.structs.replace(pending, reason=msgspec.structs.replace(pending.reason, task=workload.name))


def pend_like(workload: Workload, equivalent: Equivalent) -> Workload:
    """A workload equal to one that waits is Pending from its first record, for the same reason."""
    message, blocked_by = equivalent.message, equivalent.blocked_by
    if equivalent.names_task:
        message = message.replace(_NAME, workload.name)
        blocked_by = {**blocked_by, "task": workload.name}
    return msgspec.structs.replace(
        workload,
        phase=equivalent.workload.phase,
        phase_message=message,
        phase_reason=equivalent.workload.phase_reason,
        blocked_by=blocked_by,
        pending_messages=equivalent.workload.pending_messages,
        conditions=workload.conditions + equivalent.notes,
    )


def _queues(workload: Workload) -> set[str]:
    return {f"project-{workload.project_id}", f"department-{workload.department_id}"}


def _is_satisfied(share: FairShare) -> bool:
    """Whether the queue has all that it requests of some resource, so that requesting more may change its share."""
    return any(
        fair >= requested for fair, requested in zip(share.fair_share, share.requested, strict=True) if requested > 0
    )
