"""Turns a custom resource into a submission, with the same reader and checks as for files.

Called by `loop.py` and by the admission webhook.
"""

import contextlib
import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from fairlead.control.assets import secrets
from fairlead.control.context import Context
from fairlead.control.workloads.submit import submit
from fairlead.control.workloads.template_yaml import drop_manifest, merge_bases, store_manifest
from fairlead.formats.convert.to_yaml import differences
from fairlead.formats.custom_resource import REST_FIELDS, find_custom_kind, with_rest_fields
from fairlead.formats.intermediate import PlainSecret
from fairlead.formats.plain import Plain
from fairlead.formats.rest.requests import read_submission
from fairlead.formats.yaml.documents import Manifest, YamlWorkload, read_manifests, read_workload
from fairlead.formats.yaml.fields import kinds_with
from fairlead.formats.yaml.spec import yaml_path
from fairlead.formats.yaml.tree import YamlIssue
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind
from fairlead.model.custom_resource import CustomResource
from fairlead.model.dialect import Dialect
from fairlead.model.errors import ComplianceIssue, Conflict, InUse, Invalid
from fairlead.model.records.assets import Secret, project_scope_key
from fairlead.model.records.organization import Project, namespace_of
from fairlead.model.records.people import Caller
from fairlead.model.records.workload import Workload
from fairlead.model.spec.fields import Spec, build, fields_of, is_given
from fairlead.model.submission import Submission
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import SECRETS, WORKLOADS

#: Practically never: objects without a given time stay until somebody deletes them.
_NEVER_SECONDS = 2**31 - 1
#: Members of a spec that the system fills in: who applied it, and where it is reached.
OWNED = ("userId", "ingressUrl")
_ACTIVE = "active"
#: The caller for objects that were applied with kubectl; the cluster does not tell us who applied them.
CALLER = Caller("kubernetes", "", is_administrator=True)


async def read_resource(
    context: Context, caller: Caller, resource: CustomResource, *, is_dry_run: bool = False
) -> Submission | None:
    """The submission; None for a template, which is stored as one. Raises Invalid.

    Credentials in plain text are stored as secrets, and the spec of the submission names those.
    """
    kind = kind_of(resource)
    if kind is not None and kind.own_api:
        return _read_own(context, kind, resource)
    text = _without(resource.text, *OWNED).decode()
    if is_template(resource):
        if not is_dry_run:
            await store_manifest(context, caller, text)
        else:
            _read_manifest(text)
        return None
    project = project_of_namespace(context, resource.namespace)
    manifest = _read_manifest(_in_namespace(text, namespace_of(project.name)))
    merged, template = await merge_bases(context, project.id, manifest)
    workload, issues = read_workload(merged)
    _refuse(issues)
    if workload is None:
        raise Invalid(issues=(ComplianceIssue("spec", "is not a workload"),))
    if not is_dry_run:
        for secret in workload.secrets:
            await _store_secret(context, caller, project, secret)
    return msgspec.structs.replace(
        workload.submission(project.id, project.cluster_id),
        id=resource.id,
        dialect=Dialect.CUSTOM_RESOURCE,
        template_id=template.id if template else None,
        spec=_without_auto_deletion(_with_rest_fields(workload, resource)),
        applied=digests_of(resource),
        is_active=workload.is_active,
    )


def _read_manifest(text: str) -> Manifest:
    manifests, issues = read_manifests(text)
    _refuse(issues)
    return manifests[0]


def _read_own(context: Context, kind: Kind, resource: CustomResource) -> Submission:
    """An object of a definition of our own, whose spec is the REST spec."""
    project = project_of_namespace(context, resource.namespace)
    spec = msgspec.json.decode(resource.text).get("spec", {})
    rest = {name: value for name, value in spec.items() if name != _ACTIVE}
    request = {"name": resource.name, "projectId": project.id, "clusterId": project.cluster_id, "spec": rest}
    return msgspec.structs.replace(
        read_submission(kind, msgspec.json.encode(request)),
        id=resource.id,
        dialect=Dialect.CUSTOM_RESOURCE,
        applied=digests_of(resource),
        is_active=is_active(resource),
    )


def _with_rest_fields(workload: YamlWorkload, resource: CustomResource) -> YamlWorkload:
    """The workload with the fields that only REST has, from the object's annotation."""
    annotations = msgspec.json.decode(resource.text)["metadata"].get("annotations", {})
    try:
        plain = with_rest_fields(workload.plain, annotations)
        spec = workload.spec if plain is workload.plain else build(workload.kind.spec, plain)
    except (ValueError, msgspec.ValidationError) as error:
        raise Invalid(issues=(ComplianceIssue(f"metadata.annotations[{REST_FIELDS}]", str(error)),)) from None
    return msgspec.structs.replace(workload, spec=spec)


