"""A shortcut: a new workload that asks for exactly what another one already waits for would wait too. Pure.

The plain way is to ask `scheduling` about the whole cluster for every submission. That is needless while nothing has
changed since it was asked last, but for workloads that are equal to one that it left waiting: same project, priority
and spec. The only thing that such a newcomer changes is how much its queues ask for in all. Fair shares follow from
that, and they decide who may evict whom: so the shortcut holds where nobody can be evicted, and for queues that asked
for more than their share already, because more of the same leaves all shares as they are. Tests compare both ways.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from fairlead.control.decide.draft import WorkloadEntry
from fairlead.control.decide.phases import ISOLATION, NOT_ENFORCED, count_missing_pods
from fairlead.model.clock import Millis
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import Workload
from fairlead.scheduling import format_reason
from fairlead.scheduling.model.decisions import Decisions, FairShare, Pending

#: Everything of a workload that a decision looks at, besides its age.
Likeness = tuple[str, str, str, int, bool, tuple[str, ...], bytes]


def scheduling_key(workload: Workload) -> Likeness:
    return (
        workload.kind,
        workload.dialect,
        workload.project_id,
        workload.priority,
        workload.preemptible,
        workload.node_pools,
        bytes(workload.spec),
    )


@dataclass
class KnownBlockers:
    """What waits since the last decision, by likeness. Forgotten as soon as anything else changes."""

    #: A recorded workload per likeness; submissions look here, so that an equal newcomer waits from its first record.
    equivalents: dict[Likeness, tuple[Workload, Pending]] = field(default_factory=dict)
    _reasons: dict[Likeness, Pending] = field(default_factory=dict)

    def clear(self) -> None:
        self._reasons.clear()
        self.equivalents.clear()

    def note(self, workload: Workload) -> None:
        """A workload was recorded: if it waits as one that is known, it is a twin for those to come."""
        if self._reasons and workload.phase is Phase.PENDING and workload.blocked_by is not None:
            like = scheduling_key(workload)
            known = self._reasons.get(like)
            if known is not None:
                self.equivalents[like] = (workload, known)

    def learn(self, entries: Mapping[str, WorkloadEntry], decisions: Decisions) -> None:
        """Remember what was left waiting, where more of the same cannot change the division."""
        self.clear()
        if decisions.binds or decisions.evictions or decisions.pipelined or decisions.next_change_at is not None:
            # Something moves, so the next decision is on another cluster.
            return
        has_victims = any(entry.pods and entry.workload.preemptible for entry in entries.values())
        saturated = {share.queue for share in decisions.fair_shares if not (has_victims and _is_satisfied(share))}
        for pending in decisions.pending:
            entry = entries.get(pending.tasks[0].split("/")[0])
            if entry is not None and saturated >= _queues(entry.workload) and not _serves(entry):
                self._reasons[scheduling_key(entry.workload)] = pending

    def reason(self, entry: WorkloadEntry, now: Millis) -> Pending | None:
        """Why a workload that wants a place would wait, if that is known without asking."""
        if not self._reasons or entry.pods or not count_missing_pods(entry, now):
            return None
        known = self._reasons.get(scheduling_key(entry.workload))
        return None if known is None else _named(known, entry.workload)


def _serves(entry: WorkloadEntry) -> bool:
    """Whether it has URLs, which each workload is given at its own first decision."""
    return any(podset.container.fields.exposed_urls for podset in entry.podsets)


def _named(pending: Pending, workload: Workload) -> Pending:
    """The same reason, told of this workload and not of the one that it was found for."""
    if pending.reason.task is None:
        return pending
    return msgspec.structs.replace(pending, reason=msgspec.structs.replace(pending.reason, task=workload.name))


def pend_like(workload: Workload, twin: Workload, pending: Pending) -> Workload:
    """A workload equal to one that waits is Pending from its first record, for the same reason."""
    reason = _named(pending, workload).reason
    return msgspec.structs.replace(
        workload,
        phase=twin.phase,
        phase_message=format_reason(reason),
        phase_reason=twin.phase_reason,
        blocked_by=msgspec.to_builtins(reason, str_keys=True),
        pending_messages=twin.pending_messages,
        conditions=workload.conditions
        + tuple(note for note in twin.conditions if note.type in (NOT_ENFORCED, ISOLATION)),
    )


def _queues(workload: Workload) -> set[str]:
    return {f"project-{workload.project_id}", f"department-{workload.department_id}"}


def _is_satisfied(share: FairShare) -> bool:
    """Whether the queue has all it asks for in some resource, so that asking for more may change its share."""
    return any(fair >= asked for fair, asked in zip(share.fair_share, share.requested, strict=True) if asked > 0)
