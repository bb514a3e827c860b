"""Rules on policies: defaults against the rules that hold for them."""

from typing import Any

import pytest

from fairlead.admission.policies.merge import Policy
from fairlead.foresight.lint import policy_rules
from fairlead.foresight.lint.material import LintMaterial, LintPolicy
from fairlead.kinds.policies import POLICY_TYPES

Plain = dict[str, Any]
AT_MOST_2: Plain = {"compute": {"gpuDevicesRequest": {"max": 2}}}
FOUR: Plain = {"compute": {"gpuDevicesRequest": 4}}


def policy(defaults: Plain, rules: Plain, scope: str = "tenant", rest: str = "trainings", **more: Any) -> LintPolicy:
    content = Policy(defaults=defaults, rules=rules)
    return LintPolicy(file="p.yaml", name=scope, type=POLICY_TYPES[rest], scope=scope, policy=content, **more)


def broken(*policies: LintPolicy) -> list[tuple[str, str]]:
    found = list(policy_rules.find_broken_default(LintMaterial(policies=policies)))
    assert all(each.rule == "default-breaks-rule" for each in found)
    return [(each.subject, each.path) for each in found]


@pytest.mark.parametrize(
    ("defaults", "rules", "want"),
    [
        (FOUR, AT_MOST_2, ["defaults.compute.gpuDevicesRequest"]),
        ({"compute": {"gpuDevicesRequest": 2}}, AT_MOST_2, []),
        ({"image": "a"}, {"image": {"options": [{"value": "b"}]}}, ["defaults.image"]),
        ({"image": "b"}, {"image": {"options": [{"value": "b"}]}}, []),
        # What the user must give is not a default that breaks a rule.
        ({}, {"image": {"required": True}}, []),
    ],
)
def test_a_default_that_breaks_its_own_rule(defaults: Plain, rules: Plain, want: list[str]) -> None:
    assert broken(policy(defaults, rules)) == [("policy tenant", path) for path in want]


def test_a_default_of_a_role() -> None:
    both = policy({"master": FOUR}, {"master": AT_MOST_2}, rest="distributed")
    assert broken(both) == [("policy tenant", "defaults.master.compute.gpuDevicesRequest")]
    assert broken(policy({"master": FOUR}, {"worker": AT_MOST_2}, rest="distributed")) == []


def test_a_default_that_breaks_a_rule_of_a_wider_scope() -> None:
    want = [("policy project", "policies[0].policy.defaults.compute.gpuDevicesRequest")]
    narrow = policy(FOUR, {}, "project", owner="4", parent="2", path="policies[0].policy")
    assert broken(narrow, policy({}, AT_MOST_2)) == want
    assert broken(narrow, policy({}, AT_MOST_2, "department", owner="2")) == want
    assert broken(narrow, policy({}, AT_MOST_2, "department", owner="3")) == []
    assert broken(narrow, policy({}, AT_MOST_2, rest="workspaces")) == []


def test_a_mistake_of_a_wide_scope_is_reported_once() -> None:
    assert broken(policy(FOUR, AT_MOST_2), policy({"image": "a"}, {}, "project", owner="4")) == [
        ("policy tenant", "defaults.compute.gpuDevicesRequest")
    ]


@pytest.mark.parametrize(("limit", "want"), [(2, ["defaults.compute.cpuCoreLimit"]), (4, [])])
def test_default_requests_above_default_limits(limit: int, want: list[str]) -> None:
    both = policy({"compute": {"cpuCoreRequest": 4, "cpuCoreLimit": limit}}, {})
    found = list(policy_rules.find_default_above_limit(LintMaterial(policies=(both,))))
    assert [each.path for each in found] == want
    assert all(each.rule == "requests-exceed-limits" for each in found)
