"""Turns a custom resource into a submission, with the same reader and checks as for files.

Called by `custom_resources.py` and by the admission webhook.
"""

import contextlib
import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from fairlead.control.assets import secrets
from fairlead.control.context import Context
from fairlead.control.workloads.submit import submit
from fairlead.control.workloads.template_yaml import drop_manifest, merge_bases, store_manifest
from fairlead.engines.base import CustomResource as CustomResource
from fairlead.formats.intermediate import PlainSecret
from fairlead.formats.yaml.documents import YamlWorkload, read_manifests, read_workload
from fairlead.formats.yaml.fields import kinds_with
from fairlead.formats.yaml.tree import YamlIssue
from fairlead.kinds import KINDS
from fairlead.model.errors import ComplianceIssue, Conflict, InUse, Invalid
from fairlead.model.records.assets import Secret, project_scope_key
from fairlead.model.records.organization import Caller, Project
from fairlead.model.spec.fields import is_given
from fairlead.model.submission import Submission
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import SECRETS

#: The dialect of such workloads in their records.
DIALECT = "custom-resource"
#: Practically never: objects without a given time stay until somebody deletes them.
_NEVER_SECONDS = 2**31 - 1
#: Members of a spec that the system fills in: who applied it, and where it is reached.
OWNED = ("userId", "ingressUrl")


class _Switch(msgspec.Struct, frozen=True):
    value: Any = True


class _Spec(msgspec.Struct, frozen=True):
    active: _Switch = _Switch()


class _Object(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()


async def read_resource(
    context: Context, caller: Caller, resource: CustomResource, *, is_dry_run: bool = False
) -> Submission | None:
    """The submission; None for a template, which is stored as one. Raises Invalid.

    Credentials in plain text are stored as secrets, and the spec of the submission names those.
    """
    text = _without(resource.text, *OWNED).decode()
    manifests, issues = read_manifests(text)
    _refuse(issues)
    [manifest] = manifests
    if manifest.is_template:
        if not is_dry_run:
            await store_manifest(context, caller, text)
        return None
    project = _project(context, resource.namespace)
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
        dialect=DIALECT,
        template_id=template.id if template else None,
        spec=_without_auto_deletion(workload),
        applied=digests_of(resource),
        is_active=workload.is_active,
    )


async def drop_template(context: Context, caller: Caller, resource: CustomResource) -> None:
    """Delete the template that an object was, whatever its spec says now."""
    body = msgspec.json.decode(resource.text) | {"spec": {}}
    with contextlib.suppress(Invalid):
        await drop_manifest(context, caller, msgspec.json.encode(body).decode())


async def drop_resource(context: Context, caller: Caller, resource: CustomResource) -> None:
    """Delete the secrets that were created for a workload's object."""
    # An edit of `usage` was rejected, so it is still a workload.
    text = _without(resource.text, *OWNED, "usage").decode()
    try:
        manifests, _ = read_manifests(text)
        project = _project(context, resource.namespace)
        workload, _ = read_workload((await merge_bases(context, project.id, manifests[0]))[0])
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


def check_change(before: Mapping[str, object], after: Mapping[str, object]) -> None:
    """Raise Invalid for changes of a submitted workload other than whether it should run."""
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    others = [name for name in changed if name not in ("active", "ingressUrl")]
    if "userId" in others and "userId" not in before:
        others.remove("userId")  # the system writes it if no admission webhook did
    if others:
        details = "cannot be changed after submission (only active can); delete the workload and apply it again"
        raise Invalid(issues=tuple(ComplianceIssue(f"spec.{name}", details) for name in others))


def digests_of(resource: CustomResource) -> dict[str, str]:
    """The digest of each member of its spec; the values themselves may be secret."""
    spec = msgspec.json.decode(resource.text).get("spec", {})
    return {
        name: hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:16]
        for name, value in spec.items()
    }


def rejected_changes(resource: CustomResource, accepted: dict[str, str]) -> str:
    """A message about edits that are not allowed and were not refused by the admission webhook; empty for none."""
    try:
        check_change(accepted, digests_of(resource))
    except Invalid as error:
        names, details = ", ".join(issue.field for issue in error.issues), error.issues[0].details
        return f"Edit rejected: {names} {details}"
    return ""


def is_active(resource: CustomResource) -> bool:
    """Whether it should run, as its object says."""
    value = msgspec.json.decode(resource.text, type=_Object).spec.active.value
    return str(value).lower() != "false"


def was_active_changed(resource: CustomResource, accepted: dict[str, str]) -> bool:
    return digests_of(resource).get("active") != accepted.get("active")


def owned_by_system(kind: str) -> tuple[str, ...]:
    """The members of the spec that the system fills in and that objects of this kind have."""
    letter = KINDS[kind].letter
    return tuple(name for name in OWNED if letter and letter in kinds_with(name))


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


def _without_auto_deletion(workload: YamlWorkload) -> object:
    """The spec in which an unset auto-deletion time means never; for REST and files it means 30 days."""
    member = "auto_deletion_time_after_completion_seconds"
    spec = workload.spec
    if not hasattr(spec, member) or is_given(getattr(spec, member)):
        return spec
    return msgspec.structs.replace(spec, **{member: _NEVER_SECONDS})


def _project(context: Context, namespace: str) -> Project:
    projects = context.directory.projects.values()
    project = next((one for one in projects if one.namespace == namespace and one.deleted_at is None), None)
    if project is None:
        known = ", ".join(sorted(one.namespace for one in projects)[:10])
        details = f"is {namespace}, which belongs to no project; namespaces of projects are {known}"
        raise Invalid(issues=(ComplianceIssue("metadata.namespace", details),))
    return project


def _refuse(issues: list[YamlIssue]) -> None:
    if issues:
        unique = sorted(set(issues))
        raise Invalid(issues=tuple(ComplianceIssue(issue.path or "spec", issue.details) for issue in unique))
