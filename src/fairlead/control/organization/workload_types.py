"""Workload types that an administrator adds: kinds of Kubernetes objects that users submit as manifests.

Called by the API. There are few, and they belong to the cluster, so its record holds them. A workload that is read from
a manifest gets the category and priority of its type if the request has none.
"""

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.records import AuditedRequest, change_cluster, load_cluster, retry_on_conflict
from fairlead.model.errors import Conflict, NotFound
from fairlead.model.records.organization import Cluster, WorkloadType
from fairlead.model.records.people import Caller


class WorkloadTypeInput(msgspec.Struct, frozen=True, kw_only=True):
    """Name and group are those of a new type; members that are None stay as they are."""

    name: str = ""
    group: str = ""
    category: str | None = None
    priority: str | None = None
    resource_interfaces: tuple[dict[str, object], ...] | None = None


def find_type(context: Context, group: str, name: str) -> WorkloadType | None:
    """The type of that kind of object, if an administrator added one."""
    known = context.directory.cluster.workload_types
    return next((each for each in known if (each.group, each.name) == (group, name)), None)


async def create_type(context: Context, caller: Caller, input: WorkloadTypeInput, request_id: str = "") -> WorkloadType:
    access.check(caller, "workload-types:create")

    async def attempt() -> WorkloadType:
        cluster = await load_cluster(context)
        if any((each.group, each.name) == (input.group, input.name) for each in cluster.workload_types):
            raise Conflict(f"A workload type {input.group}/{input.name} already exists", columns=("name",))
        now = context.clock()
        workload_type = WorkloadType(
            id=context.new_id(),
            name=input.name,
            group=input.group,
            category=input.category or "",
            priority=input.priority or "",
            resource_interfaces=input.resource_interfaces or (),
            created_at=now,
            created_by=caller.name,
            updated_at=now,
            updated_by=caller.name,
        )
        message = f"Workload type {workload_type.group}/{workload_type.name} was created by {caller.name}"
        request, types = AuditedRequest(caller, "create", request_id), (*cluster.workload_types, workload_type)
        await change_cluster(context, request, cluster, message, workload_types=types)
        return workload_type

    return await retry_on_conflict(attempt)


async def update_type(
    context: Context, caller: Caller, id: str, input: WorkloadTypeInput, request_id: str = ""
) -> WorkloadType:
    access.check(caller, "workload-types:update")

    async def attempt() -> WorkloadType:
        cluster = await load_cluster(context)
        before = _find(cluster, id)
        given = {
            "category": input.category,
            "priority": input.priority,
            "resource_interfaces": input.resource_interfaces,
        }
        after: WorkloadType = msgspec.structs.replace(
            before,
            updated_at=context.clock(),
            updated_by=caller.name,
            **{name: value for name, value in given.items() if value is not None},
        )
        types = tuple(after if each.id == after.id else each for each in cluster.workload_types)
        message = f"Workload type {after.group}/{after.name} was changed by {caller.name}"
        request = AuditedRequest(caller, "update", request_id)
        await change_cluster(context, request, cluster, message, workload_types=types)
        return after

    return await retry_on_conflict(attempt)


async def delete_type(context: Context, caller: Caller, id: str, request_id: str = "") -> None:
    access.check(caller, "workload-types:delete")

    async def attempt() -> None:
        cluster = await load_cluster(context)
        deleted = _find(cluster, id)
        types = tuple(each for each in cluster.workload_types if each.id != deleted.id)
        message = f"Workload type {deleted.group}/{deleted.name} was deleted by {caller.name}"
        request = AuditedRequest(caller, "delete", request_id)
        await change_cluster(context, request, cluster, message, workload_types=types)

    await retry_on_conflict(attempt)


def _find(cluster: Cluster, id: str) -> WorkloadType:
    for each in cluster.workload_types:
        if each.id == id.lower():
            return each
    raise NotFound(f"There is no workload type with the id {id[:60]!r}")
