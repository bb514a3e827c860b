"""The cluster as `scheduling` wants to see it, made from the records that the loop holds. Pure.

Each pod of a set without gang is a job of its own, as Run:ai groups the pods of a training; the sets of a gang are one
job in each group, with a minimum for each of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from fairlead.control.decide.draft import WorkloadEntry
from fairlead.control.decide.missing_pods import Part, count_missing_pods
from fairlead.model.clock import Millis
from fairlead.model.pods.container_fields import ContainerFields, NodeTerm, PodToleration
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.organization import (
    DEFAULT_NODE_POOL,
    RANKS,
    Department,
    NetworkTopology,
    Node,
    NodePool,
    PoolQuota,
    Project,
    Quota,
)
from fairlead.model.records.phase import PodPhase
from fairlead.model.records.workload import Pod, Workload
from fairlead.scheduling.model import snapshot as facts

_STATUS: dict[PodPhase, facts.TaskStatus] = {
    PodPhase.STARTING: "Bound",
    PodPhase.RUNNING: "Running",
    PodPhase.STOPPING: "Releasing",
}
_MIG = "nvidia.com/mig-"
_TOPOLOGY = "kai.scheduler/topology"


def pool_of(node: Node, pools: Iterable[NodePool]) -> str:
    """The pool whose label the node carries; the default pool catches the rest."""
    for pool in pools:
        if pool.label_key and node.labels.get(pool.label_key) == pool.label_value:
            return pool.name
    return DEFAULT_NODE_POOL


def render_node(node: Node, pools: Iterable[NodePool]) -> facts.SnapshotNode:
    memory = min((device.memory_mib for device in node.gpus), default=0)
    return facts.SnapshotNode(
        name=node.name,
        cpu_milli=node.cpu_milli,
        memory_bytes=node.memory_bytes,
        pods=node.pods,
        gpu=len(node.gpus),
        gpu_memory_mib=memory,
        mig={name.removeprefix(_MIG): count for name, count in node.extended.items() if name.startswith(_MIG)},
        mig_strategy="mixed" if any(name.startswith(_MIG) for name in node.extended) else "none",
        extended={name: count for name, count in node.extended.items() if not name.startswith(_MIG)},
        labels={"kubernetes.io/hostname": node.name} | node.labels,
        taints=tuple(facts.NodeTaint(key=t.key, value=t.value, effect=_effect(t.effect)) for t in node.taints),
        ready=node.ready,
        unschedulable=node.cordoned,
        node_pool=pool_of(node, pools),
    )


def _effect(effect: str) -> Any:
    return effect


def _share(quota: Quota) -> facts.Share:
    return facts.Share(
        quota=-1 if quota.deserved is None else quota.deserved,
        limit=-1 if quota.limit is None else quota.limit,
        over_quota_weight=quota.over_quota_weight,
    )


def queue_name(owner: Department) -> str:
    """Projects and departments number their ids apart, so the queue's name says which it is."""
    return f"project-{owner.id}" if isinstance(owner, Project) else f"department-{owner.id}"


def render_queues(owners: Iterable[Department], pools: Iterable[NodePool]) -> list[facts.Queue]:
    """One queue per owner and pool; a pool that an owner says nothing of has no quota there, but borrows."""
    names = [pool.name for pool in pools]
    return [_queue(owner, name) for owner in owners for name in names]


def _queue(owner: Department, pool: str) -> facts.Queue:
    granted = next((r for r in owner.resources if r.node_pool_name == pool), None)
    quota = granted or PoolQuota(node_pool_id="", node_pool_name=pool)
    return facts.Queue(
        name=queue_name(owner),
        node_pool=pool,
        display_name=owner.name,
        parent=f"department-{owner.department_id}" if isinstance(owner, Project) else None,
        priority=RANKS.get(quota.priority, RANKS["MediumLow"]),
        created=owner.created_at / 1000,
        resources=facts.QueueShares(gpu=_share(quota.gpu), cpu=_share(quota.cpu), memory=_share(quota.memory)),
    )


#: Begins the place of a task that is only shown, so that what leads it does not start without room for it.
HELD = "held"


