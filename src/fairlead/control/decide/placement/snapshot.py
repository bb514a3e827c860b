"""Renders the cluster for `scheduling` from the records that the loop holds. Pure.

Each pod of a set without a gang is a job of its own, as Run:ai groups the pods of a training. The sets of a gang are
one job per group, with a minimum for each set.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, cast

from msgspec.structs import replace

from fairlead.control.decide.draft import WorkloadEntry
from fairlead.control.decide.placement.missing_pods import Part, count_missing_pods
from fairlead.foresight.pod_tasks import render_request, requested_topology
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
from fairlead.model.records.phase import DesiredPhase, PodPhase
from fairlead.model.records.workload import Pod, Workload
from fairlead.scheduling.model import snapshot as facts

_STATUS: dict[PodPhase, facts.TaskStatus] = {
    PodPhase.STARTING: "Bound",
    PodPhase.RUNNING: "Running",
    PodPhase.STOPPING: "Releasing",
}
_Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
_MIG = "nvidia.com/mig-"
_NODE_TYPE = "run.ai/type"
#: The label by which the scheduler knows the pods of one workload, and how the topology of a label is named.
_OF_WORKLOAD = "fairlead.dev/workload"
_BY_LABEL = "label/"


def pool_of(node: Node, pools: Iterable[NodePool]) -> str:
    """The pool whose label the node has; the default pool has all other nodes."""
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
        taints=tuple(
            facts.NodeTaint(key=taint.key, value=taint.value, effect=cast(_Effect, taint.effect))
            for taint in node.taints
        ),
        ready=node.ready,
        unschedulable=node.cordoned,
        node_pool=pool_of(node, pools),
    )


def _share(quota: Quota) -> facts.Share:
    return facts.Share(
        quota=-1 if quota.deserved is None else quota.deserved,
        limit=-1 if quota.limit is None else quota.limit,
        over_quota_weight=quota.over_quota_weight,
    )


def queue_of(project_id: str) -> str:
    return f"project-{project_id}"


def key_in_snapshot(workload: Workload) -> str:
    """What the jobs of a workload have in common (`foresight.workloads.key_of`)."""
    return f"{queue_of(workload.project_id)}/{workload.name}"


def queue_name(owner: Department) -> str:
    """Ids of projects and departments may be equal, so the queue's name says which it is."""
    return queue_of(owner.id) if isinstance(owner, Project) else f"department-{owner.id}"


def render_queues(owners: Iterable[Department], pools: Iterable[NodePool]) -> list[facts.Queue]:
    """One queue per owner and pool. Without a quota in a pool, an owner can only borrow there."""
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


#: Begins the slot of a task that is only shown to the scheduler, so that its leader does not start without room for it.
HELD = "held"


def render_jobs(entry: WorkloadEntry, namespace: str, now: Millis) -> list[facts.Job]:
    """The jobs of a workload's pods, placed and missing ones."""
    missing = count_missing_pods(entry, now)
    jobs: list[facts.Job] = []
    gangs: dict[str, list[PodSet]] = {}
    for podset in entry.podsets:
        if podset.gang:
            gangs.setdefault(podset.gang, []).append(podset)
            continue
        placed = [pod for pod in entry.pods if pod.role == podset.role and not pod.has_ended]
        template = _render_template(entry, podset)
        tasks = [_placed_task(template, pod) for pod in placed]
        for group in range(podset.groups):
            tasks += _pending_tasks(template, entry.workload, podset, group, missing)
        jobs += [_job(entry, placed, task.id, (task,), namespace) for task in tasks]
    for gang, podsets in gangs.items():
        jobs += _gang_jobs(entry, gang, podsets, missing, namespace)
    return jobs


def _pending_tasks(
    template: facts.Task, workload: Workload, podset: PodSet, group: int, missing: Mapping[Part, int]
) -> list[facts.Task]:
    number = missing.get((podset.role, group), 0)
    return [_pending_task(template, workload, podset, group, str(slot)) for slot in range(number)]


