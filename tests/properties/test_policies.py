"""Random policies and requests agree with a plain reference; `make soak` checks 10,000."""

import pytest

from tests.properties.policy_checks import expect, find_fault, make_case


@pytest.mark.parametrize("first", range(1, 201, 50))
def test_policies_agree_with_a_plain_reference(first: int) -> None:
    assert [fault for seed in range(first, first + 50) if (fault := find_fault(seed))] == []


def test_the_cases_break_every_rule_and_are_also_accepted() -> None:
    outcomes = [expect(make_case(seed))[2] for seed in range(1, 201)]
    broken = {rule for outcome in outcomes for _, rule in outcome}
    assert broken == {"canEdit", "required", "min", "max", "step", "options", "canAdd", "locked"}
    assert sum(not outcome for outcome in outcomes) > 10