def render_jobs(entry: WorkloadEntry, namespace: str, now: Millis) -> list[facts.Job]:
    """The jobs that a workload's pods make up: those that hold a place, and those that want one."""
    wanted = count_missing_pods(entry, now)
    jobs: list[facts.Job] = []
    gangs: dict[str, list[PodSet]] = {}
    for podset in entry.podsets:
        if podset.gang:
            gangs.setdefault(podset.gang, []).append(podset)
            continue
        placed = [pod for pod in entry.pods if pod.role == podset.role and not pod.has_ended]
        tasks = [_placed(pod, podset) for pod in placed]
        for group in range(podset.groups):
            number = wanted.get((podset.role, group), 0)
            tasks += [_waiting(entry.workload, podset, group, str(slot)) for slot in range(number)]
        jobs += [_job(entry, placed, task.id, (task,), namespace) for task in tasks]
    for gang, podsets in gangs.items():
        jobs += _gang_jobs(entry, gang, podsets, wanted, namespace)
    return jobs


def _gang_jobs(
    entry: WorkloadEntry, gang: str, podsets: Sequence[PodSet], wanted: Mapping[Part, int], namespace: str
) -> list[facts.Job]:
    """One job per group that has pods or wants some."""
    pods: dict[Part, list[Pod]] = {}
    for pod in entry.pods:
        if not pod.has_ended:
            pods.setdefault((pod.role, pod.group), []).append(pod)
    roles = {podset.role for podset in podsets}
    jobs = []
    for group in sorted({group for role, group in (*pods, *wanted) if role in roles}):
        members: list[tuple[PodSet, tuple[facts.Task, ...], int]] = []
        for podset in podsets:
            placed = pods.get((podset.role, group), [])
            tasks = [_placed(pod, podset) for pod in placed]
            number = wanted.get((podset.role, group), 0)
            tasks += [_waiting(entry.workload, podset, group, str(slot)) for slot in range(number)]
            if podset.starts_after and not placed and (podset.starts_after, group) in wanted:
                tasks = [_waiting(entry.workload, podset, group, f"{HELD}{slot}") for slot in range(podset.count)]
            staying = sum(task.status != "Releasing" for task in tasks)
            members.append((podset, tuple(tasks), min(podset.min_count, staying)))
        every = [pod for podset in podsets for pod in pods.get((podset.role, group), [])]
        jobs.append(_gang_job(entry, every, f"{entry.workload.id}/{gang}/{group}", members, namespace))
    return jobs


def _gang_job(
    entry: WorkloadEntry,
    placed: Sequence[Pod],
    id: str,
    members: Sequence[tuple[PodSet, tuple[facts.Task, ...], int]],
    namespace: str,
) -> facts.Job:
    tasks = tuple(task for _, found, _ in members for task in found)
    job = _job(entry, placed, id, tasks, namespace)
    sets = tuple(facts.JobPodSet(name=podset.role, min_available=least) for podset, found, least in members if found)
    asked = next((found for podset, _, _ in members if (found := _asked_topology(podset.container.fields))), None)
    return msgspec.structs.replace(job, pod_sets=sets, topology=asked)


def _job(
    entry: WorkloadEntry, placed: Iterable[Pod], id: str, tasks: tuple[facts.Task, ...], namespace: str
) -> facts.Job:
    workload = entry.workload
    starts = [pod.started_at for pod in placed if pod.started_at is not None]
    return facts.Job(
        id=id,
        queue=f"project-{workload.project_id}",
        name=workload.name,
        namespace=namespace,
        priority=workload.priority,
        preemptible=workload.preemptible,
        created=workload.created_at / 1000,
        last_start=min(starts) / 1000 if starts else None,
        tasks=tasks,
        node_pools=workload.node_pools or (DEFAULT_NODE_POOL,),
        deleting=workload.deleted_at is not None,
    )


def preferred_levels(
    pools: Iterable[NodePool], topologies: Iterable[NetworkTopology]
) -> dict[str, facts.TopologyConstraint]:
    """What gangs in a node pool with a network topology prefer: to be together at its lowest level."""
    known = {topology.id: topology for topology in topologies}
    return {
        pool.name: facts.TopologyConstraint(
            topology=known[pool.network_topology_id].name, preferred=known[pool.network_topology_id].levels[-1]
        )
        for pool in pools
        if pool.network_topology_id in known
    }


