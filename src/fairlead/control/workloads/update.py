"""Change a running workload: the changes that its kind allows are written into its spec, and the loop reconciles it.

Called by the API. The last request wins, even if the loop has not carried out an earlier one.
"""

from collections.abc import Callable, Mapping

import msgspec

from fairlead.admission.admit import Admitted
from fairlead.control.audit import audit_line, differences, subject_of, without_values
from fairlead.control.context import Context
from fairlead.control.machine_accounts import check_same_account
from fairlead.control.records import AuditedRequest
from fairlead.control.references.names import resolve_names
from fairlead.control.workloads.admission import admit_for_project, refuse_forbidden
from fairlead.control.workloads.lifecycle import load_for_change
from fairlead.formats.custom_resource import changed_members, render_content
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind
from fairlead.model.errors import ComplianceIssue, Conflict, Invalid
from fairlead.model.records.event import Event
from fairlead.model.records.people import Caller
from fairlead.model.records.workload import Workload
from fairlead.model.spec.fields import build, fields_of
from fairlead.model.submission import Submission
from fairlead.store.base import Change, Put
from fairlead.store.collections import WORKLOADS

_TRIES = 20


async def update(
    context: Context, caller: Caller, kind: str, workload_id: str, wanted: Mapping[str, object], request_id: str = ""
) -> Workload:
    """The change is committed on return; equal values change nothing. Raises Invalid or NotFound."""

    def change(workload: Workload, before: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
        after = _merged(before, wanted)
        return after, {"resource_changes": _find_resource_changes(workload, before, after)}

    return await _update(context, caller, (kind, workload_id), wanted, change, request_id)


async def update_from_resource(
    context: Context, caller: Caller, kind: str, workload_id: str, wanted: Mapping[str, object]
) -> Workload:
    """Replace members of the spec by what the workload's custom resource says."""

    def change(workload: Workload, before: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
        after = {**before, **wanted}
        return {name: value for name, value in after.items() if value is not None}, {}

    return await _update(context, caller, (kind, workload_id), wanted, change, "")


class ChangedManifest(msgspec.Struct, frozen=True):
    """A changed manifest, and what was read from it."""

    text: str
    #: The spec of its first pod template.
    spec: Mapping[str, object]
    #: That of the manifest before the change, without what policies and metadata added.
    spec_before: Mapping[str, object]
    #: The admitted specs of the other templates.
    other_specs: tuple[msgspec.Raw, ...]


async def update_from_manifest(
    context: Context, caller: Caller, workload: Workload, new: ChangedManifest, request_id: str = ""
) -> Workload:
    """Replace the spec by that of a changed manifest; raises Invalid for members that cannot change.

    The values that were given besides the manifest stay, unless the spec has others. So does what a policy has added to
    members that cannot change.
    """
    kind = KINDS[workload.kind]
    changeable = _changeable(kind)

    def change(workload: Workload, before: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
        same = {name for name in before if new.spec.get(name) == new.spec_before.get(name)} - changeable
        after = {**{name: before[name] for name in _BESIDES_MANIFEST if name in before}, **new.spec}
        after |= {name: before[name] for name in same}
        changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        fixed = sorted(changed - changeable)
        if fixed:
            detail = f"cannot change in a submitted {kind.title}; delete the workload and submit it again"
            raise Invalid(issues=tuple(ComplianceIssue(f"spec.{name}", detail) for name in fixed))
        return after, {"resource_changes": _find_resource_changes(workload, before, after), **members}

    members: dict[str, object] = {"manifest": new.text, "other_specs": new.other_specs}
    return await _update(context, caller, (workload.kind, workload.id), new.spec, change, request_id)


def _changeable(kind: Kind) -> set[str]:
    """The members of its spec that can change after the submission."""
    return {field.rest for field in fields_of(kind.changes)} if kind.changes else set()


#: Members of a spec that a request with a manifest gives in its metadata.
_BESIDES_MANIFEST = ("priorityClass", "category", "preemptibility")
#: From a workload and its spec to the changed spec, and other members of the record that change with it.
_SpecChange = Callable[[Workload, Mapping[str, object]], tuple[dict[str, object], dict[str, object]]]


def _find_resource_changes(
    workload: Workload, before: Mapping[str, object], after: Mapping[str, object]
) -> tuple[str, ...]:
    """The members of its custom resource that the change is about, with those that are still to be written."""
    if not workload.applied:
        return ()
    kind = KINDS[workload.kind]
    specs = (render_content(kind, dict(spec), workload.name, is_active=True).spec for spec in (before, after))
    return tuple(sorted({*workload.resource_changes, *changed_members(*specs)}))


async def _update(
    context: Context,
    caller: Caller,
    target: tuple[str, str],
    wanted: Mapping[str, object],
    change: _SpecChange,
    request_id: str,
) -> Workload:
    kind, workload_id = target
    for _ in range(_TRIES):
        workload = await load_for_change(context, caller, kind, workload_id, "update")
        check_same_account(caller, workload)
        changed = await _build_changed_record(context, workload, change)
        if changed is workload:
            return workload
        try:
            await context.store.commit(
                _build_commit(context, workload, changed, wanted, AuditedRequest(caller, "update", request_id))
            )
        except Conflict:
            continue
        return changed
    raise Conflict(f"Workload {workload_id} was changed by others at the same time; send the request again")


async def _build_changed_record(context: Context, workload: Workload, change: _SpecChange) -> Workload:
    """The record with the new spec and what follows from it, or the same record if nothing differs."""
    before: dict[str, object] = msgspec.json.decode(workload.spec)
    spec, members = change(workload, before)
    if spec == before and all(getattr(workload, name) == value for name, value in members.items()):
        return workload
    admitted = await _admit(context, workload, spec)
    return msgspec.structs.replace(
        # Conditions are about the submission; the engine reviews a change with its revision.
        admitted.record(workload),
        version=workload.version + 1,
        spec=msgspec.Raw(msgspec.json.encode(admitted.spec)),
        updated_at=context.clock(),
        **members,
    )


def _merged(before: Mapping[str, object], wanted: Mapping[str, object]) -> dict[str, object]:
    """Objects are merged member by member, and null removes a member; everything else, including lists, is replaced."""
    after = dict(before)
    for name, value in wanted.items():
        known = before.get(name)
        if value is None:
            after.pop(name, None)
        elif isinstance(value, dict):
            after[name] = _merged(known if isinstance(known, dict) else {}, value)
        else:
            after[name] = value
    return after


async def _admit(context: Context, workload: Workload, spec: Mapping[str, object]) -> Admitted:
    """What follows from the changed spec; raises Invalid with every issue."""
    kind = KINDS[workload.kind]
    submission = Submission(
        kind=kind.key,
        name=workload.name,
        project_id=workload.project_id,
        cluster_id=workload.cluster_id,
        spec=build(kind.spec, spec),
    )
    admitted = await admit_for_project(context, kind, submission, _changeable(kind))
    changed = msgspec.structs.replace(submission, spec=admitted.spec, dialect=workload.dialect)
    refuse_forbidden(context, kind, changed, workload.cluster_id)
    # Strict in every dialect: what runs does not wait for names.
    named = msgspec.structs.replace(submission, spec=admitted.spec)
    await resolve_names(context, workload.created_by, named)
    return admitted


def _build_commit(
    context: Context, before: Workload, changed: Workload, wanted: Mapping[str, object], request: AuditedRequest
) -> Change:
    now, caller = context.clock(), request.caller
    texts = {name: msgspec.json.encode(without_values(name, value)).decode() for name, value in wanted.items()}
    message = f"Changed by {caller.name}: {', '.join(f'{name} {text[:100]}' for name, text in texts.items())}"
    event = Event(
        at=now,
        subject=WORKLOADS.name,
        subject_id=changed.id,
        project_id=changed.project_id,
        reason="Update",
        message=message,
    )
    line = audit_line(now, caller, request.operation, subject_of(changed), request.id, message)
    line = msgspec.structs.replace(line, changes=_spec_changes(before, changed))
    return Change(writes=(Put(WORKLOADS, changed),), events=(event,), audit=(line,))


def _spec_changes(before: Workload, changed: Workload) -> dict[str, tuple[object, object]]:
    """The members of the spec that differ, before and after."""
    old, new = (msgspec.json.decode(one.spec, type=dict[str, object]) for one in (before, changed))
    return differences(old, new)
