"""Templates: named specs for a part of the organization. Called by the API and by `submit.py`."""

import msgspec

from fairlead.admission.templates import apply_template
from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.filters import FilterField
from fairlead.control.lists import ListRequest, Page, count_page, load_page
from fairlead.control.records import AuditedRequest, RecordChange, record_steps, retry_on_conflict
from fairlead.control.references import scopes
from fairlead.control.workloads.template_assets import load_members
from fairlead.control.workloads.template_yaml import resolve_spec
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind
from fairlead.model.errors import ComplianceIssue, Conflict, Invalid, NotFound
from fairlead.model.records.assets import Scope
from fairlead.model.records.people import Caller
from fairlead.model.records.templates import Template
from fairlead.model.submission import Submission
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import TEMPLATES

TEMPLATE_FIELDS: dict[str, FilterField[Template]] = {
    "name": FilterField(column="name"),
    "workloadType": FilterField(column="kind", stored_words={key: kind.title for key, kind in KINDS.items()}),
    "runnable": FilterField(constant="true"),
    "scopeType": FilterField(column="scope_type"),
    "clusterId": FilterField(column="scope_id"),
    "projectId": FilterField(column="scope_id"),
    "departmentId": FilterField(column="scope_id"),
    "createdAt": FilterField("time", "created_at"),
    "updatedAt": FilterField("time", "updated_at"),
    "createdBy": FilterField(column="created_by"),
    "updatedBy": FilterField(column="updated_by"),
}


class TemplateInput(msgspec.Struct, frozen=True, kw_only=True):
    """The desired state of a template; in a change, None leaves a member as it is."""

    name: str | None = None
    description: str | None = None
    scope: Scope = Scope("project")
    #: An instance of the kind's spec.
    spec: msgspec.Struct | None = None
    #: Ids of assets; None if none are given.
    assets: dict[str, object] | None = None
    #: For a change: whether members that it does not give stay.
    is_merge: bool = False


async def create_template(
    context: Context, caller: Caller, kind: Kind, input: TemplateInput, request_id: str = ""
) -> Template:
    scopes.check_write(context, caller, "templates:create", input.scope)
    scope = scopes.resolve_scope(context, input.scope, "meta")
    await _check_assets(context, scope, input.assets or {})
    now = context.clock()
    template = Template(
        id=context.new_id(),
        version=1,
        name=input.name or "",
        scope_key=scope.scope_key,
        description=input.description or "",
        kind=kind.key,
        scope=scope,
        spec=_raw(input.spec),
        assets=input.assets or {},
        created_at=now,
        created_by=caller.name,
        updated_at=now,
        updated_by=caller.name,
    )
    message = f"Template {template.name} was created by {caller.name}"
    step = RecordChange(TEMPLATES, template.id, template, "Created", message)
    try:
        await record_steps(context, AuditedRequest(caller, "create", request_id), [step], None)
    except Conflict as error:
        # The contract has no 409 here, so a taken name makes the request invalid.
        raise _name_taken(template.name) if error.columns else error from None
    return template


async def _check_assets(context: Context, scope: Scope, assets: dict[str, object]) -> None:
    """Raise Invalid unless all assets are usable everywhere in the scope: they are of that scope or a wider one."""
    await load_members(context, assets, scopes.scope_keys_around(context, scope))


async def load_combined(context: Context, template: Template) -> dict[str, object]:
    """The template's spec merged with its assets, or the spec alone if an asset is missing."""
    own: dict[str, object] = msgspec.json.decode(bytes(template.spec))
    if not template.assets:
        return own
    try:
        members = await load_members(context, template.assets, scopes.scope_keys_around(context, template.scope))
    except Invalid:
        return own
    return apply_template(KINDS[template.kind].spec, own, members)


def _name_taken(name: str) -> Invalid:
    return Invalid(issues=(ComplianceIssue("meta.name", f"a template named {name} already exists in this scope"),))


def _raw(spec: msgspec.Struct | None) -> msgspec.Raw:
    return msgspec.Raw(b"{}" if spec is None else msgspec.json.encode(spec))


