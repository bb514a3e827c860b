"""Metrics of projects and departments: quotas and allocations, now by groups and over time.

Called by the API. Units are those of quotas over REST: GPU devices, millicores, megabytes. Unlimited quotas are not
counted. Present quotas are used for earlier times too, because their history is not stored.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.organization.inventory import OwnerUsage, load_usage, visible_departments
from fairlead.control.telemetry.metrics import Measurement, Span
from fairlead.control.telemetry.summaries import Group, Sums
from fairlead.model.clock import Millis
from fairlead.model.records.organization import Department, PoolQuota, Project
from fairlead.model.records.people import Caller
from fairlead.model.records.workload import Pod
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import PODS

_MEGABYTE = 1000 * 1000
_MAX_PODS = 10_000


class OwnerQuestion(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    group_by: tuple[str, ...] = ()
    cluster_id: str = ""
    #: By id for projects, by name for departments, as in the interface.
    node_pool: str = ""
    department_id: str = ""


_QUOTAS: Mapping[str, Callable[[PoolQuota], float | None]] = {
    "GPU_QUOTA": lambda quota: quota.gpu.deserved,
    "CPU_QUOTA": lambda quota: quota.cpu.deserved,
    "MEMORY_QUOTA": lambda quota: None if quota.memory.deserved is None else quota.memory.deserved / _MEGABYTE,
}
_ALLOCATED: Mapping[str, Callable[[OwnerUsage], float]] = {
    "GPU_ALLOCATION": lambda usage: usage.gpu,
    "CPU_ALLOCATION": lambda usage: usage.cpu_milli,
    "MEMORY_ALLOCATION": lambda usage: usage.memory_bytes / _MEGABYTE,
    "GPU_ALLOCATION_NON_PREEMPTIBLE": lambda usage: usage.fixed_gpu,
    "CPU_ALLOCATION_NON_PREEMPTIBLE": lambda usage: usage.fixed_cpu_milli,
    "MEMORY_ALLOCATION_NON_PREEMPTIBLE": lambda usage: usage.fixed_memory_bytes / _MEGABYTE,
}


async def count_owners(context: Context, caller: Caller, question: OwnerQuestion, *, of_projects: bool) -> Sums:
    """A metric of now, added up over the projects or departments that the caller may see."""
    access.check(caller, "projects:read" if of_projects else "departments:read")
    usage = await load_usage(context) if question.type in _ALLOCATED else {}
    pools = {pool.id: pool.name for pool in context.directory.node_pools.values()}
    sums: Sums = {}
    for owner in _owners(context, caller, of_projects=of_projects):
        if not _is_selected(owner, question):
            continue
        key = owner.id if isinstance(owner, Project) else f"/{owner.id}"
        for id, name in pools.items():
            if question.node_pool and question.node_pool not in (id, name):
                continue
            value = _value(question.type, owner, name, usage.get((key, name), OwnerUsage()))
            groups = tuple(_group(word, owner, id, name) for word in question.group_by)
            sums[groups] = sums.get(groups, 0.0) + (value or 0.0)
    return sums


def _owners(context: Context, caller: Caller, *, of_projects: bool) -> Iterable[Department]:
    if not of_projects:
        return visible_departments(context, caller).values()
    seen = access.visible_projects(caller, "projects:read")
    return [one for id, one in context.directory.projects.items() if seen is None or id in seen]


def _is_selected(owner: Department, question: OwnerQuestion) -> bool:
    department = owner.department_id if isinstance(owner, Project) else owner.id
    return question.department_id in ("", department) and question.cluster_id in ("", owner.cluster_id)


def _value(type: str, owner: Department, pool: str, usage: OwnerUsage) -> float | None:
    if type in _ALLOCATED:
        return _ALLOCATED[type](usage)
    granted = next((quota for quota in owner.resources if quota.node_pool_name == pool), None)
    return None if granted is None else _QUOTAS[type](granted)


def _group(word: str, owner: Department, pool_id: str, pool: str) -> Group:
    if word == "NodepoolId":
        return word, pool_id, pool
    if word == "ParentId" and isinstance(owner, Project):
        return word, owner.department_id, owner.department_name
    return word, owner.cluster_id, ""


#: By metric over time: the quota, or the allocation of one pod.
_OVER_TIME_QUOTAS = {
    "GPU_QUOTA": "GPU_QUOTA",
    "CPU_QUOTA_MILLICORES": "CPU_QUOTA",
    "CPU_MEMORY_QUOTA_MB": "MEMORY_QUOTA",
}
_OVER_TIME_ALLOCATED: Mapping[str, Callable[[Pod], float]] = {
    "GPU_ALLOCATION": lambda pod: len(pod.gpu_devices) * pod.gpu_thousandths / 1000,
    "CPU_ALLOCATION_MILLICORES": lambda pod: float(pod.cpu_milli),
    "CPU_MEMORY_ALLOCATION_MB": lambda pod: pod.memory_bytes / _MEGABYTE,
}


async def load_owner_pods(context: Context, owner: Department, span: Span, pool: str) -> list[Pod]:
    """The pods of a project, or of all projects of a department, that existed within the span."""
    projects = context.directory.projects.values()
    ids = [owner.id] if isinstance(owner, Project) else [one.id for one in projects if one.department_id == owner.id]
    where = (Where("project_id", Comparison.ONE_OF, ids), Where("created_at", Comparison.AT_MOST, span.end))
    query = Query(collection=PODS, where=where, order=(("created_at", True),), limit=_MAX_PODS)
    pods: list[Pod] = await context.store.find(query) if ids else []
    return [
        pod
        for pod in pods
        if (pod.completed_at is None or pod.completed_at >= span.start) and pool in ("", pod.node_pool)
    ]


def measure_owner(
    owner: Department, pods: Sequence[Pod], types: Iterable[str], times: Sequence[Millis], pool: str
) -> list[Measurement]:
    measurements = []
    for type in types:
        if figure := _OVER_TIME_ALLOCATED.get(type):
            sums = ((at, sum(figure(pod) for pod in pods if pod.exists_at(at))) for at in times)
            measurements.append(Measurement(type, tuple(sums)))
        elif type in _OVER_TIME_QUOTAS:
            granted = [quota for quota in owner.resources if pool in ("", quota.node_pool_name)]
            parts = [_QUOTAS[_OVER_TIME_QUOTAS[type]](quota) for quota in granted]
            known = [part for part in parts if part is not None]
            measurements.append(Measurement(type, tuple((at, sum(known)) for at in times) if known else ()))
        else:
            measurements.append(Measurement(type, is_known=False))
    return measurements
