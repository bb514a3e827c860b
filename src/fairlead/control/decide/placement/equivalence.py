"""A shortcut: a new workload that requests exactly what another one already waits for would wait too. Pure.

The plain way is to ask `scheduling` about the whole cluster for every submission. That is needless if nothing has
changed since the last decision except workloads equal to one that was left pending: same project, priority and spec.
Such a newcomer changes only how much its queues request in total. Fair shares follow from that, and they decide who may
evict whom. So the shortcut holds if nobody can be evicted, and for queues that already request more than their share,
because more of the same leaves all shares as they are. Tests compare both ways.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from fairlead.control.decide.draft import WorkloadEntry
from fairlead.control.decide.placement.missing_pods import count_missing_pods
from fairlead.control.decide.review import ISOLATION, NOT_ENFORCED
from fairlead.model.clock import Millis
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import Workload
from fairlead.scheduling import format_reason
from fairlead.scheduling.model.decisions import Decisions, FairShare, Pending

#: Everything of a workload that a scheduling decision reads, except its age.
SchedulingKey = tuple[str, str, str, int, bool, tuple[str, ...], tuple[str, ...], bytes]


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


@dataclass
class KnownBlockers:
    """Why workloads wait since the last decision, by scheduling key. Forgotten as soon as anything else changes."""

    #: A recorded workload per key. Submissions read it, so that an equal newcomer is Pending from its first record.
    equivalents: dict[SchedulingKey, tuple[Workload, Pending]] = field(default_factory=dict)
    _reasons: dict[SchedulingKey, Pending] = field(default_factory=dict)

    def clear(self) -> None:
        self._reasons.clear()
        self.equivalents.clear()

    def note(self, workload: Workload) -> None:
        """A workload was recorded: if it waits for a known reason, equal newcomers can be compared with it."""
        if self._reasons and workload.phase is Phase.PENDING and workload.blocked_by is not None:
            key = scheduling_key(workload)
            pending = self._reasons.get(key)
            if pending is not None:
                self.equivalents[key] = (workload, pending)

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


def pend_like(workload: Workload, equivalent: Workload, pending: Pending) -> Workload:
    """A workload equal to one that waits is Pending from its first record, for the same reason."""
    reason = _named(pending, workload).reason
    return msgspec.structs.replace(
        workload,
        phase=equivalent.phase,
        phase_message=format_reason(reason),
        phase_reason=equivalent.phase_reason,
        blocked_by=msgspec.to_builtins(reason, str_keys=True),
        pending_messages=equivalent.pending_messages,
        conditions=workload.conditions
        + tuple(note for note in equivalent.conditions if note.type in (NOT_ENFORCED, ISOLATION)),
    )


def _queues(workload: Workload) -> set[str]:
    return {f"project-{workload.project_id}", f"department-{workload.department_id}"}


def _is_satisfied(share: FairShare) -> bool:
    """Whether the queue has all that it requests of some resource, so that requesting more may change its share."""
    return any(fair >= asked for fair, asked in zip(share.fair_share, share.requested, strict=True) if asked > 0)
