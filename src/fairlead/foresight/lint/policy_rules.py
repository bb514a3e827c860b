"""Rules on policies: what their defaults do to a submission that gives nothing."""

from collections.abc import Iterator

from fairlead.admission.policies.apply import apply_policy
from fairlead.admission.policies.merge import Policy, merge_policies
from fairlead.foresight.lint.material import LintFinding, LintMaterial, LintPolicy, find_above_limits
from fairlead.kinds import KINDS
from fairlead.kinds.policies import PolicyType
from fairlead.model.errors import ComplianceIssue
from fairlead.model.spec.fields import build, fields_of

_DEPARTMENT, _PROJECT = "department", "project"
#: A rule that asks for a value is not broken by a default, but by its absence.
_REQUIRED = "required"


def find_broken_default(material: LintMaterial) -> Iterator[LintFinding]:
    """A default that a rule of the same policy, or of one of a wider scope, refuses."""
    for each in material.policies:
        wider = _wider(material, each)
        known = _issues(each.type, merge_policies(each.type, wider))
        for issue in _issues(each.type, merge_policies(each.type, [each.policy, *wider])):
            if issue in known:
                continue
            yield LintFinding(
                rule="default-breaks-rule",
                level="error",
                file=each.file,
                subject=each.subject,
                path=_path(each, issue.field),
                message=f"The default of {issue.field} breaks the rule {issue.rule}: {issue.details}.",
                counter_example=f"A submission without {issue.field} is refused, though it gives nothing wrong.",
            )


def find_default_above_limit(material: LintMaterial) -> Iterator[LintFinding]:
    """Defaults of a request and a limit that contradict each other."""
    for each in material.policies:
        if not each.type.kind:
            continue
        plain, _ = apply_policy(each.type, _nothing(each.type), each.policy)
        for broken in find_above_limits(build(KINDS[each.type.kind].spec, plain), "spec"):
            field = broken.path.removeprefix("spec.")
            yield LintFinding(
                rule="requests-exceed-limits",
                level="error",
                file=each.file,
                subject=each.subject,
                path=_path(each, field),
                message=f"The default of {field} {broken.details}.",
                counter_example="A submission that leaves both to the policy is refused.",
            )


def _wider(material: LintMaterial, policy: LintPolicy) -> list[Policy]:
    """The policies that hold where this one does, nearest first."""
    if policy.scope not in (_DEPARTMENT, _PROJECT):
        return []
    same = [each for each in material.policies if each.type is policy.type and each is not policy]
    above = [each for each in same if each.scope == _DEPARTMENT and policy.parent and each.owner == policy.parent]
    return [each.policy for each in (*above, *(one for one in same if one.scope not in (_DEPARTMENT, _PROJECT)))]


def _nothing(type: PolicyType) -> dict[str, object]:
    """A submission that gives nothing, with pods of every role."""
    members = [section.member for section in type.sections if section.member]
    roles = [field.rest for section in type.sections[:1] for field in fields_of(section.struct) if field.about.role]
    return {name: {} for name in (*members, *roles)}


def _issues(type: PolicyType, policy: Policy) -> list[ComplianceIssue]:
    _, issues = apply_policy(type, _nothing(type), policy)
    return [issue for issue in issues if issue.rule != _REQUIRED]


def _path(policy: LintPolicy, field: str) -> str:
    """The default of a field of the spec, as the policy writes it."""
    prefix = f"{policy.path}.defaults" if policy.path else "defaults"
    sections = policy.type.sections
    if not sections[0].name:
        return f"{prefix}.{field}"
    for section in sections:
        if section.member and field.startswith(f"{section.member}."):
            return f"{prefix}.{section.name}.{field.removeprefix(f'{section.member}.')}"
    return f"{prefix}.{sections[0].name}.{field}"
