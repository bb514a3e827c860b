"""Departments, projects and node pools as namespaces, KAI queues, priority classes and node labels. Pure."""

from collections.abc import Iterable, Sequence

import msgspec

from fairlead.engines.base import DesiredOrganization
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.resources import (
    NAMESPACE,
    PRIORITY_CLASS,
    QUEUE,
    ROLE_BINDING,
    SHARD,
    Manifest,
)
from fairlead.engines.kubernetes.render.labels import (
    CLUSTER_LABEL,
    DEFAULT_POOL,
    OWNER_RECORD,
    POOL_RECORD,
    PROJECT_BINDING,
    PROJECT_ROLE,
    QUEUE_LABEL,
    RUNAI_QUEUE_LABEL,
    pool_labels,
)
from fairlead.model.priority import PRIORITIES
from fairlead.model.records.organization import RANKS, Department, NodePool, PoolQuota, Project, Quota

_MEGABYTE = 1_000_000
_OWN = {"app.kubernetes.io/managed-by": "fairlead"}


def queue_name(owner: Department, pool: str) -> str:
    """The default pool's queue has the name of its owner; other queues append the name of the pool."""
    name = owner.name if isinstance(owner, Project) else f"department-{owner.name}"
    return name if pool == DEFAULT_POOL else f"{name}-{pool}"


def project_queue(project: str, pools: Sequence[str]) -> str:
    """The queue of a project in the first of these pools."""
    pool = pools[0] if pools else DEFAULT_POOL
    return project if pool == DEFAULT_POOL else f"{project}-{pool}"


def queue_pool(project: str, queue: str) -> str:
    """The node pool to which a queue of the project belongs."""
    return DEFAULT_POOL if queue == project else queue.removeprefix(f"{project}-")


def render_queues(organization: DesiredOrganization, cluster: str) -> list[Manifest]:
    """Queues of departments first: KAI ignores a queue whose parent does not exist."""
    owners = [*organization.departments, *organization.projects]
    parents = {department.id: department for department in organization.departments}
    return [
        _with_records(_queue(owner, pool.name, parents, cluster), owner, pool)
        for owner in owners
        for pool in organization.node_pools
    ]


def _with_records(queue: Manifest, owner: Department, pool: NodePool) -> Manifest:
    records = {OWNER_RECORD: owner, POOL_RECORD: pool}
    annotations = {name: msgspec.json.encode(record).decode() for name, record in records.items()}
    return {**queue, "metadata": {**queue["metadata"], "annotations": annotations}}


def _queue(owner: Department, pool: str, parents: dict[str, Department], cluster: str) -> Manifest:
    granted = next((quota for quota in owner.resources if quota.node_pool_name == pool), None)
    quota = granted or PoolQuota(node_pool_id="", node_pool_name=pool)
    labels = {**_OWN, CLUSTER_LABEL: cluster, **pool_labels(pool)}
    spec: Manifest = {
        "displayName": owner.name,
        "priority": RANKS.get(quota.priority, RANKS["MediumLow"]),
        "resources": {
            "gpu": _share(quota.gpu, 1),
            "cpu": _share(quota.cpu, 1),
            "memory": _share(quota.memory, _MEGABYTE),
        },
    }
    if isinstance(owner, Project):
        labels["run.ai/project-id"] = owner.id
        labels["project"] = owner.name
        if owner.department_id in parents:
            labels["runai/department-name"] = parents[owner.department_id].name
            spec["parentQueue"] = queue_name(parents[owner.department_id], pool)
    else:
        labels |= {"runai/department-id": owner.id, "runai/department-name": owner.name}
    return {
        "apiVersion": QUEUE.api,
        "kind": QUEUE.kind,
        "metadata": {"name": queue_name(owner, pool), "labels": labels},
        "spec": spec,
    }


def _share(quota: Quota, unit: int) -> dict[str, float]:
    """Unlimited is written as -1, because KAI reads a missing limit as zero."""
    return {
        "quota": -1 if quota.deserved is None else quota.deserved / unit,
        "limit": -1 if quota.limit is None else quota.limit / unit,
        "overQuotaWeight": quota.over_quota_weight,
    }


def render_shards(pools: Iterable[NodePool], cluster: str) -> list[Manifest]:
    """A scheduler per node pool, which KAI's operator runs; the default pool has the operator's own."""
    shards = []
    for pool in pools:
        if pool.name == DEFAULT_POOL:
            continue
        spec: Manifest = {
            "partitionLabelValue": pool.name,
            "placementStrategy": {"gpu": pool.placement_gpu, "cpu": pool.placement_cpu},
            # Otherwise a preemption would count as a failure.
            "args": {"update-pod-eviction-condition": "true"},
        }
        if pool.min_guaranteed_runtime_seconds:
            min_runtime = f"{pool.min_guaranteed_runtime_seconds}s"
            spec["minRuntime"] = {"preemptMinRuntime": min_runtime, "reclaimMinRuntime": min_runtime}
        metadata = {"name": pool.name, "labels": {**_OWN, CLUSTER_LABEL: cluster}}
        shards.append({"apiVersion": SHARD.api, "kind": SHARD.kind, "metadata": metadata, "spec": spec})
    return shards


def render_namespaces(projects: Iterable[Project], cluster: str) -> list[Manifest]:
    return [
        {
            "apiVersion": NAMESPACE.api,
            "kind": NAMESPACE.kind,
            "metadata": {
                "name": project.namespace,
                "labels": {
                    **_OWN,
                    CLUSTER_LABEL: cluster,
                    QUEUE_LABEL: project.name,
                    RUNAI_QUEUE_LABEL: project.name,
                    "runai/namespace-version": "v2",
                },
                "annotations": {"runai/enforce-scheduler-name": "true"} if project.enforce_scheduler else {},
            },
        }
        for project in projects
    ]


def render_subject(username: str) -> Manifest:
    """A user of the API server as the subject of a role binding."""
    if username.startswith("system:serviceaccount:"):
        *_, namespace, name = username.split(":")
        return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    return {"kind": "User", "name": username, "apiGroup": "rbac.authorization.k8s.io"}


def render_binding(namespace: str, subject: Manifest) -> Manifest:
    """The rights of the server's account in the namespace of a project."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": PROJECT_ROLE}
    metadata = {"name": PROJECT_BINDING, "namespace": namespace, "labels": _OWN}
    return {
        "apiVersion": ROLE_BINDING.api,
        "kind": ROLE_BINDING.kind,
        "metadata": metadata,
        "roleRef": role,
        "subjects": [subject],
    }


def render_priority_classes() -> list[Manifest]:
    return [
        {
            "apiVersion": PRIORITY_CLASS.api,
            "kind": PRIORITY_CLASS.kind,
            "metadata": {"name": name, "labels": _OWN},
            "value": value,
            "description": "A priority of workloads, compared within one queue.",
        }
        for name, value in PRIORITIES.items()
    ]


def pool_of(node: objects.Node, pools: Iterable[NodePool]) -> str:
    """The pool whose label the node has; empty for the default pool, which has no label."""
    labels = node.metadata.labels
    matching = (pool for pool in pools if pool.label_key and labels.get(pool.label_key) == pool.label_value)
    return next((pool.name for pool in matching), "")


def find_pool_selectors(pools: Iterable[NodePool], names: Sequence[str]) -> tuple[str, ...]:
    """The labels of nodes in the pools of these names, each KEY=VALUE; none if one is the default pool or missing."""
    selectors = {pool.name: f"{pool.label_key}={pool.label_value}" for pool in pools if pool.label_key}
    return tuple(selectors[name] for name in names) if selectors.keys() >= set(names) else ()
