"""Departments and projects: create and change. Each is one transaction; the loop learns of it from the store.

Called by the API. `removal.py` deletes them.
"""

import re
from typing import Any

import msgspec

from fairlead.admission.project_rules import pool_issues, rule_issues
from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.organization.inputs import OwnerInput, apply_resource_inputs, owner_members
from fairlead.control.organization.inventory import OwnerUsage, check_department, load_usage
from fairlead.control.records import (
    AuditedRequest,
    RecordChange,
    allocate_id,
    check_id,
    record_steps,
    retry_on_conflict,
)
from fairlead.model.errors import ComplianceIssue, Conflict, NotFound, refuse_malformed
from fairlead.model.records.organization import NAMESPACE_PREFIX, RANKS, Department, PoolQuota, Project, namespace_of
from fairlead.model.records.people import Caller
from fairlead.store.collections import DEPARTMENTS, PROJECTS

_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?\Z")
_LONGEST = 63
#: The prefix of namespaces that Kubernetes reserves.
_RESERVED = "kube-"
_DEFAULT = "default"


def name_issues(name: str, longest: int = _LONGEST, path: str = "name") -> list[ComplianceIssue]:
    """Why a department, project or node pool cannot have this name."""
    if not name:
        return [ComplianceIssue(path, "is empty; it must be given")]
    issues = []
    if len(name) > longest:
        issues.append(ComplianceIssue(path, f"has {len(name)} characters; at most {longest} are allowed"))
    if not _NAME.match(name):
        rule = "lower-case letters, digits and hyphens are allowed; start with a letter, do not end with a hyphen"
        issues.append(ComplianceIssue(path, f"is '{name[:80]}'; {rule}"))
    return issues


async def create_department(context: Context, caller: Caller, input: OwnerInput, request_id: str = "") -> Department:
    access.check(caller, "departments:create")

    async def attempt() -> Department:
        issues = name_issues(input.name) + _cluster_issues(context, input)
        _refuse_name_elsewhere(context, input.name, input.cluster_id, "department")
        department = Department(
            id="",
            version=1,
            name=input.name,
            **_creation_members(context, caller, input),
            **_resolve_settings(context, input, None, None, issues),
        )
        refuse_malformed(issues)
        id, numbers = await allocate_id(context, DEPARTMENTS, context.directory.departments)
        department = msgspec.structs.replace(department, id=id)
        step = RecordChange(
            DEPARTMENTS, id, department, "Created", f"Department {input.name} was created by {caller.name}"
        )
        try:
            await record_steps(context, AuditedRequest(caller, "create", request_id), [step], numbers)
        except Conflict as error:
            raise _name_conflict(error, f"A department named {input.name} already exists") from None
        return department

    return await retry_on_conflict(attempt)


async def create_project(context: Context, caller: Caller, input: OwnerInput, request_id: str = "") -> Project:
    access.check_anywhere(caller, "projects:create")

    async def attempt() -> Project:
        longest = _LONGEST if input.requested_namespace else _LONGEST - len(NAMESPACE_PREFIX)
        issues = name_issues(input.name, longest) + _cluster_issues(context, input)
        department = _parent(context, input, issues)
        access.check_at(caller, "projects:create", f"department/{department.id}" if department else "")
        issues += _namespace_issues(context, input)
        settings = _resolve_settings(context, input, None, department, issues)
        refuse_malformed(issues)
        _refuse_name_elsewhere(context, input.name, input.cluster_id, "project")
        id, numbers = await allocate_id(context, PROJECTS, context.directory.projects)
        project = Project(
            id=id,
            version=1,
            name=input.name,
            department_id=department.id if department else "",
            department_name=department.name if department else "",
            requested_namespace=input.requested_namespace,
            enforce_scheduler=input.enforce_scheduler is not False,
            **_creation_members(context, caller, input),
            **settings,
        )
        message = f"Project {input.name} was created by {caller.name} in department {project.department_name}"
        step = RecordChange(PROJECTS, id, project, "Created", message)
        try:
            await record_steps(context, AuditedRequest(caller, "create", request_id), [step], numbers)
        except Conflict as error:
            raise _name_conflict(error, f"A project named {input.name} already exists") from None
        return project

    return await retry_on_conflict(attempt)


async def update_department(
    context: Context, caller: Caller, id: str, input: OwnerInput, request_id: str = ""
) -> Department:
    """Change the given members; a quota below what non-preemptible workloads hold is refused."""
    check_department(context, caller, "departments:update", id)

    async def attempt() -> Department:
        before: Department | None = await context.store.get(DEPARTMENTS, check_id(id, "department"))
        if before is None or before.deleted_at is not None:
            raise NotFound(f"There is no department with the id {id[:60]!r}")
        issues: list[ComplianceIssue] = []
        settings = _resolve_settings(context, input, before, None, issues)
        issues += await _use_issues(context, f"/{id}", settings["resources"], input)
        refuse_malformed(issues)
        after: Department = msgspec.structs.replace(
            before, version=before.version + 1, **owner_members(input, caller.name, context.clock()), **settings
        )
        step = RecordChange(DEPARTMENTS, id, after, "Updated", f"Department {before.name} was changed by {caller.name}")
        await record_steps(context, AuditedRequest(caller, "update", request_id), [step], None)
        return after

    return await retry_on_conflict(attempt)


