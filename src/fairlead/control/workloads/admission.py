"""Admits a workload to its project: its policy, the rules of its kind and the project's own rules.

Called for submissions and changes. It raises Invalid with every issue, and writes nothing.
"""

from fairlead.admission.admit import Admitted, admit
from fairlead.admission.project_rules import apply_project_rules, has_project_rules
from fairlead.control.context import Context
from fairlead.control.workloads.policies import policy_for
from fairlead.kinds.kind import Kind
from fairlead.model.submission import Submission


def admit_for_project(context: Context, kind: Kind, submission: Submission) -> Admitted:
    """What follows from the spec in this project; a project that was deleted has no rules any more."""
    policy = policy_for(context, kind, submission.project_id)
    admitted = admit(kind, submission, max_completions=context.settings.max_completions, policy=policy)
    project = context.directory.projects.get(submission.project_id)
    if project is None:
        return admitted
    department = context.directory.departments.get(project.department_id)
    if not has_project_rules(project, department):
        return admitted
    return apply_project_rules(
        project, department, kind, admitted.spec, admitted, measures_gpus=context.engine.measures_gpus
    )
