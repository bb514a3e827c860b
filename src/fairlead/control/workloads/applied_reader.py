"""From an object that was applied to a cluster to a submission, with the same reader and the same checks as files.

Called by `applied.py` and by the cluster's question whether to admit an object.
"""

import contextlib
import hashlib
from typing import Any

import msgspec

from fairlead.control.assets import secrets
from fairlead.control.context import Context
from fairlead.control.workloads.submit import submit
from fairlead.control.workloads.template_yaml import drop_manifest, merge_bases, store_manifest
from fairlead.engines.base import AppliedObject as AppliedObject
from fairlead.formats.intermediate import PlainSecret
from fairlead.formats.yaml.documents import YamlWorkload, read_manifests, read_workload
from fairlead.formats.yaml.fields import kinds_with
from fairlead.formats.yaml.tree import YamlIssue
from fairlead.kinds import KINDS
from fairlead.model.errors import MALFORMED, ComplianceIssue, Conflict, InUse, Invalid
from fairlead.model.records.assets import Secret, project_scope_key
from fairlead.model.records.organization import Caller, Project
from fairlead.model.spec.fields import is_given
from fairlead.model.submission import Submission
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import SECRETS

#: Where such workloads come from, as their records say it.
DIALECT = "custom-resource"
#: As good as never: objects that nobody gave a time stay until somebody removes them.
_NEVER_SECONDS = 2**31 - 1
#: Members of a spec that the system fills in: who applied it, and where it is reached.
OWNED = ("userId", "ingressUrl")


class _Switch(msgspec.Struct, frozen=True):
    value: Any = True


class _Spec(msgspec.Struct, frozen=True):
    active: _Switch = _Switch()


class _Object(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()


async def read_applied(
    context: Context, caller: Caller, applied: AppliedObject, *, is_trial: bool = False
) -> Submission | None:
    """The submission; None for a template, which is kept as one. Raises Invalid.

    Credentials that stand in it in plain text are kept as the secrets that its spec then names.
    """
    text = _without(applied.text, *OWNED).decode()
    manifests, issues = read_manifests(text)
    _refuse(issues)
    [manifest] = manifests
    if manifest.is_template:
        if not is_trial:
            await store_manifest(context, caller, text)
        return None
    project = _project(context, applied.namespace)
    merged, template = await merge_bases(context, project.id, manifest)
    workload, issues = read_workload(merged)
    _refuse(issues)
    if workload is None:
        raise Invalid(MALFORMED, (ComplianceIssue("spec", "is no workload"),))
    if not is_trial:
        for secret in workload.secrets:
            await _store_secret(context, caller, project, secret)
    return msgspec.structs.replace(
        workload.submission(project.id, project.cluster_id),
        id=applied.id,
        dialect=DIALECT,
        template_id=template.id if template else None,
        spec=_without_auto_deletion(workload),
        applied=digests_of(applied),
        is_active=workload.is_active,
    )


async def drop_template(context: Context, caller: Caller, applied: AppliedObject) -> None:
    """Remove the template that an object was, whatever its spec says now."""
    body = msgspec.json.decode(applied.text) | {"spec": {}}
    with contextlib.suppress(Invalid):
        await drop_manifest(context, caller, msgspec.json.encode(body).decode())


async def drop_applied(context: Context, caller: Caller, applied: AppliedObject) -> None:
    """Remove what was kept of a workload's object beside its workload: secrets that stood in it."""
    # One that is edited to be a template is none: that was not taken.
    text = _without(applied.text, *OWNED, "usage").decode()
    try:
        manifests, _ = read_manifests(text)
        project = _project(context, applied.namespace)
        workload, _ = read_workload((await merge_bases(context, project.id, manifests[0]))[0])
    except Invalid:
        return  # what was never taken left nothing
    for secret in workload.secrets if workload is not None else ():
        known = await _find_secret(context, project, secret.name)
        if known is not None and _was_created_for_object(caller, known):
            # One that something else names stays.
            with contextlib.suppress(InUse):
                await secrets.delete(context, caller, secrets.SECRET, known.id)


def is_template(applied: AppliedObject) -> bool:
    return bool(msgspec.json.decode(applied.text).get("spec", {}).get("usage") == "Template")


def _was_created_for_object(caller: Caller, secret: Secret) -> bool:
    """Whether it was made for an object of the cluster, and for nothing else."""
    return secret.created_by == caller.name and not secret.asset_id


async def _find_secret(context: Context, project: Project, name: str) -> Secret | None:
    own = (Where("place", Comparison.EQUAL, project_scope_key(project.id)), Where("name", Comparison.EQUAL, name))
    return next(iter(await context.store.find(Query(collection=SECRETS, where=own))), None)


async def check_applied(context: Context, caller: Caller, applied: AppliedObject) -> None:
    """Whether it would be taken if it were applied now, with the messages of a submission. Raises Invalid."""
    submission = await read_applied(context, caller, applied, is_trial=True)
    if submission is not None:
        await submit(context, caller, submission, is_trial=True)


def check_change(before: dict[str, Any], after: dict[str, Any]) -> None:
    """A workload that was submitted stays as it is; only whether it is to run can be changed. Raises Invalid."""
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    others = [name for name in changed if name not in ("active", "ingressUrl")]
    if "userId" in others and "userId" not in before:
        others.remove("userId")  # the system writes it where no admission did
    if others:
        details = "cannot be changed once the workload is submitted; delete it and apply it again (active can be)"
        raise Invalid(MALFORMED, tuple(ComplianceIssue(f"spec.{name}", details) for name in others))


def digests_of(applied: AppliedObject) -> dict[str, str]:
    """What tells each member of its spec from another; the values themselves may be secret."""
    spec = msgspec.json.decode(applied.text).get("spec", {})
    return {
        name: hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:16]
        for name, value in spec.items()
    }