async def update_project(context: Context, caller: Caller, id: str, input: OwnerInput, request_id: str = "") -> Project:
    """Change the given members; a quota below what non-preemptible workloads hold is refused."""
    access.check(caller, "projects:update", id)

    async def attempt() -> Project:
        before: Project | None = await context.store.get(PROJECTS, check_id(id, "project"))
        if before is None or before.deleted_at is not None:
            raise NotFound(f"There is no project with the id {id[:60]!r}")
        issues: list[ComplianceIssue] = []
        department = context.directory.departments.get(before.department_id)
        settings = _resolve_settings(context, input, before, department, issues)
        issues += await _use_issues(context, id, settings["resources"], input)
        refuse_malformed(issues)
        members = owner_members(input, caller.name, context.clock()) | settings
        if input.enforce_scheduler is not msgspec.UNSET:
            members["enforce_scheduler"] = input.enforce_scheduler
        after: Project = msgspec.structs.replace(before, version=before.version + 1, **members)
        step = RecordChange(PROJECTS, id, after, "Updated", f"Project {before.name} was changed by {caller.name}")
        await record_steps(context, AuditedRequest(caller, "update", request_id), [step], None)
        return after

    return await retry_on_conflict(attempt)


def _creation_members(context: Context, caller: Caller, input: OwnerInput) -> dict[str, Any]:
    now = context.clock()
    return {
        "cluster_id": input.cluster_id.lower(),
        "created_at": now,
        "created_by": caller.name,
        **owner_members(input, caller.name, now),
    }


def _resolve_settings(
    context: Context,
    input: OwnerInput,
    before: Department | None,
    department: Department | None,
    issues: list[ComplianceIssue],
) -> dict[str, Any]:
    """The quotas with the input applied; appends to `issues` what is wrong with them and with the settings."""
    cluster_id = before.cluster_id if before else input.cluster_id.lower()
    if cluster_id not in context.directory.clusters:
        # An unknown one is among the issues already.
        cluster_id = context.directory.cluster_id
    pools = {id: pool for id, pool in context.directory.node_pools.items() if pool.cluster_id == cluster_id}
    members = {"resources": apply_resource_inputs(input, before, pools, tuple(RANKS), issues)}
    if input.default_node_pools:
        issues += pool_issues(input.default_node_pools, [pool.name for pool in pools.values()], "defaultNodePools")
    if input.scheduling_rules:
        above = department.scheduling_rules if department else {}
        issues += rule_issues(input.scheduling_rules, above, "schedulingRules")
    return members


def _cluster_issues(context: Context, input: OwnerInput) -> list[ComplianceIssue]:
    known = context.directory.clusters
    if input.cluster_id.lower() in known:
        return []
    return [ComplianceIssue("clusterId", f"there is no cluster {input.cluster_id}; known are {', '.join(known)}")]


def _parent(context: Context, input: OwnerInput, issues: list[ComplianceIssue]) -> Department | None:
    """The department of the new project: the named one, or the one called default, or the oldest."""
    given = input.cluster_id.lower() if input.cluster_id.lower() in context.directory.clusters else ""
    inside = [one for one in context.directory.departments.values() if given in ("", one.cluster_id)]
    present = {one.id: one for one in inside if one.deleted_at is None}
    if input.parent_id:
        department = present.get(input.parent_id)
    else:
        ordered = sorted(present.values(), key=lambda one: (one.name != _DEFAULT, int(one.id)))
        department = ordered[0] if ordered else None
    if department is None:
        known = ", ".join(f"{one.id} ({one.name})" for one in present.values()) or "none; create one first"
        issues.append(
            ComplianceIssue("parentId", f"there is no department {input.parent_id or 'yet'}; known are {known}")
        )
    return department


def _namespace_issues(context: Context, input: OwnerInput) -> list[ComplianceIssue]:
    wanted = input.requested_namespace or namespace_of(input.name)
    issues = name_issues(wanted, path="requestedNamespace") if input.requested_namespace else []
    if input.requested_namespace.startswith(_RESERVED):
        issues.append(
            ComplianceIssue("requestedNamespace", f"names that begin with {_RESERVED} are reserved by Kubernetes")
        )
    for project in context.directory.projects.values():
        if project.namespace == wanted and project.name != input.name:
            issues.append(ComplianceIssue("requestedNamespace", f"{wanted} is the namespace of project {project.name}"))
    return issues


async def _use_issues(
    context: Context, owner: str, resources: tuple[PoolQuota, ...], input: OwnerInput
) -> list[ComplianceIssue]:
    """Quotas below what non-preemptible workloads hold."""
    if input.resources is msgspec.UNSET:
        return []
    usages = await load_usage(context)
    issues = []
    for quota in resources:
        usage = usages.get((owner, quota.node_pool_name), OwnerUsage())
        for name, limit, used in (
            ("gpu", quota.gpu.deserved, usage.fixed_gpu),
            ("cpu", quota.cpu.deserved, float(usage.fixed_cpu_milli)),
            ("memory", quota.memory.deserved, float(usage.fixed_memory_bytes)),
        ):
            if limit is not None and limit < used:
                details = (
                    f"of {limit:g} in node pool {quota.node_pool_name} is below the {used:g} that non-preemptible "
                    "workloads hold there; stop some of them first"
                )
                issues.append(ComplianceIssue(f"resources.{name}.deserved", details))
    return issues


def _name_conflict(error: Conflict, message: str) -> Conflict:
    """The conflict with a message if the name is taken; a concurrent change as it is."""
    return Conflict(message, error.columns) if "name" in error.columns else error


def _refuse_name_elsewhere(context: Context, name: str, cluster_id: str, what: str) -> None:
    """Names of departments and projects mean one thing in commands, files and metrics, whatever their cluster."""
    owners = context.directory.departments if what == "department" else context.directory.projects
    if any(one.name == name and one.cluster_id != cluster_id.lower() for one in owners.values()):
        raise Conflict(f"A {what} named {name} already exists in another cluster", ("name",))