def kind_of(resource: CustomResource) -> Kind | None:
    return find_custom_kind(msgspec.json.decode(resource.text).get("kind", ""))


async def find_created_for(context: Context, resource: CustomResource) -> Workload | None:
    """The workload for which the server created this object. Users can write the annotation, so all else must agree."""
    if not resource.created_for or resource.is_bound:
        return None
    workload: Workload | None = await context.store.get(WORKLOADS, resource.created_for)
    if workload is None or workload.deleted_at is not None or workload.name != resource.name:
        return None
    project = context.directory.projects.get(workload.project_id)
    is_there = project is not None and project.namespace == resource.namespace
    return workload if is_there and kind_of(resource) is KINDS[workload.kind] else None


async def drop_template(context: Context, caller: Caller, resource: CustomResource) -> None:
    """Delete the template that an object was, whatever its spec says now."""
    body = msgspec.json.decode(resource.text) | {"spec": {}}
    with contextlib.suppress(Invalid):
        await drop_manifest(context, caller, msgspec.json.encode(body).decode())


async def drop_resource(context: Context, caller: Caller, resource: CustomResource) -> None:
    """Delete the secrets that were created for a workload's object."""
    # An edit of `usage` was rejected, so it is still a workload.
    kind = kind_of(resource)
    if kind is None or kind.own_api:
        return
    text = _without(resource.text, *OWNED, "usage").decode()
    try:
        project = project_of_namespace(context, resource.namespace)
        manifest = _read_manifest(_in_namespace(text, namespace_of(project.name)))
        workload, _ = read_workload((await merge_bases(context, project.id, manifest))[0])
    except Invalid:
        return  # it was never submitted and left nothing
    for secret in workload.secrets if workload is not None else ():
        known = await _find_secret(context, project, secret.name)
        if known is not None and _was_created_for_object(caller, known):
            # A secret that something else names is kept.
            with contextlib.suppress(InUse):
                await secrets.delete(context, caller, secrets.SECRET, known.id)


def is_template(resource: CustomResource) -> bool:
    return bool(msgspec.json.decode(resource.text).get("spec", {}).get("usage") == "Template")


def _was_created_for_object(caller: Caller, secret: Secret) -> bool:
    """Whether it was created for an object of the cluster, and for nothing else."""
    return secret.created_by == caller.name and not secret.asset_id


async def _find_secret(context: Context, project: Project, name: str) -> Secret | None:
    own = (Where("place", Comparison.EQUAL, project_scope_key(project.id)), Where("name", Comparison.EQUAL, name))
    return next(iter(await context.store.find(Query(collection=SECRETS, where=own))), None)


async def check_resource(context: Context, caller: Caller, resource: CustomResource) -> None:
    """Raise Invalid if it would be refused now, with the same messages as a submission."""
    submission = await read_resource(context, caller, resource, is_dry_run=True)
    if submission is not None:
        await submit(context, caller, submission, is_dry_run=True)


def edited_members(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """The members of a spec that differ, except those that the system writes and whether it should run."""
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return [name for name in changed if name not in (_ACTIVE, *OWNED)]


async def read_change(context: Context, resource: CustomResource, workload: Workload) -> Plain:
    """The members of the REST spec that an edit of its custom resource changes. Raises Invalid if one cannot change."""
    kind = KINDS[workload.kind]
    if kind.changes is None:
        raise cannot_change(edited_members(workload.applied, digests_of(resource)))
    after = await _read_plain(context, resource, is_dry_run=False)
    before = msgspec.json.decode(workload.spec)
    # The object never had the members that only a policy has set.
    from_policy = {
        name: value
        for name, value in before.items()
        if name not in after and yaml_path(kind, name).removeprefix("spec.") not in workload.applied
    }
    return _find_changes(kind, before, {**from_policy, **after})


async def check_change(context: Context, before: CustomResource, after: CustomResource) -> None:
    """Raise Invalid for changes of a submitted workload that its kind does not allow."""
    specs = [msgspec.json.decode(one.text).get("spec", {}) for one in (before, after)]
    edited, kind = edited_members(*specs), kind_of(after)
    if not edited or kind is None:
        return
    if kind.changes is None:
        raise cannot_change(edited)
    _find_changes(kind, *[await _read_plain(context, one, is_dry_run=True) for one in (before, after)])


async def _read_plain(context: Context, resource: CustomResource, *, is_dry_run: bool) -> Plain:
    """The spec of an object as REST has it."""
    submission = await read_resource(context, CALLER, resource, is_dry_run=is_dry_run)
    if submission is None:
        raise cannot_change(["usage"])
    plain: Plain = msgspec.json.decode(msgspec.json.encode(submission.spec))
    return plain


def _find_changes(kind: Kind, before: Plain, after: Plain) -> Plain:
    """The changed members of the REST spec. Raises Invalid if one cannot change."""
    can = {field.rest for field in fields_of(kind.changes)}
    changed = {path.split(".")[0].split("[")[0] for path in differences(kind, before, after)}
    if changed - can:
        raise cannot_change(sorted(changed - can), f"only {', '.join(sorted(can))} can")
    return {name: after.get(name) for name in sorted(changed)}


def cannot_change(names: Sequence[str], what_can: str = "only active can") -> Invalid:
    details = f"cannot be changed after submission ({what_can}); delete the workload and apply it again"
    return Invalid(issues=tuple(ComplianceIssue(f"spec.{name}", details) for name in names))


def digests_of(resource: CustomResource) -> dict[str, str]:
    """The digest of each member of its spec; the values themselves may be secret."""
    return digest_members(msgspec.json.decode(resource.text).get("spec", {}))


def digest_members(spec: Mapping[str, object]) -> dict[str, str]:
    return {
        name: hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:16]
        for name, value in spec.items()
    }