def constrain(job: facts.Job, near: Mapping[str, facts.TopologyConstraint]) -> facts.Job:
    """A gang with what the first of its node pools that has a topology prefers; what was asked for itself wins."""
    if job.topology is not None or len(job.tasks) < 2:
        return job
    found = next((near[pool] for pool in job.node_pools if pool in near), None)
    constrained: facts.Job = msgspec.structs.replace(job, topology=found)
    return constrained


def _asked_topology(fields: ContainerFields) -> facts.TopologyConstraint | None:
    """The constraint that a workload's annotations name, as KAI reads them."""
    given = {annotation.name: annotation.value or "" for annotation in fields.annotations}
    topology = given.get(_TOPOLOGY)
    required, preferred = given.get(f"{_TOPOLOGY}-required-placement"), given.get(f"{_TOPOLOGY}-preferred-placement")
    if not topology or not (required or preferred):
        return None
    return facts.TopologyConstraint(topology=topology, required=required or None, preferred=preferred or None)


def task_id(workload: Workload, podset: PodSet, group: int, place: str) -> str:
    return f"{workload.id}/{podset.role}/{group}/{place}"


def _waiting(workload: Workload, podset: PodSet, group: int, place: str) -> facts.Task:
    return facts.Task(id=task_id(workload, podset, group, place), name=workload.name, **_request(podset))


def _placed(pod: Pod, podset: PodSet) -> facts.Task:
    return facts.Task(
        id=pod.id,
        name=pod.name,
        status=_STATUS[pod.phase],
        node=pod.node,
        gpu_groups=pod.gpu_groups,
        devices=pod.gpu_devices,
        **_request(podset),
    )


def _request(podset: PodSet) -> dict[str, Any]:
    """What a task asks for, and where it may go, in the scheduler's words."""
    request, fields = podset.request, podset.container.fields
    members: dict[str, Any] = {
        "cpu_milli": request.cpu_milli,
        "memory_bytes": request.memory_bytes,
        "mig": {n.removeprefix(_MIG): count for n, count in request.extended.items() if n.startswith(_MIG)},
        "extended": {n: count for n, count in request.extended.items() if not n.startswith(_MIG)},
        **_gpu(podset),
    }
    if podset.gang:
        members |= {"pod_set": podset.role, "leader": podset.is_placed_first}
    labels = {label.name: label.value or "" for label in fields.labels}
    members["labels"] = labels
    if fields.node_type:
        members["node_selector"] = {"run.ai/type": fields.node_type}
    if fields.node_affinity_required is not None:
        terms = fields.node_affinity_required.node_selector_terms or ()
        members["node_affinity"] = tuple(_term(term) for term in terms)
    members["tolerations"] = tuple(_toleration(toleration) for toleration in fields.tolerations)
    pod_affinity = fields.pod_affinity
    if pod_affinity is not None and pod_affinity.type == "Required":
        members["pod_affinity"] = (facts.PodTerm(topology_key=pod_affinity.key or "", match_labels=labels),)
    return members


def _gpu(podset: PodSet) -> Mapping[str, Any]:
    request = podset.request
    if request.gpu_devices == 0:
        return {}
    if request.gpu_memory_bytes:
        return {"gpu_memory_mib": request.gpu_memory_bytes >> 20, "gpu_devices": request.gpu_devices}
    if request.gpu_portion < 1000:
        return {"gpu_portion": request.gpu_portion / 1000, "gpu_devices": request.gpu_devices}
    return {"gpu": request.gpu_devices}


def _term(term: NodeTerm) -> tuple[facts.Requirement, ...]:
    return tuple(
        facts.Requirement(key=expression.key, operator=expression.operator, values=expression.values or ())
        for expression in term.match_expressions or ()
    )


def _toleration(toleration: PodToleration) -> facts.TaskToleration:
    return facts.TaskToleration(
        key=toleration.key,
        operator=toleration.operator,
        value=toleration.value or "",
        effect="" if toleration.effect == "Any" else toleration.effect,
    )
