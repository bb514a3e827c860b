"""Templates in workload YAML: stored as documents, merged with their bases when they are used.

A document in a project's namespace is a template of that project (a "user" template), one in the namespace `runai` is
for everybody (a "global" template). Bases are looked up in that order. Called by the API and by `templates.py`.
"""

import msgspec

from fairlead.admission.templates import apply_template
from fairlead.control.context import Context
from fairlead.control.records import AuditedRequest, RecordChange, record_steps, retry_on_conflict
from fairlead.control.references import scopes
from fairlead.formats.yaml.documents import Manifest, YamlWorkload, read_manifests, read_workload
from fairlead.formats.yaml.inherit import Find, ServerTemplate, base_of, merge
from fairlead.formats.yaml.keywords import GLOBAL_NAMESPACE
from fairlead.formats.yaml.tree import YamlIssue
from fairlead.kinds import KINDS
from fairlead.model.errors import ComplianceIssue, Invalid
from fairlead.model.records.assets import Scope, project_scope_key
from fairlead.model.records.people import Caller
from fairlead.model.records.templates import Template
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import TEMPLATES

CREATED, CHANGED, UNCHANGED = "created", "changed", "unchanged"


async def store_manifest(context: Context, caller: Caller, text: str, request_id: str = "") -> tuple[Template, str]:
    """Create or change the template of a document; returns it and what happened."""
    manifest = _read_manifest(text)
    if not manifest.is_template:
        raise _refused(
            "spec.usage", f"is {manifest.usage}; only a workload with usage Template can be stored as a template"
        )
    scope, project_id = _scope(context, manifest)
    scopes.check_write(context, caller, "templates:create", scope)
    workload = _read_workload(manifest)
    await merge_bases(context, project_id, manifest)

    async def attempt() -> tuple[Template, str]:
        before = await _find(context, (scope.scope_key,), manifest.object_name)
        if before is not None and before.manifest == text:
            return before, UNCHANGED
        change = CREATED if before is None else CHANGED
        now = context.clock()
        after = Template(
            id=context.new_id() if before is None else before.id,
            version=1 if before is None else before.version + 1,
            name=manifest.object_name,
            scope_key=scope.scope_key,
            description="" if before is None else before.description,
            kind=workload.kind.key,
            scope=scope,
            spec=msgspec.Raw(msgspec.json.encode(workload.plain)),
            manifest=text,
            created_at=now if before is None else before.created_at,
            created_by=caller.name if before is None else before.created_by,
            updated_at=now,
            updated_by=caller.name,
        )
        message = f"Template {after.name} was {change} by {caller.name}"
        step = RecordChange(TEMPLATES, after.id, after, change.capitalize(), message)
        await record_steps(context, AuditedRequest(caller, "update", request_id), [step], None)
        return after, change

    return await retry_on_conflict(attempt)


async def drop_manifest(context: Context, caller: Caller, text: str) -> None:
    """Delete the template of a document, if there is one."""
    manifest = _read_manifest(text)
    scope, _ = _scope(context, manifest)
    known = await _find(context, (scope.scope_key,), manifest.object_name)
    if known is not None:
        scopes.check_write(context, caller, "templates:delete", scope)
        message = f"Template {known.name} was deleted by {caller.name}"
        step = RecordChange(TEMPLATES, known.id, None, "Deleted", message)
        await record_steps(context, AuditedRequest(caller, "delete", ""), [step], None)


async def resolve_spec(context: Context, template: Template, project_id: str) -> dict[str, object]:
    """The spec of a template with everything that it inherits, in REST form. Raises Invalid with the chain."""
    if not template.manifest:
        own: dict[str, object] = msgspec.json.decode(bytes(template.spec))
        return own
    manifest = _read_manifest(template.manifest)
    merged, end = await merge_bases(context, project_id, manifest)
    workload = _read_workload(merged)
    if workload.kind.key != template.kind:
        other = KINDS[template.kind].resource
        raise _refused(
            "templateId", f"names a template of kind {other}, but its base makes it a {workload.kind.resource}"
        )
    if end is None:
        return workload.plain
    return apply_template(workload.kind.spec, workload.plain, msgspec.json.decode(bytes(end.spec)))


async def merge_bases(context: Context, project_id: str, manifest: Manifest) -> tuple[Manifest, Template | None]:
    """A document merged with its bases, and the REST template at the end of the chain, which is merged later."""
    find, end = await _load_bases(context, project_id, manifest)
    merged, issues = merge(manifest, find)
    _refuse(issues)
    return merged, end


async def _load_bases(context: Context, project_id: str, manifest: Manifest) -> tuple[Find, Template | None]:
    """The chain of bases of a document. A REST template ends it, because it has no base."""
    known: dict[tuple[str, str], Manifest] = {}
    end: Template | None = None
    current = manifest
    while current.base:
        wider = scopes.scope_keys_of_project(context, project_id)[1:]
        own = (project_scope_key(project_id),) if current.namespace != GLOBAL_NAMESPACE and project_id else ()
        base = await _find(context, (*own, *wider), current.base)
        if base is None:
            break
        namespace = current.namespace if base.scope_key in own else GLOBAL_NAMESPACE
        if (namespace, base.name) in known:
            break
        current = base_of(ServerTemplate(base.id, base.kind, base.manifest), namespace, base.name)
        known[namespace, base.name] = current
        end = None if base.manifest else base
    return (lambda namespace, name: known.get((namespace, name))), end


async def _find(context: Context, among: tuple[str, ...], name: str) -> Template | None:
    """The template of that name in the nearest scope."""
    where = (Where("place", Comparison.ONE_OF, among), Where("name", Comparison.EQUAL, name))
    rows: list[Template] = await context.store.find(Query(collection=TEMPLATES, where=where))
    return scopes.nearest(among, rows).get(name)


def _read_manifest(text: str) -> Manifest:
    manifests, issues = read_manifests(text)
    _refuse(issues)
    if len(manifests) != 1:
        raise _refused("manifest", f"holds {len(manifests)} workloads; exactly one is expected")
    return manifests[0]


def _read_workload(manifest: Manifest) -> YamlWorkload:
    workload, issues = read_workload(manifest)
    _refuse(issues)
    if workload is None:
        raise _refused("manifest", "is not a workload")
    return workload


def _refuse(issues: list[YamlIssue]) -> None:
    if issues:
        unique = sorted(set(issues))
        raise Invalid(issues=tuple(ComplianceIssue(issue.path or "manifest", issue.details) for issue in unique))


def _refused(field: str, details: str) -> Invalid:
    return Invalid(issues=(ComplianceIssue(field, details),))


def _scope(context: Context, manifest: Manifest) -> tuple[Scope, str]:
    """The scope of a template by its namespace; and the project's id, if it is a project's."""
    if manifest.namespace == GLOBAL_NAMESPACE:
        return scopes.resolve_scope(context, Scope("tenant"), "metadata"), ""
    projects = context.directory.projects.values()
    project = next((one for one in projects if one.namespace == manifest.namespace and one.deleted_at is None), None)
    if project is None:
        shown = manifest.namespace or "nothing"
        raise _refused(
            "metadata.namespace", f"is {shown}, which belongs to no project; {GLOBAL_NAMESPACE} is for global templates"
        )
    return Scope("project", project.id), project.id
