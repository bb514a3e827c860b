"""Whether templates and assets comply with a policy, as lists of them show it."""

from collections.abc import Mapping

from msgspec import UNSET, UnsetType

from fairlead.admission.assets import HeldAsset, render_assets
from fairlead.api.http.body import query_choice, query_integer
from fairlead.api.http.operation import Call
from fairlead.api.http.shapes import Shape
from fairlead.control import access
from fairlead.control.workloads.policies import find_policy_issues, policy_for
from fairlead.formats.plain import Plain
from fairlead.kinds import KINDS, MEANT_FOR
from fairlead.kinds.kind import Kind
from fairlead.model.records.assets import Asset, Scope


class PolicyIssue(Shape):
    details: str
    field: str
    rule: str | UnsetType = UNSET


class Compliance(Shape):
    """Whether workloads of one type in one project can use an asset under their policy."""

    compliance: bool
    imposed: bool
    reason: list[PolicyIssue]


def render_issues(call: Call, kind: Kind, members: Mapping[str, object], scope: Scope) -> list[PolicyIssue]:
    return [
        PolicyIssue(field=issue.field, details=issue.details, rule=issue.rule or UNSET)
        for issue in find_policy_issues(call.context, kind, members, scope)
    ]


def find_compliance(call: Call, asset: Asset, spec: Plain) -> Compliance | UnsetType:
    """Whether the policy of the requested project and type accepts the asset; UNSET if none is requested."""
    project = query_integer(call, "complyToProject", None)
    chosen = query_choice(call, "complyToWorkloadType", tuple(name.title() for name in MEANT_FOR))
    kind = next((each for each in KINDS.values() if chosen and each.title == chosen), None)
    if project is None or kind is None or not access.can_read(call.caller, "workloads:read", str(project)):
        return UNSET
    members = render_assets([HeldAsset(asset.kind, asset.name, spec, str(spec.get("claimName") or ""))], {})
    issues = render_issues(call, kind, members, Scope("project", str(project)))
    imposed = policy_for(call.context, kind, str(project)).imposed_assets
    return Compliance(compliance=not issues, imposed=any(asset.id in ids for ids in imposed.values()), reason=issues)
