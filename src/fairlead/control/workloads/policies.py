"""Applies the effective policy of its project to a workload: at submission, at a change and at a resume."""

from collections.abc import Mapping

import msgspec

from fairlead.admission.policies.apply import apply_policy
from fairlead.admission.policies.merge import Policy
from fairlead.admission.templates import apply_template
from fairlead.control.context import Context
from fairlead.control.decide.manifests import other_specs_of
from fairlead.control.policies.effective import effective_policy
from fairlead.control.references import scopes
from fairlead.control.workloads.template_assets import load_members
from fairlead.kinds import role_members
from fairlead.kinds.kind import Kind
from fairlead.kinds.policies import POLICY_TYPE_OF_KIND
from fairlead.model.errors import AGAINST_POLICY, ComplianceIssue, Forbidden
from fairlead.model.records.assets import Scope
from fairlead.model.records.workload import Workload
from fairlead.model.spec.fields import fields_of
from fairlead.model.submission import Submission


def policy_for(context: Context, kind: Kind, project_id: str) -> Policy:
    return effective_policy(context, POLICY_TYPE_OF_KIND[kind.key], Scope("project", project_id))


async def add_imposed_assets(context: Context, kind: Kind, submission: Submission) -> Submission:
    """The submission with the data sources that its policy imposes on it; they win over its own of the same name."""
    policy = policy_for(context, kind, submission.project_id)
    if not any(policy.imposed_assets.values()):
        return submission
    usable = scopes.scope_keys_of_project(context, submission.project_id)
    members: dict[str, dict[str, object]] = msgspec.to_builtins(submission.spec)
    spec: dict[str, object] = dict(members)
    for role, ids in policy.imposed_assets.items():
        if ids:
            imposed = await load_members(context, {"datasources": [{"id": id} for id in ids]}, usable)
            spec = _with_imposed(kind, spec, role, imposed)
    return msgspec.structs.replace(submission, spec=msgspec.json.decode(msgspec.json.encode(spec), type=kind.spec))


def _with_imposed(kind: Kind, spec: dict[str, object], role: str, imposed: dict[str, object]) -> dict[str, object]:
    """The spec with these members in the part of a role, if it has pods of that role."""
    parts = [field for field in fields_of(kind.spec) if field.rest in role_members()]
    own = next((field for field in parts if role in (field.rest, field.about.role)), None)
    if own is None or own.struct is None:
        return apply_template(kind.spec, imposed, spec)
    part = spec.get(own.rest)
    return {**spec, own.rest: apply_template(own.struct, imposed, part)} if isinstance(part, dict) else spec


def find_policy_issues(
    context: Context, kind: Kind, members: Mapping[str, object], scope: Scope
) -> list[ComplianceIssue]:
    """Where a template or an asset breaks the policy of a scope. What is only missing, a request can still give."""
    type = POLICY_TYPE_OF_KIND[kind.key]
    _, issues = apply_policy(type, members, effective_policy(context, type, scope))
    return [issue for issue in issues if issue.rule != "required"]


def check_against_policy(context: Context, kind: Kind, workload: Workload) -> None:
    """Raise Forbidden if the present policy refuses a workload that was accepted earlier."""
    policy, type = policy_for(context, kind, workload.project_id), POLICY_TYPE_OF_KIND[kind.key]
    specs = [msgspec.json.decode(each) for each in (workload.spec, *other_specs_of(workload))]
    issues = [issue for spec in specs for issue in apply_policy(type, spec, policy)[1]]
    if issues:
        reasons = "; ".join(f"{issue.field}: {issue.details}" for issue in issues)
        raise Forbidden(f"{AGAINST_POLICY}: {reasons}")
