"""Deletes departments and projects: their workloads first; when nothing is left, the record and what is in its scope.

Until then the record stays and is marked as deleted: a pod that is still stopping holds its GPU, and the scheduler must
know its owner. The API marks the record; the loop calls `remove_emptied` after each turn, so interruptions do no harm.
"""

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.organization.inventory import check_department
from fairlead.control.organization.scoped_records import scoped_record_steps
from fairlead.control.records import AuditedRequest, RecordChange, check_id, record_steps, retry_on_conflict
from fairlead.control.workloads.lifecycle import delete_by_itself
from fairlead.model.clock import Millis
from fairlead.model.errors import Conflict, NotFound
from fairlead.model.records.assets import project_scope_key
from fairlead.model.records.organization import Department, Project
from fairlead.model.records.people import Caller
from fairlead.model.records.workload import Workload
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import DEPARTMENTS, PROJECTS, WORKLOADS

_SYSTEM = Caller("system", "", is_administrator=True)
_BATCH = 200


async def delete_project(context: Context, caller: Caller, id: str, request_id: str = "") -> bool:
    """Delete a project with all its workloads; returns whether it is already gone."""
    access.check(caller, "projects:delete", id)

    async def attempt() -> Project:
        before: Project | None = await context.store.get(PROJECTS, check_id(id, "project"))
        if before is None:
            raise NotFound(f"There is no project with the id {id[:60]!r}")
        if before.deleted_at is None:
            step = _marking(before, caller, context.clock())
            await record_steps(context, AuditedRequest(caller, "delete", request_id), [step], None)
        return before

    await retry_on_conflict(attempt)
    await _end_workloads(context, "project_id", id)
    await remove_emptied(context)
    return id not in context.directory.projects


async def delete_department(context: Context, caller: Caller, id: str, request_id: str = "") -> bool:
    """Delete a department with its projects and their workloads; returns whether it is already gone."""
    check_department(context, caller, "departments:delete", id)

    async def attempt() -> None:
        before: Department | None = await context.store.get(DEPARTMENTS, check_id(id, "department"))
        if before is None:
            raise NotFound(f"There is no department with the id {id[:60]!r}")
        of_it = Where("department_id", Comparison.EQUAL, id)
        projects: list[Project] = await context.store.find(Query(collection=PROJECTS, where=(of_it,)))
        owners = [before, *projects]
        steps = [_marking(owner, caller, context.clock()) for owner in owners if owner.deleted_at is None]
        if steps:
            await record_steps(context, AuditedRequest(caller, "delete", request_id), steps, None)

    await retry_on_conflict(attempt)
    await _end_workloads(context, "department_id", id)
    await remove_emptied(context)
    return id not in context.directory.departments


def _marking(owner: Department, caller: Caller, now: Millis) -> RecordChange:
    is_project = isinstance(owner, Project)
    after: Department = msgspec.structs.replace(
        owner, version=owner.version + 1, deleted_at=now, updated_at=now, updated_by=caller.name
    )
    what = "Project" if is_project else "Department"
    message = f"{what} {owner.name} was deleted by {caller.name}; its workloads are stopped first"
    return RecordChange(PROJECTS if is_project else DEPARTMENTS, owner.id, after, "Deleting", message)


async def _end_workloads(context: Context, column: str, id: str) -> None:
    """Delete every workload of a project or department, including finished ones."""
    while True:
        where = (Where(column, Comparison.EQUAL, id), Where("deleted_at", Comparison.IS_NULL, True))
        workloads: list[Workload] = await context.store.find(Query(collection=WORKLOADS, where=where, limit=_BATCH))
        for workload in workloads:
            message = f"Project {workload.project_name} is being deleted"
            await delete_by_itself(context, workload, "Delete", message)
        if len(workloads) < _BATCH:
            return


async def remove_emptied(context: Context) -> None:
    """Remove the deleted projects and departments of which nothing is left."""
    directory = context.directory
    for project in [one for one in directory.projects.values() if one.deleted_at is not None]:
        await _end_workloads(context, "project_id", project.id)
        where = (Where("project_id", Comparison.EQUAL, project.id), Where("is_active", Comparison.EQUAL, 1))
        if await context.store.count(Query(collection=WORKLOADS, where=where)) == 0:
            message = f"Project {project.name} was removed"
            await _remove(
                context, RecordChange(PROJECTS, project.id, None, "Deleted", message), project_scope_key(project.id)
            )
    for department in [one for one in directory.departments.values() if one.deleted_at is not None]:
        if not any(project.department_id == department.id for project in directory.projects.values()):
            message = f"Department {department.name} was removed"
            removal = RecordChange(DEPARTMENTS, department.id, None, "Deleted", message)
            await _remove(context, removal, f"department/{department.id}")


async def _remove(context: Context, step: RecordChange, scope_key: str) -> None:
    """Remove the record, and with it everything that only its scope could use."""
    others = await scoped_record_steps(context, {scope_key}, step.message)
    try:
        await record_steps(context, AuditedRequest(_SYSTEM, "delete"), [step, *others], None)
    except Conflict:
        # The loop and a request may find it emptied at the same time; one of them is enough.
        await context.directory.refresh([(step.collection.name, step.id)])