class _GangMember(NamedTuple):
    """A pod set's part of one group of a gang."""

    podset: PodSet
    tasks: tuple[facts.Task, ...]
    min_available: int


def _gang_jobs(
    entry: WorkloadEntry, gang: str, podsets: Sequence[PodSet], missing: Mapping[Part, int], namespace: str
) -> list[facts.Job]:
    """One job per group that has pods or misses some."""
    pods: dict[Part, list[Pod]] = {}
    for pod in entry.pods:
        if not pod.has_ended:
            pods.setdefault((pod.role, pod.group), []).append(pod)
    templates = {podset.role: _render_template(entry, podset) for podset in podsets}
    jobs = []
    for group in sorted({group for role, group in (*pods, *missing) if role in templates}):
        placed = {podset.role: pods.get((podset.role, group), []) for podset in podsets}
        members = [
            _gang_member(templates[podset.role], entry.workload, podset, group, placed[podset.role], missing)
            for podset in podsets
        ]
        of_group = [pod for role in placed.values() for pod in role]
        jobs.append(_gang_job(entry, of_group, f"{entry.workload.id}/{gang}/{group}", members, namespace))
    return jobs


def _gang_member(
    template: facts.Task,
    workload: Workload,
    podset: PodSet,
    group: int,
    placed: Sequence[Pod],
    missing: Mapping[Part, int],
) -> _GangMember:
    tasks = [_placed_task(template, pod) for pod in placed]
    tasks += _pending_tasks(template, workload, podset, group, missing)
    if podset.starts_after and not placed and (podset.starts_after, group) in missing:
        slots = (f"{HELD}{slot}" for slot in range(podset.count))
        tasks = [_pending_task(template, workload, podset, group, slot) for slot in slots]
    staying = sum(task.status != "Releasing" for task in tasks)
    return _GangMember(podset, tuple(tasks), min(podset.min_count, staying))


def _gang_job(
    entry: WorkloadEntry, placed: Sequence[Pod], id: str, members: Sequence[_GangMember], namespace: str
) -> facts.Job:
    tasks = tuple(task for member in members for task in member.tasks)
    job = _job(entry, placed, id, tasks, namespace)
    sets = tuple(
        facts.JobPodSet(name=member.podset.role, min_available=member.min_available)
        for member in members
        if member.tasks
    )
    requested = (requested_topology(member.podset.container.fields) for member in members)
    topology = next(filter(None, requested), None) or _shared_domain([member.podset for member in members])
    return replace(job, pod_sets=sets, topology=topology)


def _shared_domain(podsets: Sequence[PodSet]) -> facts.TopologyConstraint | None:
    """The label of which all pods of a gang must share the value, so that a domain with room for all is looked for."""
    keys = {_required_key(podset) for podset in podsets}
    key = keys.pop() if len(keys) == 1 else ""
    return facts.TopologyConstraint(topology=f"{_BY_LABEL}{key}", required=key) if key else None


def _required_key(podset: PodSet) -> str:
    affinity = podset.container.fields.pod_affinity
    return (affinity.key or "") if affinity is not None and affinity.type == "Required" else ""


def label_topologies(jobs: Iterable[facts.Job]) -> list[facts.Topology]:
    """A topology of one level for each label of which gangs must share the value."""
    names = {job.topology.topology for job in jobs if job.topology is not None}
    keys = sorted(name.removeprefix(_BY_LABEL) for name in names if name.startswith(_BY_LABEL))
    return [facts.Topology(name=f"{_BY_LABEL}{key}", levels=(key,)) for key in keys]


