"""Jobs of a session by leaf queue, kept sorted while tasks change state: the solver walks them many times per cycle."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable

from fairlead.scheduling.fairness.job_order import JobKey, job_key
from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.live import LiveJob
from fairlead.scheduling.model.queues import Amounts
from fairlead.scheduling.model.subgroups import is_ready, next_request

Entry = tuple[JobKey, LiveJob]


class JobIndex:
    """Sorted entries per leaf of the jobs that a test lets in; `refresh` after a job has changed."""

    def __init__(self, wanted: Callable[[LiveJob], bool], jobs: Iterable[LiveJob]) -> None:
        self.wanted = wanted
        #: Leaf, then request, to the keys of the jobs with it, sorted; None until asked for.
        self._by_request: dict[str, dict[Amounts, list[JobKey]]] | None = None
        self._requests: dict[str, tuple[JobKey, Amounts]] = {}
        self.leaves: dict[str, list[Entry]] = {}
        self.keys: dict[str, JobKey] = {}
        #: No job of the leaf has ever held more GPUs (in thousandths) than this.
        self.most_held: dict[str, float] = {}
        for job in jobs:
            if wanted(job):
                key = self.keys[job.id] = job_key(job)
                entries = self.leaves.get(job.queue.name)
                if entries is None:
                    entries = self.leaves[job.queue.name] = []
                entries.append((key, job))
                self._note(job)
        for entries in self.leaves.values():
            entries.sort(key=_key)

    def _note(self, job: LiveJob) -> None:
        held_tasks = held_with_promises(job)
        if held_tasks > self.most_held.get(job.queue.name, 0):
            self.most_held[job.queue.name] = held_tasks

    def refresh(self, job: LiveJob) -> None:
        self._note(job)
        old = self.keys.get(job.id)
        new = job_key(job) if self.wanted(job) else None
        if self._by_request is not None:
            self._sort_by_request(self._by_request, job, new)
        if old == new:
            return
        entries = self.leaves.setdefault(job.queue.name, [])
        if old is not None:
            del entries[bisect_left(entries, old, key=_key)]
            del self.keys[job.id]
        if new is not None:
            insort(entries, (new, job), key=_key)
            self.keys[job.id] = new

    def drop(self, job: LiveJob) -> None:
        """Forget a job that has gone."""
        old = self.keys.pop(job.id, None)
        if self._by_request is not None:
            self._sort_by_request(self._by_request, job, None)
        if old is not None:
            entries = self.leaves[job.queue.name]
            del entries[bisect_left(entries, old, key=_key)]

    def by_request(self, leaf: str) -> dict[Amounts, list[JobKey]]:
        """What the jobs of a leaf request next, each request with the keys of its jobs, sorted."""
        if self._by_request is None:
            self._by_request = {}
            for entries in self.leaves.values():
                for key, job in entries:
                    self._sort_by_request(self._by_request, job, key)
        return self._by_request[leaf]

    def _sort_by_request(
        self, by_request: dict[str, dict[Amounts, list[JobKey]]], job: LiveJob, key: JobKey | None
    ) -> None:
        """Put a job where it belongs; nowhere, if it has no key."""
        old = self._requests.get(job.id)
        new = None if key is None else (key, next_request(job))
        if old == new:
            return
        requests = by_request.setdefault(job.queue.name, {})
        if old is not None:
            keys = requests[old[1]]
            del keys[bisect_left(keys, old[0])]
            del self._requests[job.id]
            if not keys:
                del requests[old[1]]
        if new is not None:
            insort(requests.setdefault(new[1], []), new[0])
            self._requests[job.id] = new


def _key(entry: Entry) -> JobKey:
    return entry[0]


def held_with_promises(job: LiveJob) -> float:
    """GPUs (in thousandths) of all active tasks of a job, pipelined ones too."""
    if len(job.tasks) == 1:
        only = job.tasks[0]
        return only.charge[2] if st.ACTIVE[only.status] and only.charge is not None else 0
    return sum(task.charge[2] for task in job.tasks if st.ACTIVE[task.status] and task.charge is not None)


def has_pending(job: LiveJob) -> bool:
    return job.pending > 0


def could_start(job: LiveJob) -> bool:
    return job.pending > 0 and is_ready(job.root)


def may_be_victim(job: LiveJob) -> bool:
    if len(job.pod_sets) == 1:
        return job.preemptible and job.pod_sets[0].active > 0
    return job.preemptible and any(pod_set.active for pod_set in job.pod_sets)
