"""Data volumes: the data of a claim, shared read-only with other projects, departments or the whole cluster.

Called by the API. `references/resolve.py` says which ones a workload can use.
"""

import re
from collections.abc import Callable, Iterable

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.filters import FilterField
from fairlead.control.lists import ListRequest, Page, page_of
from fairlead.control.records import AuditedRequest, RecordChange, record_steps, retry_on_conflict
from fairlead.control.references import scopes
from fairlead.control.references.names import recheck_waiting_workloads
from fairlead.control.references.resolve import load_data_volumes
from fairlead.control.references.users import refuse_in_use
from fairlead.model.errors import ComplianceIssue, Conflict, Invalid, NotFound, refuse_malformed
from fairlead.model.records.assets import DataVolume, Reference, Scope, project_scope_key
from fairlead.model.records.organization import Project
from fairlead.model.records.people import Caller
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import CLAIMS, DATA_VOLUMES

_NAME = re.compile(r"[a-z][-a-z0-9]{0,62}\Z")


def volume_fields(context: Context) -> dict[str, FilterField[DataVolume]]:
    def of_project(read: Callable[[Project], str]) -> FilterField[DataVolume]:
        return FilterField(read=lambda volume: _read_project(context, volume.project_id, read))

    return {
        "name": FilterField(read=lambda volume: volume.name),
        "projectId": FilterField(read=lambda volume: volume.project_id),
        "clusterId": of_project(lambda project: project.cluster_id),
        "departmentId": of_project(lambda project: project.department_id),
        "projectName": of_project(lambda project: project.name),
        "createdAt": FilterField("time", read=lambda volume: volume.created_at),
        "createdBy": FilterField(read=lambda volume: volume.created_by),
        "phase": FilterField(constant="Ready"),
    }


VOLUME_FIELD_NAMES = (
    "name",
    "projectId",
    "clusterId",
    "departmentId",
    "projectName",
    "createdAt",
    "createdBy",
    "phase",
)


def _read_project(context: Context, project_id: str, read: Callable[[Project], str]) -> str | None:
    """A member of a project; None if the project was deleted."""
    project = context.directory.projects.get(project_id)
    return None if project is None else read(project)


async def create_volume(context: Context, caller: Caller, input: DataVolume, request_id: str = "") -> DataVolume:
    """`input` is the record without id, scope key and times."""
    project = scopes.load_project(context, caller, "data-volumes:create", input.project_id)
    issues = []
    if not _NAME.match(input.name):
        issues.append(ComplianceIssue("name", f"is '{input.name[:80]}', which does not match ^[a-z][-a-z0-9]{{0,62}}$"))
    where = (
        Where("place", Comparison.EQUAL, project_scope_key(project.id)),
        Where("name", Comparison.EQUAL, input.claim_name),
    )
    if not await context.store.count(Query(collection=CLAIMS, where=where)):
        details = f"project {project.name} has no claim '{input.claim_name[:63]}'"
        issues.append(ComplianceIssue("originPvcName", details))
    if not await is_name_free(context, caller, input.name):
        issues.append(ComplianceIssue("name", f"a data volume named {input.name[:63]} already exists"))
    refuse_malformed(issues)
    now = context.clock()
    volume: DataVolume = msgspec.structs.replace(
        input,
        id=context.new_id(),
        version=1,
        scope_key=project_scope_key(project.id),
        created_at=now,
        created_by=caller.name,
        updated_at=now,
        updated_by=caller.name,
    )
    message = f"Data volume {volume.name} was created by {caller.name} from claim {volume.claim_name}"
    try:
        step = RecordChange(DATA_VOLUMES, volume.id, volume, "Created", message)
        await record_steps(context, AuditedRequest(caller, "create", request_id), [step], None)
    except Conflict as error:
        if not error.columns:
            raise
        raise Invalid(issues=(ComplianceIssue("name", f"a data volume named {input.name} already exists"),)) from None
    await recheck_waiting_workloads(context)
    return volume


async def is_name_free(context: Context, caller: Caller, name: str) -> bool:
    access.check(caller, "data-volumes:read")
    where = (Where("name", Comparison.EQUAL, name),)
    return await context.store.count(Query(collection=DATA_VOLUMES, where=where)) == 0


async def find_volumes(
    context: Context, caller: Caller, request: ListRequest, project_id: str = ""
) -> Page[DataVolume]:
    """The data volumes of the caller's projects, or those that the given project can use."""
    access.check(caller, "data-volumes:read", project_id)
    if project_id:
        volumes = list((await load_data_volumes(context, project_id)).values())
    else:
        mine = access.visible_projects(caller, "data-volumes:read")
        seen = (await _load_visible(context, caller)).values()
        volumes = [volume for volume in seen if mine is None or volume.project_id in mine]
    in_order = msgspec.structs.replace(request, sort_by=request.sort_by or "createdAt")
    return page_of(volumes, in_order, volume_fields(context), lambda volume: volume.name)


async def _load_visible(context: Context, caller: Caller) -> dict[str, DataVolume]:
    allowed = access.visible_projects(caller, "data-volumes:read")
    projects: Iterable[str] = context.directory.projects if allowed is None else allowed
    seen: dict[str, DataVolume] = {}
    for project_id in projects:
        seen |= await load_data_volumes(context, project_id)
    return seen


async def load_volume(context: Context, caller: Caller, id: str, verb: str = "read") -> DataVolume:
    """A data volume that the caller may see; to change it, the caller needs access to its project."""
    access.check(caller, "data-volumes:read")
    volume = (await _load_visible(context, caller)).get(id)
    if volume is None:
        raise NotFound(f"There is no data volume with the id {id[:60]!r}")
    if verb != "read":
        access.check(caller, f"data-volumes:{verb}", volume.project_id)
    return volume


class VolumeInput(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of a data volume."""

    description: str | None = None
    add: tuple[Scope, ...] = ()
    remove: tuple[Scope, ...] = ()


async def update_volume(
    context: Context, caller: Caller, id: str, input: VolumeInput, request_id: str = ""
) -> DataVolume:
    async def attempt() -> DataVolume:
        before = await load_volume(context, caller, id, "update")
        added = [scopes.resolve_scope(context, scope, "add") for scope in input.add]
        removed = set(input.remove)
        shared = dict.fromkeys(scope for scope in (*before.shared, *added) if scope not in removed)
        after: DataVolume = msgspec.structs.replace(
            before,
            version=before.version + 1,
            description=before.description if input.description is None else input.description,
            shared=tuple(shared),
            updated_at=context.clock(),
            updated_by=caller.name,
        )
        message = f"Data volume {before.name} was changed by {caller.name}"
        step = RecordChange(DATA_VOLUMES, id, after, "Updated", message)
        await record_steps(context, AuditedRequest(caller, "update", request_id), [step], None)
        return after

    changed = await retry_on_conflict(attempt)
    await recheck_waiting_workloads(context)
    return changed


async def delete_volume(context: Context, caller: Caller, id: str, request_id: str = "") -> None:
    """Delete it, unless a workload that has not ended mounts it. The claim stays."""
    volume = await load_volume(context, caller, id, "delete")
    await refuse_in_use(context, caller, Reference.DATA_VOLUME, volume)
    step = RecordChange(DATA_VOLUMES, id, None, "Deleted", f"Data volume {volume.name} was deleted by {caller.name}")
    await record_steps(context, AuditedRequest(caller, "delete", request_id), [step], None)
