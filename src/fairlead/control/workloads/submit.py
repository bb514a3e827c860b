"""Submit a workload: check it, and write it with its event.

Called by the API for every dialect. The loop learns of it from the store.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from fairlead.admission.admit import Admitted, requested_dependencies
from fairlead.control import access
from fairlead.control.assets import caller_environments
from fairlead.control.assets.claims import build_claims
from fairlead.control.audit import audit_line, subject_of
from fairlead.control.context import Context
from fairlead.control.decide.placement.equivalence import Equivalent, Newcomer, pend_like, scheduling_key
from fairlead.control.machine_accounts import account_of
from fairlead.control.references.dependencies import find_unmet
from fairlead.control.references.names import resolve_names, waiting_condition
from fairlead.control.workloads.admission import admit_for_project, refuse_forbidden
from fairlead.control.workloads.templates import apply_named_template
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind
from fairlead.model.dialect import Dialect
from fairlead.model.errors import ComplianceIssue, Conflict, FairleadError, Invalid, TooMuch, Unavailable
from fairlead.model.records.caller_environment import CallerEnvironment
from fairlead.model.records.event import Event
from fairlead.model.records.organization import Project
from fairlead.model.records.people import Caller
from fairlead.model.records.phase import DesiredPhase, Phase
from fairlead.model.records.workload import Condition, Workload
from fairlead.model.spec.canonical import drop_null_choices
from fairlead.model.submission import Submission
from fairlead.store.base import Change, Comparison, Put, Query, Where
from fairlead.store.collections import CLAIMS, WORKLOADS

_SUFFIX_TRIES = 8


class _Prepared(NamedTuple):
    """A submission that was accepted, with all that its record is made from."""

    kind: Kind
    project: Project
    #: With the spec to run: the one that was sent, with its template and the project's policy.
    submission: Submission
    admitted: Admitted
    #: Names that do not exist yet; the workload waits for them.
    missing: tuple[str, ...]
    environment: CallerEnvironment | None


async def submit(
    context: Context, caller: Caller, submission: Submission, request_id: str = "", *, is_dry_run: bool = False
) -> Workload:
    """The workload is committed on return, unless it is a dry run. Raises Invalid, TooMuch or Unavailable."""
    if context.stopping:
        raise Unavailable("The server is stopping; send the request again in a moment")
    prepared = await _prepare(context, caller, submission)
    project, environment = prepared.project, prepared.environment
    for _ in range(_SUFFIX_TRIES):
        workload = _build_record(context, caller, prepared)
        claims = await build_claims(context, caller, project, workload, prepared.submission.spec)
        if is_dry_run:
            await _refuse_taken_name(context, workload)
            return workload
        equivalent = _find_equivalent(context, prepared, workload)
        if equivalent is not None:
            workload = pend_like(workload, equivalent)
        writes = [Put(CLAIMS, claim) for claim in claims]
        writes += [caller_environments.claimed(environment, workload)] if environment is not None else []
        try:
            await _commit(context, Newcomer(workload, equivalent), _creation(workload, caller, request_id, writes))
        except Conflict as error:
            if "live_name" in error.columns and not submission.use_given_name_as_prefix:
                break
            continue
        return workload
    raise _name_taken(submission.name, project.name, submission.dialect)


async def _prepare(context: Context, caller: Caller, submission: Submission) -> _Prepared:
    """Check access, template, policy, privileges and names; writes nothing."""
    kind = KINDS[submission.kind]
    access.check(caller, f"{kind.rest}:create", submission.project_id)
    project = find_project(context, submission)
    if context.open_workloads.get(project.id, 0) >= context.settings.max_open_workloads:
        raise TooMuch(
            f"Project {project.name} has {context.settings.max_open_workloads} open workloads, the maximum", 30
        )
    submission = await apply_named_template(context, kind, submission)
    admitted = await admit_for_project(context, kind, submission)
    submission = msgspec.structs.replace(submission, spec=admitted.spec)
    refuse_forbidden(context, kind, submission, project.cluster_id)
    missing = await resolve_names(context, caller.name, submission)
    missing += await find_unmet(context, project, requested_dependencies(kind, submission.spec))
    environment = await caller_environments.claim(context, caller, submission.caller_environment, project.cluster_id)
    return _Prepared(kind, project, submission, admitted, missing, environment)


def _build_record(context: Context, caller: Caller, prepared: _Prepared) -> Workload:
    workload = prepared.admitted.record(
        new_record(context, caller, prepared.kind, prepared.project, prepared.submission)
    )
    conditions = (*workload.conditions, *prepared.admitted.conditions)
    if not prepared.missing and len(conditions) == len(workload.conditions):
        return workload
    if prepared.missing:
        conditions += (waiting_condition(prepared.missing, context.clock()),)
    return msgspec.structs.replace(workload, conditions=conditions, waits_for=prepared.missing)


def _find_equivalent(context: Context, prepared: _Prepared, workload: Workload) -> Equivalent | None:
    """A workload like it that the loop left pending, if nothing has changed since."""
    if not prepared.submission.is_active or prepared.missing:
        return None
    equivalents = context.for_cluster(prepared.project.cluster_id).pending_equivalents
    return equivalents.get(scheduling_key(workload)) if equivalents else None


async def _commit(context: Context, newcomer: Newcomer, change: Change) -> None:
    """Commit it, and hand the record to the loop of this server, which would otherwise read it at once."""
    workload = newcomer.workload
    context = context.for_cluster(workload.cluster_id)
    if not context.has_local_loop:
        await context.store.commit(change)
        return
    context.just_recorded[workload.id] = newcomer
    try:
        await context.store.commit(change)
    except BaseException:
        context.just_recorded.pop(workload.id, None)
        raise


def find_project(context: Context, submission: Submission) -> Project:
    """The project that the request names; raises Invalid for unknown ids."""
    issues = []
    if submission.cluster_id not in context.directory.clusters and not submission.dialect.is_lenient:
        known = ", ".join(sorted(context.directory.clusters))
        issues.append(ComplianceIssue("clusterId", f"there is no cluster {submission.cluster_id}; known are {known}"))
    project = context.directory.projects.get(submission.project_id)
    if project is None:
        known = ", ".join(f"{p.id} ({p.name})" for p in list(context.directory.projects.values())[:10])
        issues.append(ComplianceIssue("projectId", f"there is no project {submission.project_id}; known are {known}"))
    elif not issues and not submission.dialect.is_lenient and submission.cluster_id != project.cluster_id:
        details = f"is {submission.cluster_id}, but project {project.name} belongs to cluster {project.cluster_id}"
        issues.append(ComplianceIssue("clusterId", details))
    elif project.deleted_at is not None:
        issues.append(ComplianceIssue("projectId", f"project {project.name} is being deleted"))
    if project is None or issues:
        raise Invalid(issues=tuple(issues))
    return project


def _stored_spec(kind: Kind, submission: Submission) -> msgspec.Raw:
    """The spec as it was sent, except nulls that a strict client could not read back."""
    raw = msgspec.json.encode(submission.spec)
    if b":null" in raw:
        raw = msgspec.json.encode(drop_null_choices(kind.spec, msgspec.json.decode(raw)))
    return msgspec.Raw(raw)


def new_record(context: Context, caller: Caller, kind: Kind, project: Project, submission: Submission) -> Workload:
    now = context.clock()
    name = submission.name
    if submission.use_given_name_as_prefix:
        name = f"{name}-{context.new_suffix()}"
    return Workload(
        id=submission.id or context.new_id(),
        version=1,
        kind=kind.key,
        name=name,
        requested_name=submission.name,
        project_id=project.id,
        project_name=project.name,
        department_id=project.department_id,
        department_name=project.department_name,
        cluster_id=project.cluster_id,
        created_by=caller.name,
        created_at=now,
        spec=_stored_spec(kind, submission),
        dialect=submission.dialect,
        manifest=submission.manifest,
        other_specs=submission.other_specs,
        machine_user=account_of(context, context.directory.users.get(caller.id)),
        caller_environment=submission.caller_environment,
        applied=submission.applied,
        desired_phase=DesiredPhase.RUNNING if submission.is_active else DesiredPhase.STOPPED,
        phase_updated_at=now,
        updated_at=now,
        conditions=tuple(
            Condition(type="ReadDifferently", status="True", reason=field, message=done, last_transition_time=now)
            for field, done in _remarks(context, submission)
        ),
    )


def _remarks(context: Context, submission: Submission) -> list[tuple[str, str]]:
    """Contradictions that were resolved instead of refused, for the older dialect."""
    remarks = list(submission.remarks)
    if submission.cluster_id not in context.directory.clusters:
        remarks.append(("clusterId", f"there is no cluster {submission.cluster_id}; that of the project is used"))
    return remarks


def _creation(workload: Workload, caller: Caller, request_id: str, more: Sequence[Put]) -> Change:
    return Change(
        writes=(Put(WORKLOADS, workload), *more),
        events=tuple(
            Event(
                at=workload.created_at,
                subject=WORKLOADS.name,
                subject_id=workload.id,
                project_id=workload.project_id,
                reason=phase.value,
                message=message,
                phase=phase.value,
                blocker=str((workload.blocked_by or {}).get("code", "")) if phase is not Phase.CREATING else "",
            )
            for phase, message in dict.fromkeys(
                ((Phase.CREATING, f"Submitted by {caller.name}"), (workload.phase, workload.phase_message))
            )
            if message
        ),
        audit=(audit_line(workload.created_at, caller, "create", subject_of(workload), request_id),),
    )


async def _refuse_taken_name(context: Context, workload: Workload) -> None:
    """Raise Invalid if the name is taken, for a dry run."""
    where = (
        Where("project_id", Comparison.EQUAL, workload.project_id),
        Where("live_name", Comparison.EQUAL, workload.name),
    )
    if await context.store.count(Query(collection=WORKLOADS, where=where)):
        raise _name_taken(workload.name, workload.project_name, workload.dialect)


def _name_taken(name: str, project: str, dialect: Dialect) -> FairleadError:
    """The error for a taken name, with advice for the dialect."""
    if dialect is Dialect.MANIFEST:
        # The contract has this answer for manifests only.
        return Conflict(f"A workload named {name} already exists in project {project}", ("live_name",))
    advice = "choose another name" + (" or send useGivenNameAsPrefix" if dialect.has_name_prefixes else "")
    return Invalid(
        issues=(ComplianceIssue("name", f"a workload named {name} already exists in project {project}; {advice}"),)
    )
