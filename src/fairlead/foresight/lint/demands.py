"""The pods that a workload or a job needs at the same time, and whether they fit into the empty cluster.

Whether they fit is asked of the scheduler: every node ready and free, no quotas, and of the pods only their sizes.
"""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from fairlead.foresight.lint.material import LintCluster, LintMaterial, LintWorkload
from fairlead.foresight.pod_tasks import render_request
from fairlead.model.priority import PRIORITIES, is_preemptible
from fairlead.model.spec.fields import value_or
from fairlead.scheduling import Decisions, Job, JobPodSet, Queue, QueueShares, Reason, Share, Snapshot, Task, decide

_UNLIMITED = Share(limit=-1, quota=-1)
_FREE = QueueShares(gpu=_UNLIMITED, cpu=_UNLIMITED, memory=_UNLIMITED)
_ENDED = ("Succeeded", "Failed", "Deleted")
_ALONE = "alone"


class PodDemand(msgspec.Struct, frozen=True, kw_only=True):
    file: str
    subject: str
    path: str
    #: The queue's name, or the name of the project; empty if it is not known.
    queue: str
    #: Empty for any.
    pools: tuple[str, ...]
    preemptible: bool
    #: All pods that run at the same time, each with how many of them there are.
    pods: tuple[tuple[int, Task], ...]
    #: What is placed together; one for each gang, and one for each other set of pods.
    gangs: tuple[Job, ...]


def find_demands(material: LintMaterial) -> Iterator[PodDemand]:
    """Of every workload, and of every job of the cluster."""
    yield from (_demand_of_workload(each) for each in material.workloads if each.pod_sets)
    cluster = material.cluster
    for number, job in enumerate(cluster.jobs if cluster else ()):
        if cluster and not job.deleting:
            yield _demand_of_job(cluster.file, number, job)


def _demand_of_job(file: str, number: int, job: Job) -> PodDemand:
    tasks = [task for task in job.tasks if task.status not in _ENDED]
    return PodDemand(
        file=file,
        subject=f"job {job.name or job.id}",
        path=f"jobs[{number}]",
        queue=job.queue,
        pools=job.node_pools,
        preemptible=job.preemptible,
        pods=tuple((1, task) for task in tasks),
        gangs=(replace(job, tasks=tuple(map(_only_size, tasks)), topology=None),),
    )


def _only_size(task: Task) -> Task:
    return replace(
        task,
        status="Pending",
        node=None,
        nominated_node=None,
        gpu_groups=(),
        devices=(),
        node_selector={},
        node_affinity=(),
        pod_affinity=(),
        pod_anti_affinity=(),
        labels={},
    )


def _demand_of_workload(workload: LintWorkload) -> PodDemand:
    spec = workload.spec
    priority = PRIORITIES[value_or(getattr(spec, "priority_class", None), workload.kind.priority)]
    return PodDemand(
        file=workload.file,
        subject=workload.subject,
        path="spec",
        queue=workload.project,
        pools=tuple(value_or(getattr(spec, "node_pools", None), ())),
        preemptible=is_preemptible(priority, value_or(getattr(spec, "preemptibility", None), None)),
        pods=tuple((each.total, render_request(each.request)) for each in workload.pod_sets),
        gangs=tuple(_gangs(workload)),
    )


def _gangs(workload: LintWorkload) -> Iterator[Job]:
    """One group of each gang, and one pod of each set without a gang."""
    for gang in dict.fromkeys(each.gang for each in workload.pod_sets):
        sets = [each for each in workload.pod_sets if each.gang == gang]
        for members in [sets] if gang else [[each] for each in sets]:
            yield Job(
                id=workload.name,
                queue=_ALONE,
                pod_sets=tuple(
                    JobPodSet(name=each.role, min_available=each.min_count if gang else 1) for each in members
                ),
                tasks=tuple(
                    replace(render_request(each.request), id=f"{each.role}-{number}", pod_set=each.role)
                    for each in members
                    for number in range(each.count if gang else 1)
                ),
            )


class EmptyCluster:
    """Answers whether gangs start in the cluster with nothing else in it; equal questions are asked once."""

    def __init__(self, cluster: LintCluster) -> None:
        self._nodes = [replace(node, ready=True, unschedulable=False, taints=()) for node in cluster.nodes or ()]
        self._pools = tuple(cluster.pools)
        self._answers: dict[bytes, Reason | None] = {}

    def refusal(self, gang: Job, pools: Sequence[str]) -> Reason | None:
        """Why the gang does not start; None if it does."""
        tasks = tuple(replace(task, id=str(number), name="", created=0) for number, task in enumerate(gang.tasks))
        job = Job(
            id=_ALONE,
            queue=_ALONE,
            tasks=tasks,
            min_available=gang.min_available,
            min_sub_group=gang.min_sub_group,
            groups=gang.groups,
            pod_sets=gang.pod_sets,
            node_pools=tuple(pools) or self._pools,
        )
        key = msgspec.json.encode(job)
        if key not in self._answers:
            self._answers[key] = self._ask(job)
        return self._answers[key]

    def _ask(self, job: Job) -> Reason | None:
        queues = tuple(Queue(name=_ALONE, node_pool=pool, resources=_FREE) for pool in job.node_pools)
        decisions: Decisions = decide(Snapshot(now=0, nodes=tuple(self._nodes), queues=queues, jobs=(job,)))
        return decisions.pending[0].reason if decisions.pending and not decisions.binds else None
