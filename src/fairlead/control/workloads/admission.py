"""Admits a workload to its project: its policy, the rules of its kind, the project's rules, and forbidden privileges.

Called for submissions and changes. It raises Invalid with every issue, and writes nothing.
"""

from collections.abc import Collection

from fairlead.admission.admit import Admitted, admit
from fairlead.admission.project_rules import apply_project_rules, has_project_rules
from fairlead.control.context import Context
from fairlead.control.decide.review import forbidden_fields
from fairlead.control.workloads.policies import add_imposed_assets, policy_for
from fairlead.formats.sent_paths import sent_path
from fairlead.kinds.kind import Kind
from fairlead.model.errors import ComplianceIssue, Invalid
from fairlead.model.spec.pod_fields import has_security_or_storage
from fairlead.model.submission import Submission


async def admit_for_project(
    context: Context, kind: Kind, submission: Submission, may_fill: Collection[str] | None = None
) -> Admitted:
    """What follows from the spec in this project; a project that was deleted has no rules any more.

    For a change, `may_fill` names the members that can change: the policy fills in no others, because a policy never
    touches what runs.
    """
    if may_fill is None:
        submission = await add_imposed_assets(context, kind, submission)
    policy = policy_for(context, kind, submission.project_id)
    completions = context.settings.max_completions
    admitted = admit(kind, submission, max_completions=completions, policy=policy, may_fill=may_fill)
    project = context.directory.projects.get(submission.project_id)
    if project is None:
        return admitted
    department = context.directory.departments.get(project.department_id)
    if not has_project_rules(project, department):
        return admitted
    return apply_project_rules(
        project,
        department,
        kind,
        admitted.spec,
        admitted,
        measures_gpus=context.engine_of(project.cluster_id).measures_gpus,
    )


def refuse_forbidden(context: Context, kind: Kind, submission: Submission, cluster_id: str) -> None:
    """Refuse privileges and mounts that this server never gives; in the older dialect the workload fails instead."""
    if submission.dialect.is_lenient or not has_security_or_storage(submission.spec):
        return
    forbidden = forbidden_fields(kind.podsets(submission.spec), context.engine_of(cluster_id).review)
    if not forbidden:
        return
    paths = (sent_path(kind, submission.spec, field, submission.dialect) for field, _ in forbidden)
    raise Invalid(issues=[ComplianceIssue(path, why) for path, (_, why) in zip(paths, forbidden, strict=True)])