async def update_template(
    context: Context, caller: Caller, kind: Kind, id: str, input: TemplateInput, request_id: str = ""
) -> Template:
    """Replace a template, or (with `is_merge`) change only the given members."""

    async def attempt() -> Template:
        before = await load_template(context, caller, id, kind, "update")
        spec = _raw(input.spec)
        assets = before.assets if input.is_merge and input.assets is None else input.assets or {}
        await _check_assets(context, before.scope, assets)
        if input.is_merge:
            # Inherited members become its own, because the changed template is not a YAML document any more.
            project_id = before.scope.id if before.scope.type == "project" else ""
            sent, stored = msgspec.json.decode(bytes(spec)), await resolve_spec(context, before, project_id)
            spec = msgspec.Raw(msgspec.json.encode(apply_template(kind.spec, sent, stored)))
        after: Template = msgspec.structs.replace(
            before,
            version=before.version + 1,
            name=input.name if input.name is not None else before.name,
            description=before.description if input.is_merge and input.description is None else input.description or "",
            spec=spec,
            manifest="",
            assets=assets,
            updated_at=context.clock(),
            updated_by=caller.name,
        )
        step = RecordChange(TEMPLATES, id, after, "Updated", f"Template {before.name} was changed by {caller.name}")
        try:
            await record_steps(context, AuditedRequest(caller, "update", request_id), [step], None)
        except Conflict as error:
            raise _name_taken(after.name) if error.columns else error from None
        return after

    return await retry_on_conflict(attempt)


async def load_template(
    context: Context, caller: Caller, id: str, kind: Kind | None = None, verb: str = "read"
) -> Template:
    template: Template | None = await context.store.get(TEMPLATES, id)
    what = f"template with the id {id[:60]!r}"
    if template is None or (kind is not None and template.kind != kind.key):
        raise NotFound(f"There is no {what}")
    scopes.check_visible(context, caller, "templates:read", template.scope_key, what)
    if verb == "read":
        access.check(caller, "templates:read")
    else:
        scopes.check_write(context, caller, f"templates:{verb}", template.scope)
    return template


async def find_templates(
    context: Context, caller: Caller, request: ListRequest, kind: Kind | None = None, project_id: str = ""
) -> Page[Template]:
    """A page of the templates that the caller may see, or that a project can use."""
    where = _visible(context, caller, kind, project_id)
    return await load_page(context, TEMPLATES, where, request, TEMPLATE_FIELDS)


async def count_templates(context: Context, caller: Caller, request: ListRequest) -> int:
    return await count_page(context, TEMPLATES, _visible(context, caller), request, TEMPLATE_FIELDS)


def _visible(context: Context, caller: Caller, kind: Kind | None = None, project_id: str = "") -> tuple[Where, ...]:
    access.check(caller, "templates:read", project_id)
    seen = (
        scopes.scope_keys_of_project(context, project_id)
        if project_id
        else scopes.visible_scope_keys(context, caller, "templates:read")
    )
    where: tuple[Where, ...] = () if seen is None else (Where("place", Comparison.ONE_OF, seen),)
    return where if kind is None else (*where, Where("kind", Comparison.EQUAL, kind.key))


async def is_name_free(context: Context, caller: Caller, name: str, scope: Scope) -> bool:
    access.check(caller, "templates:read")
    resolved = scopes.resolve_scope(context, scope, "scope")
    where = (Where("place", Comparison.EQUAL, resolved.scope_key), Where("name", Comparison.EQUAL, name))
    return await context.store.count(Query(collection=TEMPLATES, where=where)) == 0


async def delete_template(context: Context, caller: Caller, kind: Kind, id: str, request_id: str = "") -> None:
    """Delete it. Workloads that were created from it do not need it any more."""
    template = await load_template(context, caller, id, kind, "delete")
    step = RecordChange(TEMPLATES, id, None, "Deleted", f"Template {template.name} was deleted by {caller.name}")
    await record_steps(context, AuditedRequest(caller, "delete", request_id), [step], None)


async def apply_named_template(context: Context, kind: Kind, submission: Submission) -> Submission:
    """The submission merged with the template that it names, if any. Raises Invalid."""
    if submission.template_id is None:
        return submission
    template: Template | None = await context.store.get(TEMPLATES, submission.template_id.lower())
    usable = scopes.scope_keys_of_project(context, submission.project_id)
    if template is None or template.kind != kind.key or template.scope_key not in usable:
        details = f"there is no template {submission.template_id} for this kind of workload in the project"
        raise Invalid(issues=(ComplianceIssue("templateId", details),))
    sent = msgspec.to_builtins(submission.spec)
    stored = await resolve_spec(context, template, submission.project_id)
    if template.assets:
        members = await load_members(context, template.assets, usable)
        stored = apply_template(kind.spec, stored, members)
    combined = msgspec.json.encode(apply_template(kind.spec, sent, stored))
    return msgspec.structs.replace(submission, spec=msgspec.json.decode(combined, type=kind.spec), sent=submission.spec)
