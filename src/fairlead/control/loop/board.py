"""The loop's memory: every unfinished workload, its pods that have not ended, and the next due times.

Only the loop writes it. Finished workloads are not on it, so its size follows the current work and not the history.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from fairlead.control.decide.draft import WorkloadEntry
from fairlead.control.decide.expand import expand_spec, podsets_of
from fairlead.control.loop.counters import WorkloadCounters
from fairlead.control.serving.urls import UrlRegistry
from fairlead.kinds import KINDS
from fairlead.model.clock import Millis
from fairlead.model.records.workload import Pod, Workload
from fairlead.scheduling.model.snapshot import Job


class Board:
    def __init__(self, open_workloads: dict[str, int], urls: UrlRegistry | None = None) -> None:
        self._urls = urls or UrlRegistry()
        self.entries: dict[str, WorkloadEntry] = {}
        #: Which workload a pod belongs to, for pods that have not ended.
        self.pods: dict[str, str] = {}
        #: The workloads that wait for names or for other workloads.
        self.waiting: set[str] = set()
        self._wakes: list[tuple[Millis, str]] = []
        #: The next due time of each workload.
        self._next_wakes: dict[str, Millis] = {}
        self._open = open_workloads
        self._jobs: dict[str, tuple[WorkloadEntry, list[Job]]] = {}
        self.counters = WorkloadCounters()

    def put(self, workload: Workload, pods: Iterable[Pod]) -> WorkloadEntry:
        """Hold the newest record of a workload. Its spec is expanded only when it changes."""
        known = self.entries.get(workload.id)
        active = tuple(pod for pod in pods if not pod.has_ended)
        if known is None:
            entry = _entry(workload, active)
            self._open[workload.project_id] = self._open.get(workload.project_id, 0) + 1
        else:
            is_same = known.workload.revisions == workload.revisions and (
                bool(workload.revisions) or bytes(known.workload.spec) == bytes(workload.spec)
            )
            entry = (
                msgspec.structs.replace(known, workload=workload, pods=active) if is_same else _entry(workload, active)
            )
            self.counters.note(known.workload, workload)
            for pod in known.pods:
                self.pods.pop(pod.id, None)
        for pod in active:
            self.pods[pod.id] = workload.id
        self.entries[workload.id] = entry
        if workload.waits_for:
            self.waiting.add(workload.id)
        else:
            self.waiting.discard(workload.id)
        self._urls.update(entry)
        return entry

    def discard_if_idle(self, workload_id: str) -> None:
        """Remove a workload from the board once nothing is left to do."""
        entry = self.entries[workload_id]
        if entry.workload.is_active or entry.pods:
            return
        del self.entries[workload_id]
        self.waiting.discard(workload_id)
        self._urls.release(workload_id)
        self._jobs.pop(workload_id, None)
        self._open[entry.workload.project_id] -= 1

    def wake(self, at: Millis, workload_id: str) -> None:
        """Decide on it at that time. If it is decided on before, that decision sets its next time."""
        known = self._next_wakes.get(workload_id)
        if known is None or at < known:
            self._next_wakes[workload_id] = at
            heapq.heappush(self._wakes, (at, workload_id))

    def next_wake(self) -> Millis | None:
        return self._wakes[0][0] if self._wakes else None

    def due(self, now: Millis) -> set[str]:
        """The workloads whose time has come."""
        due: set[str] = set()
        while self._wakes and self._wakes[0][0] <= now:
            at, workload_id = heapq.heappop(self._wakes)
            if self._next_wakes.get(workload_id) == at:
                del self._next_wakes[workload_id]
            due.add(workload_id)
        return due

    def jobs(self, entry: WorkloadEntry, render: Callable[[WorkloadEntry], list[Job]]) -> list[Job]:
        """A workload as the scheduler sees it, rendered again only when its entry changes."""
        known = self._jobs.get(entry.workload.id)
        if known is not None and known[0] is entry:
            return known[1]
        jobs = render(entry)
        self._jobs[entry.workload.id] = (entry, jobs)
        return jobs

    def count_pods(self) -> Counter[str]:
        return Counter(pod.phase.value for entry in self.entries.values() for pod in entry.pods)


def _entry(workload: Workload, pods: tuple[Pod, ...]) -> WorkloadEntry:
    expanded = expand_spec(workload.kind, bytes(workload.spec))
    return WorkloadEntry(
        workload=workload,
        pods=pods,
        podsets=podsets_of(workload),
        lifetime_after_end=expanded.lifetime_after_end,
        max_preemptions=expanded.max_preemptions,
        revises=KINDS[workload.kind].has_revisions,
    )
