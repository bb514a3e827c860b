"""A workload and its pods while a decision about them is being made: their changes, and the events of these. Pure.

The phase machine writes into a draft and hands it out. The loop records it in one transaction and only then gives the
orders that follow from it to the engine.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from fairlead.model.clock import Millis
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.event import Event
from fairlead.model.records.named_message import NamedMessage
from fairlead.model.records.phase import Phase, PodPhase, may_move
from fairlead.model.records.revision import Revision
from fairlead.model.records.workload import GroupTally, Pod, Tally, Workload

#: The phases whose time counts as waiting and as running.
WAITING_PHASES = frozenset({Phase.CREATING, Phase.PENDING, Phase.RESUMING})
RUNNING_PHASES = frozenset({Phase.RUNNING, Phase.DEGRADED, Phase.UPDATING})
_SHOWN_MOVES = 12


class WorkloadEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What the loop holds of one workload: its record, its pod sets, and its pods that have not ended."""

    workload: Workload
    podsets: tuple[PodSet, ...]
    pods: tuple[Pod, ...] = ()
    #: How long a finished workload stays before it deletes itself; None: for ever.
    lifetime_after_end: Millis | None = None
    #: How many preemptions it may have before it fails; None: any number.
    max_preemptions: int | None = None
    #: Whether changes of its spec roll out as revisions.
    revises: bool = False


