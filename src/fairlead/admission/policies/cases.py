"""Judges cases of policies: which specs must be accepted with which values, or refused by which rules.

`fairlead policy test` runs them from files, without a server.
"""

import msgspec

from fairlead.admission.policies.apply import apply_policy
from fairlead.admission.policies.merge import Policy, merge_policies
from fairlead.kinds.policies import POLICY_TYPES, PolicyType
from fairlead.model.errors import ComplianceIssue

Plain = dict[str, object]
TYPES: dict[str, PolicyType] = {type.key: type for type in POLICY_TYPES.values()}


class CasePolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    defaults: Plain = {}
    rules: Plain = {}


class ExpectedViolation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    field: str
    rule: str


class Expectation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Either violations, or values that the accepted spec must have (others may be there too)."""

    violations: tuple[ExpectedViolation, ...] = ()
    spec: Plain = {}


class PolicyCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    spec: Plain
    expect: Expectation = Expectation()


class CaseFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    #: The type of policy: `training`.
    type: str
    #: Nearest scope first: project, department, cluster, tenant.
    policies: tuple[CasePolicy, ...]
    cases: tuple[PolicyCase, ...]


def judge_case(file: CaseFile, case: PolicyCase) -> list[str]:
    """Where the outcome differs from what the case expects."""
    type = TYPES[file.type]
    policy = merge_policies(type, [Policy(defaults=each.defaults, rules=each.rules) for each in file.policies])
    spec, issues = apply_policy(type, case.spec, policy)
    wanted = {(each.field, each.rule) for each in case.expect.violations}
    violated = {(issue.field, issue.rule or ""): issue for issue in issues}
    differences = [
        f"{field}: expected a violation of {rule}, but there is none" for field, rule in wanted - set(violated)
    ]
    differences += [_unexpected(violated[key]) for key in sorted(set(violated) - wanted)]
    return differences + _differences(spec, case.expect.spec, "")


def _unexpected(issue: ComplianceIssue) -> str:
    return f"{issue.field}: {issue.details}, which breaks {issue.rule}, but no violation is expected"


def _differences(spec: object, wanted: Plain, path: str) -> list[str]:
    differences = []
    members = spec if isinstance(spec, dict) else {}
    for name, value in wanted.items():
        here, actual = f"{path}.{name}" if path else name, members.get(name)
        if isinstance(value, dict):
            differences += _differences(actual, value, here)
        elif actual != value:
            differences.append(f"{here}: expected {value!r}, but it is {actual!r}")
    return differences
