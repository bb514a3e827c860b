"""Rules on the cluster: quotas, node pools, gangs and topologies. They hold only for what is known of the cluster."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

from fairlead.foresight.lint.demands import EmptyCluster, PodDemand, find_demands
from fairlead.foresight.lint.material import LintCluster, LintFinding, LintMaterial, LintQueue
from fairlead.foresight.messages import plural
from fairlead.foresight.pod_tasks import requested_topology
from fairlead.foresight.workloads import gpus_of
from fairlead.model.pods.podset import PodSet
from fairlead.scheduling import (
    Job,
    Queue,
    QueueShares,
    Share,
    Snapshot,
    SnapshotNode,
    SubGroup,
    Task,
    TopologyConstraint,
    decide,
    format_reason,
)
from fairlead.scheduling.messages import format_amount

#: How amounts of each resource are written.
_UNITS = {"gpu": "GPUs", "cpu": "CPU cores", "memory": "GB memory"}


def find_quota_above_pool(material: LintMaterial) -> Iterator[LintFinding]:
    """A quota of more than all nodes of the pool have together."""
    cluster = material.cluster
    if cluster is None or cluster.nodes is None:
        return
    for each in cluster.queues:
        nodes = [node for node in cluster.nodes if node.node_pool == each.queue.node_pool]
        for resource in _UNITS:
            quota, total = _share(each.queue.resources, resource).quota, _total(nodes, resource)
            if quota > total:
                has, asks = _amount(total, resource), _amount(quota, resource)
                yield LintFinding(
                    rule="quota-exceeds-pool",
                    level="warning",
                    file=cluster.file,
                    subject=each.subject,
                    path=f"{each.path}.{resource}.{each.quota_member}",
                    message=f"The quota of {asks} exceeds the node pool, which has {has}.",
                    counter_example=f"Non-preemptible work of {asks} is within the quota and can never start on the "
                    f"{plural(len(nodes), 'node')} of the pool.",
                )


def _amount(value: float, resource: str) -> str:
    return "1 GPU" if (value, resource) == (1, "gpu") else f"{format_amount(value, resource)} {_UNITS[resource]}"


def _share(resources: QueueShares, resource: str) -> Share:
    share: Share = getattr(resources, resource)
    return share


def _total(nodes: Iterable[SnapshotNode], resource: str) -> float:
    """MIG instances count as devices, so that no quota is called too large that is not."""
    if resource == "gpu":
        return sum(node.gpu + sum(node.mig.values()) for node in nodes)
    return sum(node.cpu_milli if resource == "cpu" else node.memory_bytes for node in nodes)


def find_unusable_pool(material: LintMaterial) -> Iterator[LintFinding]:
    """A node pool, or its GPUs, that the limits of every project keep it from."""
    cluster = material.cluster
    for pool, path in cluster.pools.items() if cluster else ():
        if cluster is None:
            continue
        queues = [each.queue for each in cluster.queues if each.queue.node_pool == pool]
        parents = {queue.parent for queue in queues}
        leaves = [queue for queue in queues if queue.name not in parents and (queue.parent or not parents - {None})]
        nodes = [node for node in cluster.nodes or () if node.node_pool == pool]
        has_gpus = cluster.nodes is None or any(node.gpu or node.mig for node in nodes)
        for gpus, what in ((0, "the node pool"), (1, "the GPUs of the node pool")):
            if gpus <= has_gpus and not _may_anybody_start(queues, leaves, pool, gpus):
                request = "1 GPU" if gpus else "no GPU"
                cause = "the limits of the projects or their departments are 0" if leaves else "it has no project"
                whose = f" of {plural(len(leaves), 'project')}" if leaves else ""
                yield LintFinding(
                    rule="unusable-pool",
                    level="warning",
                    file=cluster.file,
                    subject=f"node pool {pool}",
                    path=path,
                    message=f"Nobody may use {what} {pool}.",
                    counter_example=f"No pod with {request}{whose} can start there: {cause}.",
                )
                break


def _may_anybody_start(queues: Sequence[Queue], leaves: Sequence[Queue], pool: str, gpus: int) -> bool:
    """Whether the scheduler places a small pod of at least one project on an empty node."""
    node = SnapshotNode(name="empty", node_pool=pool, gpu=1, cpu_milli=1_000_000, memory_bytes=1 << 40)
    jobs = tuple(
        Job(
            id=leaf.name,
            queue=leaf.name,
            node_pools=(pool,),
            tasks=(Task(id=leaf.name, gpu=gpus, cpu_milli=1, memory_bytes=1),),
        )
        for leaf in leaves
    )
    return bool(decide(Snapshot(now=0, nodes=(node,), queues=tuple(queues), jobs=jobs)).binds)


def find_too_large_gang(material: LintMaterial) -> Iterator[LintFinding]:
    """A gang, or a pod, that does not start even in the empty cluster."""
    if material.cluster is None or not material.cluster.nodes:
        return
    empty = EmptyCluster(material.cluster)
    for demand in find_demands(material):
        for gang in demand.gangs:
            reason = empty.refusal(gang, demand.pools)
            if reason is not None:
                pods = plural(len(gang.tasks), "pod")
                yield LintFinding(
                    rule="gang-exceeds-cluster",
                    level="error",
                    file=demand.file,
                    subject=demand.subject,
                    path=demand.path,
                    message=f"It can never start: the cluster has no room for its {pods}, even when it is empty.",
                    counter_example=f"With all nodes free: {format_reason(reason)}",
                )
                break


def find_non_preemptible_over_quota(material: LintMaterial) -> Iterator[LintFinding]:
    """Non-preemptible work that asks for more than the quota of its project or department, in each of its pools."""
    if material.cluster is None:
        return
    queues = {(each.queue.name, each.queue.node_pool): each for each in material.cluster.queues}
    for demand in find_demands(material):
        if demand.preemptible:
            continue
        requested = _asked(demand)
        names = {demand.queue, *_names_of_project(material.cluster, demand.queue)}
        own = [each for (name, pool), each in queues.items() if name in names and pool in (demand.pools or (pool,))]
        over = [_over_quota(queues, each, requested) for each in own]
        if over and all(over):
            yield LintFinding(
                rule="non-preemptible-exceeds-quota",
                level="error",
                file=demand.file,
                subject=demand.subject,
                path=demand.path,
                message="It is not preemptible and asks for more than its quota, so not all of it can start.",
                counter_example=f"In the empty cluster it waits: {over[0]}.",
            )


def _names_of_project(cluster: LintCluster, project: str) -> set[str]:
    """The queues that are called like a project: departments are no leaves and may have the same name."""
    parents = {each.queue.parent for each in cluster.queues}
    return {
        each.queue.name
        for each in cluster.queues
        if project and each.queue.display_name == project and each.queue.name not in parents
    }


def _asked(demand: PodDemand) -> dict[str, float]:
    return {
        "gpu": sum(count * gpus_of(task) for count, task in demand.pods),
        "cpu": float(sum(count * task.cpu_milli for count, task in demand.pods)),
        "memory": float(sum(count * task.memory_bytes for count, task in demand.pods)),
    }


def _over_quota(queues: dict[tuple[str, str], LintQueue], own: LintQueue, requested: dict[str, float]) -> str:
    """The first quota of the queue or of one above it that is too small, in words."""
    each: LintQueue | None = own
    while each is not None:
        for resource in _UNITS:
            quota = _share(each.queue.resources, resource).quota
            if 0 <= quota < requested[resource]:
                return (
                    f"it asks for {_amount(requested[resource], resource)}, "
                    f"the quota of {each.subject} is {_amount(quota, resource)}"
                )
        each = queues.get((each.queue.parent or "", each.queue.node_pool))
    return ""


def find_unknown_level(material: LintMaterial) -> Iterator[LintFinding]:
    """A topology level that no node has as a label, or that its topology does not have."""
    cluster = material.cluster
    if cluster is None or not cluster.nodes:
        return
    labels = {label for node in cluster.nodes for label in node.labels}
    for number, topology in enumerate(cluster.topologies or ()):
        for place, level in enumerate(topology.levels):
            if level not in labels:
                path = f"topologies[{number}].levels[{place}]"
                yield _unknown_level(cluster, cluster.file, f"topology {topology.name}", path, _no_label(level, labels))
    for number, job in enumerate(cluster.jobs):
        for path, constraint in _constraints(job, f"jobs[{number}]"):
            for wrong in _wrong_levels(cluster, constraint):
                yield _unknown_level(cluster, cluster.file, f"job {job.name or job.id}", path, wrong)
    for workload in material.workloads:
        for podset in workload.pod_sets:
            for path, wrong in _wrong_in_set(cluster, podset, labels):
                yield _unknown_level(cluster, workload.file, workload.subject, path, wrong)


def _unknown_level(cluster: LintCluster, file: str, subject: str, path: str, wrong: str) -> LintFinding:
    nodes = cluster.nodes or ()
    return LintFinding(
        rule="unknown-topology-level",
        level="error",
        file=file,
        subject=subject,
        path=path,
        message=wrong,
        counter_example=f"{nodes[0].name} is in no domain of that level, and so are all {plural(len(nodes), 'node')}.",
    )


def _no_label(level: str, labels: Iterable[str]) -> str:
    near = get_close_matches(level, sorted(labels), 1, 0.6)
    return f"No node has the label {level} of this topology level" + (f"; did you mean {near[0]}?" if near else ".")


def _constraints(job: Job | SubGroup, path: str) -> Iterator[tuple[str, TopologyConstraint]]:
    """The constraints of a job, its subgroups and its pod sets."""
    if job.topology is not None:
        yield f"{path}.topology", job.topology
    for number, each in enumerate(job.pod_sets):
        if each.topology is not None:
            yield f"{path}.podSets[{number}].topology", each.topology
    for number, group in enumerate(job.groups):
        yield from _constraints(group, f"{path}.groups[{number}]")


def _wrong_levels(cluster: LintCluster, constraint: TopologyConstraint) -> Iterator[str]:
    """That its levels are labels of nodes is checked at the topology."""
    levels = next((each.levels for each in cluster.topologies or () if each.name == constraint.topology), None)
    if levels is None:
        yield f"There is no topology {constraint.topology}."
        return
    for level in (constraint.required, constraint.preferred):
        if level is not None and level not in levels:
            yield f"The topology {constraint.topology} has no level {level}; its levels are {', '.join(levels)}."


def _wrong_in_set(cluster: LintCluster, podset: PodSet, labels: set[str]) -> Iterator[tuple[str, str]]:
    spec = f"spec.{podset.member}" if podset.member else "spec"
    fields = podset.container.fields
    if fields.pod_affinity is not None and fields.pod_affinity.key and fields.pod_affinity.key not in labels:
        yield f"{spec}.podAffinity.key", _no_label(fields.pod_affinity.key, labels)
    constraint = requested_topology(fields)
    if constraint is not None and cluster.topologies is not None:
        yield from ((f"{spec}.annotations", wrong) for wrong in _wrong_levels(cluster, constraint))
