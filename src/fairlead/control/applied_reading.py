"""From an object that was applied to a cluster to a submission, with the same reader and the same checks as files.

Called by `applied.py` and by the cluster's question whether to admit an object.
"""

from typing import Any

import msgspec

from fairlead.control.context import Context
from fairlead.control.manifests import merge_bases, store_manifest
from fairlead.control.submit import submit
from fairlead.engines.base import Applied as Applied
from fairlead.formats.workload_yaml import YamlWorkload, read_manifests, read_workload
from fairlead.formats.yaml_tree import YamlIssue
from fairlead.model.errors import MALFORMED, Invalid, Issue
from fairlead.model.fields import is_given
from fairlead.model.org import Caller, Project
from fairlead.model.submission import Submission

#: Where such workloads come from, as their records say it.
DIALECT = "custom-resource"
#: As good as never: objects that nobody gave a time stay until somebody removes them.
_NEVER_SECONDS = 2**31 - 1


async def read_applied(
    context: Context, caller: Caller, applied: Applied, *, is_trial: bool = False
) -> tuple[Submission, bool] | None:
    """The submission and whether it is to run at once; None for a template, which is kept as one. Raises Invalid."""
    text = applied.text.decode()
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
        raise Invalid(MALFORMED, (Issue("spec", "is no workload"),))
    submission = msgspec.structs.replace(
        workload.submission(project.id, project.cluster_id),
        id=applied.id,
        dialect=DIALECT,
        template_id=template.id if template else None,
        spec=_lasting(workload),
    )
    return submission, workload.is_active


async def check_applied(context: Context, caller: Caller, applied: Applied) -> None:
    """Whether it would be taken if it were applied now, with the messages of a submission. Raises Invalid."""
    reading = await read_applied(context, caller, applied, is_trial=True)
    if reading is not None:
        await submit(context, caller, reading[0], is_trial=True)


def check_change(before: dict[str, Any], after: dict[str, Any]) -> None:
    """A workload that was submitted stays as it is; only whether it is to run can be changed. Raises Invalid."""
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    others = [name for name in changed if name != "active"]
    if others:
        details = "cannot be changed once the workload is submitted; delete it and apply it again (active can be)"
        raise Invalid(MALFORMED, tuple(Issue(f"spec.{name}", details) for name in others))


def _lasting(workload: YamlWorkload) -> object:
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
        raise Invalid(MALFORMED, (Issue("metadata.namespace", details),))
    return found


def _refuse(issues: list[YamlIssue]) -> None:
    if issues:
        found = sorted(set(issues))
        raise Invalid(MALFORMED, tuple(Issue(issue.path or "spec", issue.details) for issue in found))
