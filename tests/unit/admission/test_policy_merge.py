"""Policies of several scopes: which wins, and that the order of merging does not matter."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairlead.admission.policies.merge import Policy, RuleSource, merge_policies, with_source
from fairlead.admission.policies.system import SYSTEM_POLICIES
from fairlead.kinds.policies import POLICY_TYPES

TRAININGS = POLICY_TYPES["trainings"]
DISTRIBUTED = POLICY_TYPES["distributed"]


def merged(*policies: Policy) -> Policy:
    return merge_policies(TRAININGS, policies)


def rules(**members: Any) -> Policy:
    return Policy(rules=members)


def defaults(**members: Any) -> Policy:
    return Policy(defaults=members)


def test_the_nearest_scope_wins() -> None:
    got = merged(rules(image={"canEdit": False}), rules(image={"required": True}, nodeType={"blocked": True}))
    assert got.rules == {"image": {"canEdit": False}, "nodeType": {"blocked": True}}
    assert merged(defaults(image="near"), defaults(image="far", args="x")).defaults == {"args": "x", "image": "near"}


def test_the_farthest_scope_wins_for_compute_and_security() -> None:
    near = rules(
        compute={"gpuDevicesRequest": {"max": 8}, "cpuCoreRequest": {"min": 1}}, security={"runAsUid": {"min": 5}}
    )
    far = rules(compute={"gpuDevicesRequest": {"max": 2}}, security={"runAsUid": {"min": 9}})
    assert merged(near, far).rules == {
        "compute": {"gpuDevicesRequest": {"max": 2}, "cpuCoreRequest": {"min": 1}},
        "security": {"runAsUid": {"min": 9}},
    }
    # Its defaults are still the nearest ones.
    got = merged(defaults(compute={"gpuDevicesRequest": 1}), defaults(compute={"gpuDevicesRequest": 4}))
    assert got.defaults == {"compute": {"gpuDevicesRequest": 1}}


def test_the_farthest_wins_inside_roles_too() -> None:
    policies = [Policy(rules={"master": {"compute": {"gpuDevicesRequest": {"max": most}}}}) for most in (8, 2)]
    got = merge_policies(DISTRIBUTED, policies)
    assert got.rules == {"master": {"compute": {"gpuDevicesRequest": {"max": 2}}}}


def test_instances_are_collected_and_the_nearest_of_one_key_wins() -> None:
    near = defaults(environmentVariables={"instances": [{"name": "A", "value": "near"}]})
    far = defaults(environmentVariables={"instances": [{"name": "A", "value": "far"}, {"name": "B", "value": "1"}]})
    assert merged(near, far).defaults == {
        "environmentVariables": {"instances": [{"name": "A", "value": "near"}, {"name": "B", "value": "1"}]}
    }


def test_rules_say_where_they_come_from() -> None:
    of_project = with_source(TRAININGS, rules(image={"required": True}), RuleSource(scope="project", project_id=4))
    of_tenant = with_source(TRAININGS, rules(ports={"instances": {"canAdd": False}}), RuleSource(scope="tenant"))
    got = merged(of_project, of_tenant).rules
    assert got["image"] == {"required": True, "sourceOfRule": {"scope": "project", "projectId": 4}}
    assert got["ports"] == {"instances": {"canAdd": False, "sourceOfRule": {"scope": "tenant"}}}


def test_imposed_assets_of_all_scopes_add_up() -> None:
    assert merged(Policy(imposed_assets={"": ("a",)}), Policy(imposed_assets={"": ("b", "a")})).imposed_assets == {
        "": ("a", "b")
    }


def test_the_system_policy_limits_the_grace_period_of_every_pod() -> None:
    rule = SYSTEM_POLICIES["training"].rules["terminationGracePeriodSeconds"]
    assert isinstance(rule, dict)
    assert rule["max"] == 300
    assert set(SYSTEM_POLICIES["distributed"].rules) == {"worker", "master"}


_RULE = st.one_of(st.none(), st.fixed_dictionaries({}, optional={"min": st.integers(0, 3), "max": st.integers(4, 9)}))
_ITEMS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("AB"), "value": st.sampled_from("12")}),
    unique_by=lambda item: item["name"],
)
_POLICY = st.builds(
    lambda backoff, gpus, image, items: Policy(
        rules={"backoffLimit": backoff, "compute": {"gpuDevicesRequest": gpus}},
        defaults={"image": image, "environmentVariables": {"instances": items}},
    ),
    _RULE,
    _RULE,
    st.sampled_from((None, "a", "b")),
    _ITEMS,
)


def _unordered(policy: Policy) -> Any:
    items = policy.defaults.get("environmentVariables", {})
    assert isinstance(items, dict)
    by_name = {item["name"]: item for item in items.get("instances", ())}
    return policy.rules, policy.defaults.get("image"), by_name


@given(_POLICY, _POLICY, _POLICY)
def test_merging_is_associative(near: Policy, middle: Policy, far: Policy) -> None:
    at_once = _unordered(merged(near, middle, far))
    assert _unordered(merged(merged(near, middle), far)) == at_once
    assert _unordered(merged(near, merged(middle, far))) == at_once
