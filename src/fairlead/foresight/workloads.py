"""The workloads of a snapshot: which jobs belong together, what they are called, and who may see their names.

A workload is all jobs of one name in one queue; a job without a name is a workload of its own. The server renders each
pod of a training as a job, so a workload may have many.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from fairlead.scheduling.model.snapshot import Job, Plain, Snapshot, Task

#: The answer about a workload of which the scheduler has nothing to place.
NOTHING_WAITS = "None of its pods is waiting to be placed."

#: Shown instead of names that the caller may not see.
HIDDEN_POD = "another project's pod"
#: A task in these states is on a node and uses it.
HOLDING = frozenset({"Allocated", "Binding", "Bound", "Running", "Releasing", "StuckInReleasing"})


class UnknownName(ValueError):
    """A question names something that the snapshot does not have."""


class UnknownWorkload(UnknownName):
    """It names a workload that does not exist, or that the caller may not see."""


class WorkloadRef(Plain, frozen=True, kw_only=True):
    """A workload in an answer."""

    workload: str
    #: The name of its queue as users know it.
    project: str
    #: Of how many of its pods the answer speaks.
    pods: int = 1
    gpus: float = 0


class Concerned(Plain, frozen=True, kw_only=True):
    """Workloads that an answer concerns: those that the caller may see by name, the others as a number."""

    workloads: tuple[WorkloadRef, ...] = ()
    hidden: int = 0

    @property
    def count(self) -> int:
        return len(self.workloads) + self.hidden


def key_of(job: Job) -> str:
    """What the jobs of one workload have in common. A deleted workload's pods may still stop beside its successor's."""
    if not job.name:
        return job.id
    return f"{job.queue}/{job.name}/deleting" if job.deleting else f"{job.queue}/{job.name}"


def is_waiting(job: Job) -> bool:
    return any(task.status == "Pending" for task in job.tasks)


def gpus_of(task: Task) -> float:
    """GPUs that a task requests; by memory they count as whole devices."""
    if task.gpu_portion:
        return task.gpu_portion * task.gpu_devices
    return float(task.gpu or (task.gpu_devices if task.gpu_memory_mib else 0))


class SnapshotWorkloads:
    """An index of a snapshot's workloads. `visible`: queues whose workloads may be named; None for all."""

    def __init__(self, snapshot: Snapshot, visible: frozenset[str] | None = None) -> None:
        self.snapshot = snapshot
        self.visible = visible
        self.jobs: dict[str, list[Job]] = {}
        for job in snapshot.jobs:
            self.jobs.setdefault(key_of(job), []).append(job)

    @cached_property
    def key_by_job(self) -> dict[str, str]:
        return {job.id: key for key, jobs in self.jobs.items() for job in jobs}

    @cached_property
    def projects(self) -> dict[str, str]:
        """Queues to the names that users know."""
        return {queue.name: queue.display_name or queue.name for queue in self.snapshot.queues}

    @cached_property
    def task_names(self) -> dict[str, tuple[str, str]]:
        """Tasks to their queue and name."""
        return {task.id: (job.queue, task.name or task.id) for job in self.snapshot.jobs for task in job.tasks}

    def find(self, name: str) -> str:
        """The key of the workload with this key, job id or name; `PROJECT/NAME` tells equal names apart."""
        if name in self.jobs:
            return name
        if name in self.key_by_job:
            return self.key_by_job[name]
        matching = [
            key
            for key, jobs in self.jobs.items()
            if self._is_called(jobs[0], name) and not jobs[0].deleting and self.is_visible(key)
        ]
        if len(matching) == 1:
            return matching[0]
        if matching:
            choices = ", ".join(self.shown_key(key) for key in sorted(matching)[:5])
            raise UnknownName(f"{len(matching)} workloads are called '{name}'; name one of {choices}.")
        raise UnknownWorkload(f"The snapshot has no workload '{name}'.")

    def _is_called(self, job: Job, name: str) -> bool:
        return name in (job.name, f"{self.projects.get(job.queue)}/{job.name}")

    def name(self, key: str) -> str:
        return self.jobs[key][0].name or key

    def project_of(self, key: str) -> str:
        queue = self.jobs[key][0].queue
        return self.projects.get(queue, queue)

    def shown_key(self, key: str) -> str:
        """`PROJECT/NAME`, which `find` understands."""
        job = self.jobs[key][0]
        return f"{self.projects.get(job.queue, job.queue)}/{job.name}" if job.name else job.id

    def shown_queue(self, name: str) -> str:
        """The name that users know, unless several queues have it."""
        shown = self.projects[name]
        return shown if list(self.projects.values()).count(shown) == 1 else name

    def is_visible(self, key: str) -> bool:
        return self.visible is None or self.jobs[key][0].queue in self.visible

    def refer(self, tasks: Iterable[tuple[str, str]]) -> Concerned:
        """Workloads by pairs of job and task ids; hidden ones are counted."""
        pods: dict[str, set[str]] = {}
        for job, task in tasks:
            pods.setdefault(self.key_by_job[job], set()).add(task)
        shown = [self._ref(key, pods[key]) for key in sorted(pods) if self.is_visible(key)]
        return Concerned(workloads=tuple(shown), hidden=len(pods) - len(shown))

    def _ref(self, key: str, pods: set[str]) -> WorkloadRef:
        job = self.jobs[key][0]
        gpus = sum(gpus_of(task) for each in self.jobs[key] for task in each.tasks if task.id in pods)
        return WorkloadRef(
            workload=self.name(key),
            project=self.projects.get(job.queue, job.queue),
            pods=len(pods),
            gpus=round(gpus, 3),
        )

    def waiting_jobs(self, key: str) -> frozenset[str]:
        return frozenset(job.id for job in self.jobs[key] if is_waiting(job))

    def holders(self) -> list[str]:
        """Workloads that hold something on a node and are not leaving, by key."""
        return sorted(
            key
            for key, jobs in self.jobs.items()
            if not jobs[0].deleting
            and any(t.status in HOLDING and t.status != "Releasing" for j in jobs for t in j.tasks)
        )