def is_active(resource: CustomResource) -> bool:
    """Whether it should run, as its object says: `active` is a value, or an object with one."""
    given = msgspec.json.decode(resource.text).get("spec", {}).get(_ACTIVE, True)
    value = given.get("value", True) if isinstance(given, dict) else given
    return str(value).lower() != "false"


def active_value(kind: str, value: bool) -> object:
    """`active` as objects of this kind write it."""
    return value if KINDS[kind].own_api else {"value": value}


def was_active_changed(resource: CustomResource, accepted: dict[str, str]) -> bool:
    return digests_of(resource).get("active") != accepted.get("active")


def owned_by_system(kind: str) -> tuple[str, ...]:
    """The members of the spec that the system fills in and that objects of this kind have."""
    letter = KINDS[kind].letter
    return tuple(name for name in OWNED if letter and letter in kinds_with(name))


def _in_namespace(text: str, namespace: str) -> str:
    """The object in another namespace: documents name that of a project by its rule, objects are anywhere."""
    body = msgspec.json.decode(text)
    body["metadata"]["namespace"] = namespace
    return msgspec.json.encode(body).decode()


def _without(text: bytes, *members: str) -> bytes:
    """The object without some members of its spec, such as those that only the system may write."""
    body = msgspec.json.decode(text)
    body["spec"] = {name: value for name, value in body.get("spec", {}).items() if name not in members}
    return msgspec.json.encode(body)


async def _store_secret(context: Context, caller: Caller, project: Project, secret: PlainSecret) -> None:
    """Store a plain-text credential in a secret of the project; one that an earlier object left is overwritten."""
    input = secrets.ObjectInput(name=secret.name, project_id=project.id, data=secret.values)
    try:
        await secrets.create(context, caller, secrets.SECRET, input)
    except Conflict:
        known = await _find_secret(context, project, secret.name)
        if known is None or not _was_created_for_object(caller, known):
            details = (
                f"would be stored in the secret {secret.name}, which already exists in the project; use another name"
            )
            raise Invalid(issues=tuple(ComplianceIssue(path, details) for path in secret.paths)) from None
        await secrets.update(context, caller, secrets.SECRET, known.id, input)


def _without_auto_deletion(workload: YamlWorkload) -> Spec:
    """The spec in which an unset auto-deletion time means never; for REST and files it means 30 days."""
    member = "auto_deletion_time_after_completion_seconds"
    spec = workload.spec
    if not hasattr(spec, member) or is_given(getattr(spec, member)):
        return spec
    return msgspec.structs.replace(spec, **{member: _NEVER_SECONDS})


def project_of_namespace(context: Context, namespace: str) -> Project:
    projects = context.directory.projects.values()
    project = next((one for one in projects if one.namespace == namespace and one.deleted_at is None), None)
    if project is None:
        details = f"is {namespace}, which belongs to no project; use the namespace of a project of yours"
        raise Invalid(issues=(ComplianceIssue("metadata.namespace", details),))
    return project


def _refuse(issues: list[YamlIssue]) -> None:
    if issues:
        unique = sorted(set(issues))
        raise Invalid(issues=tuple(ComplianceIssue(issue.path or "spec", issue.details) for issue in unique))