def rejected_changes(applied: AppliedObject, taken: dict[str, str]) -> str:
    """What of an object was edited since it was taken although it may not be, past the cluster's question; in words."""
    try:
        check_change(taken, digests_of(applied))
    except Invalid as error:
        names, details = ", ".join(issue.field for issue in error.issues), error.issues[0].details
        return f"{names} {'was' if len(error.issues) == 1 else 'were'} changed, which is not taken: it {details}"
    return ""


def is_active(applied: AppliedObject) -> bool:
    """Whether it is to run, as its object says it."""
    value = msgspec.json.decode(applied.text, type=_Object).spec.active.value
    return str(value).lower() != "false"


def was_active_changed(applied: AppliedObject, taken: dict[str, str]) -> bool:
    return digests_of(applied).get("active") != taken.get("active")


def owned_by_system(kind: str) -> tuple[str, ...]:
    """The members of the spec that are the system's, of those that this kind's objects have."""
    letter = KINDS[kind].letter
    return tuple(name for name in OWNED if letter and letter in kinds_with(name))


def _without(text: bytes, *members: str) -> bytes:
    """The object without members of its spec, as those that the system wrote into it: they are refused from users."""
    body = msgspec.json.decode(text)
    body["spec"] = {name: value for name, value in body.get("spec", {}).items() if name not in members}
    return msgspec.json.encode(body)


async def _store_secret(context: Context, caller: Caller, project: Project, secret: PlainSecret) -> None:
    """In a secret of the project, where the spec looks for it; one that an object left behind gets these values."""
    input = secrets.ObjectInput(name=secret.name, project_id=project.id, data=secret.values)
    try:
        await secrets.create(context, caller, secrets.SECRET, input)
    except Conflict:
        known = await _find_secret(context, project, secret.name)
        if known is None or not _was_created_for_object(caller, known):
            details = f"would be kept in the secret {secret.name}, which the project has already; name it otherwise"
            raise Invalid(MALFORMED, tuple(ComplianceIssue(path, details) for path in secret.paths)) from None
        await secrets.update(context, caller, secrets.SECRET, known.id, input)


def _without_auto_deletion(workload: YamlWorkload) -> object:
    """Unset means never for objects of the cluster, where REST and files mean 30 days."""
    member = "auto_deletion_time_after_completion_seconds"
    spec = workload.spec
    if not hasattr(spec, member) or is_given(getattr(spec, member)):
        return spec
    return msgspec.structs.replace(spec, **{member: _NEVER_SECONDS})


def _project(context: Context, namespace: str) -> Project:
    projects = context.directory.projects.values()
    found = next((one for one in projects if one.namespace == namespace and one.deleted_at is None), None)
    if found is None:
        known = ", ".join(sorted(project.namespace for project in projects)[:10])
        details = f"is {namespace}, which is no project's; namespaces of projects are {known}"
        raise Invalid(MALFORMED, (ComplianceIssue("metadata.namespace", details),))
    return found


def _refuse(issues: list[YamlIssue]) -> None:
    if issues:
        found = sorted(set(issues))
        raise Invalid(MALFORMED, tuple(ComplianceIssue(issue.path or "spec", issue.details) for issue in found))