def _job(
    entry: WorkloadEntry, placed: Iterable[Pod], id: str, tasks: tuple[facts.Task, ...], namespace: str
) -> facts.Job:
    workload = entry.workload
    starts = [pod.started_at for pod in placed if pod.started_at is not None]
    return facts.Job(
        id=id,
        queue=queue_of(workload.project_id),
        name=workload.name,
        namespace=namespace,
        priority=workload.priority,
        preemptible=workload.preemptible,
        created=workload.created_at / 1000,
        last_start=min(starts) / 1000 if starts else None,
        tasks=tasks,
        node_pools=workload.node_pools or (DEFAULT_NODE_POOL,),
        deleting=workload.deleted_at is not None or workload.desired_phase is not DesiredPhase.RUNNING,
    )


def preferred_levels(
    pools: Iterable[NodePool], topologies: Iterable[NetworkTopology]
) -> dict[str, facts.TopologyConstraint]:
    """Gangs in a node pool with a network topology prefer to be together at its lowest level."""
    known = {topology.id: topology for topology in topologies}
    return {
        pool.name: facts.TopologyConstraint(
            topology=known[pool.network_topology_id].name, preferred=known[pool.network_topology_id].levels[-1]
        )
        for pool in pools
        if pool.network_topology_id in known
    }


def constrain(job: facts.Job, near: Mapping[str, facts.TopologyConstraint]) -> facts.Job:
    """A gang with the preference of its first node pool that has a topology; the workload's own constraint wins."""
    if job.topology is not None or len(job.tasks) < 2:
        return job
    return replace(job, topology=next((near[pool] for pool in job.node_pools if pool in near), None))


def task_id(workload: Workload, podset: PodSet, group: int, place: str) -> str:
    return f"{workload.id}/{podset.role}/{group}/{place}"


def _pending_task(template: facts.Task, workload: Workload, podset: PodSet, group: int, slot: str) -> facts.Task:
    return replace(template, id=task_id(workload, podset, group, slot), name=workload.name)


def _placed_task(template: facts.Task, pod: Pod) -> facts.Task:
    return replace(
        template,
        id=pod.id,
        name=pod.name,
        status=_STATUS[pod.phase],
        node=pod.node,
        gpu_groups=pod.gpu_groups,
        devices=pod.gpu_devices,
    )


def _render_template(entry: WorkloadEntry, podset: PodSet) -> facts.Task:
    """What every task of a pod set requests, and on which nodes it may run."""
    fields = podset.container.fields
    labels = {label.name: label.value or "" for label in fields.labels}
    if any(each.container.fields.pod_affinity is not None for each in entry.podsets):
        labels[_OF_WORKLOAD] = entry.workload.id
    task = replace(
        render_request(podset.request),
        labels=labels,
        node_selector={_NODE_TYPE: fields.node_type} if fields.node_type else {},
        node_affinity=_node_affinity(fields, entry.workload.node_types),
        tolerations=tuple(map(_toleration, fields.tolerations)),
    )
    affinity = fields.pod_affinity
    if affinity is not None and affinity.key:
        # The workload's own pods, as on a cluster: a pod that is the first of them may go anywhere.
        own = (facts.PodTerm(topology_key=affinity.key, match_labels={_OF_WORKLOAD: entry.workload.id}),)
        is_required = affinity.type == "Required"
        task = replace(task, **{"pod_affinity" if is_required else "preferred_pod_affinity": own})
    if podset.gang:
        task = replace(task, pod_set=podset.role, leader=podset.is_placed_first)
    return task


def _node_affinity(fields: ContainerFields, node_types: tuple[str, ...]) -> tuple[tuple[facts.Requirement, ...], ...]:
    """The terms of the workload. Without a node type of its own, each also asks for one that the project allows."""
    required = fields.node_affinity_required
    asked = required.node_selector_terms or () if required is not None else ()
    # An empty term matches no node.
    terms = tuple(_term(term) for term in asked if term.match_expressions)
    if not node_types or fields.node_type:
        return terms
    typed = facts.Requirement(key=_NODE_TYPE, operator="In", values=node_types)
    return tuple((*term, typed) for term in terms or ((),))


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