@dataclass
class Draft:
    entry: WorkloadEntry
    now: Millis
    workload: Workload = field(init=False)
    pods: dict[str, Pod] = field(init=False)
    #: Pods that ended before and whose names new pods have, as they are stored.
    replaced: list[Pod] = field(default_factory=list)
    #: The revisions whose records are to be written, by id.
    revisions: dict[str, Revision] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    #: The earliest time at which the workload must be decided on again even if nothing happens.
    wake_at: Millis | None = None
    #: Why it fails although retries may be left.
    fatal: str = ""
    _moves: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.workload = self.entry.workload
        self.pods = {pod.id: pod for pod in self.entry.pods}

    def set(self, **members: object) -> None:
        """Change members of the workload."""
        self.workload = msgspec.structs.replace(self.workload, **members)

    def set_tally(self, role: str, tally: Tally) -> None:
        self.set(tallies={**self.workload.tallies, role: tally})

    def set_group(self, group: int, tally: GroupTally) -> None:
        self.set(groups={**self.workload.groups, group: tally})

    def set_revision(self, revision: Revision) -> None:
        """Change a revision, or add one as the newest; its record follows."""
        recorded = {each.id: each for each in self.entry.workload.revisions}
        version = recorded[revision.id].version + 1 if revision.id in recorded else 1
        changed = msgspec.structs.replace(revision, version=version)
        self.revisions[revision.id] = changed
        others = {each.id: each for each in self.workload.revisions} | {revision.id: changed}
        self.set(revisions=tuple(others.values()))

    def count_failure(self, role: str, retry_at: Millis | None = None) -> int:
        """Count a failed pod of a set, which is not replaced before `retry_at`; returns the number of failures."""
        tally = self.workload.tally(role)
        self.set_tally(role, msgspec.structs.replace(tally, failed=tally.failed + 1, retry_at=retry_at))
        return tally.failed + 1

    def count_success(self, pod: Pod) -> None:
        tally = self.workload.tally(pod.role)
        done = tally.done
        if podset_of(self.entry.podsets, pod.role).has_fixed_indices:
            done = (*done, pod.index)
        below = tally.done_below
        if pod.array_index is not None:
            done = (*done, pod.array_index)
            # The list stays short, because the lowest free index starts first.
            while below in done:
                done, below = tuple(index for index in done if index != below), below + 1
        self.set_tally(
            pod.role, msgspec.structs.replace(tally, succeeded=tally.succeeded + 1, done=done, done_below=below)
        )

    def set_pod(self, pod: Pod, **members: object) -> Pod:
        """Change members of a pod, or add one."""
        changed = msgspec.structs.replace(pod, **members) if members else pod
        self.pods[pod.id] = changed
        return changed

    def changed_pods(self) -> list[Pod]:
        """The pods that differ from the record, each with its next version."""
        before = {pod.id: pod for pod in self.entry.pods}
        changed = [pod for pod in self.pods.values() if pod is not before.get(pod.id)]
        return [
            msgspec.structs.replace(pod, version=before[pod.id].version + 1 if pod.id in before else 1)
            for pod in changed
        ] + [msgspec.structs.replace(pod, version=pod.version + 1, is_replaced=True) for pod in self.replaced]

    def names_used_again(self) -> list[str]:
        """The names of new pods that earlier, ended ones of the workload may have had."""
        known, active = {pod.id for pod in self.entry.pods}, self.active_pods()
        names: list[str] = []
        for pod in active:
            is_first = self.workload.run == 1 and self.workload.tally(pod.role).made == sum(
                other.role == pod.role for other in active
            )
            if pod.id not in known and not is_first and podset_of(self.entry.podsets, pod.role).has_fixed_indices:
                names.append(pod.name)
        return names

    def active_pods(self) -> list[Pod]:
        return [pod for pod in self.pods.values() if not pod.has_ended]

    def has_new_pods(self) -> bool:
        known = {pod.id for pod in self.entry.pods}
        return any(id not in known for id in self.pods)

    def has_other_pods(self) -> bool:
        """Whether a pod has come, has ended or is stopping, so that room on a node is taken or will be free."""
        before = {pod.id: pod.phase is PodPhase.STOPPING for pod in self.entry.pods}
        return before != {pod.id: pod.phase is PodPhase.STOPPING for pod in self.active_pods()}

    def entry_after(self) -> WorkloadEntry:
        """What the loop will hold once this is recorded."""
        pods = tuple(self.active_pods())
        is_same = self.workload is self.entry.workload and pods == self.entry.pods
        # The scheduler's jobs of the same object are rendered only once, but the end of a backoff adds to them.
        if is_same and not self.workload.retries:
            return self.entry
        return msgspec.structs.replace(self.entry, workload=self.workload, pods=pods)

    def running_time(self) -> Millis:
        """How long it has run in total, until now."""
        workload = self.workload
        current = max(0, self.now - workload.phase_updated_at) if workload.phase in RUNNING_PHASES else 0
        return workload.running_time + current

    def wake(self, at: Millis) -> None:
        self.wake_at = at if self.wake_at is None else min(self.wake_at, at)

    def add_event(
        self,
        reason: str,
        message: str,
        *,
        pod: Pod | None = None,
        warning: bool = False,
        source: str = "engine",
        revision: str = "",
    ) -> None:
        self.events.append(
            Event(
                at=self.now,
                subject="workloads",
                subject_id=self.workload.id,
                project_id=self.workload.project_id,
                type="Warning" if warning else "Normal",
                reason=reason,
                message=message,
                pod_id=pod.id if pod else "",
                pod_name=pod.name if pod else "",
                revision_id=pod.revision_id if pod else revision,
                source=source,
            )
        )

    def add_named_event(self, reason: str, message: str, named: NamedMessage | None, *, pod: Pod, source: str) -> None:
        """Add an event whose message is also kept with the name of another project's workload."""
        self.add_event(reason, message, pod=pod, source=source)
        self.events[-1] = msgspec.structs.replace(self.events[-1], named=named)

    def add_blocker(self, code: str, message: str, *, reason: str = "Unschedulable", source: str = "scheduler") -> None:
        """An event that says what it waits for from now on."""
        self.add_event(reason, message, warning=True, source=source)
        self.events[-1] = msgspec.structs.replace(self.events[-1], blocker=code)

    def set_phase(
        self, phase: Phase, message: str = "", *, reason: str | None = None, named: NamedMessage | None = None
    ) -> None:
        """Enter a phase, or change the message of the present one. An illegal move marks the workload Unknown."""
        before = self.workload
        if before.phase == phase:
            if (before.phase_message, before.phase_reason) != (message, reason):
                self.set(phase_message=message, phase_reason=reason)
            return
        if not may_move(before.phase, phase):
            message = (
                f"The move from {before.phase} to {phase} is not legal ({message or 'no message'}). {self._history()}"
            )
            phase, reason = Phase.UNKNOWN, None
        spent = max(0, self.now - before.phase_updated_at)
        self.set(
            phase=phase,
            phase_message=message,
            phase_reason=reason,
            phase_updated_at=self.now,
            pending_time=before.pending_time + (spent if before.phase in WAITING_PHASES else 0),
            running_time=before.running_time + (spent if before.phase in RUNNING_PHASES else 0),
        )
        self._moves.append(f"{before.phase}→{phase}")
        self.events.append(
            Event(
                at=self.now,
                subject="workloads",
                subject_id=before.id,
                project_id=before.project_id,
                type="Warning" if phase in (Phase.FAILED, Phase.UNKNOWN, Phase.DEGRADED) else "Normal",
                reason=phase.value,
                message=message,
                named=named,
                phase=phase.value,
                source="control",
            )
        )

    def _history(self) -> str:
        return f"Moves in this decision: {', '.join(self._moves[-_SHOWN_MOVES:]) or 'none'}."

    @property
    def is_changed(self) -> bool:
        has_other_record = self.workload is not self.entry.workload and self.workload != self.entry.workload
        return has_other_record or bool(self.events) or bool(self.changed_pods())


def podset_of(podsets: Iterable[PodSet], role: str) -> PodSet:
    return next(podset for podset in podsets if podset.role == role)
