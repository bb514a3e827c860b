"""The headline of a refused request."""

import pytest

from fairlead.model.errors import AGAINST_POLICY, MISSING_PARAMETER, ComplianceIssue, Invalid

MISSING = ComplianceIssue("spec.image", "is missing; it must be given")
UNKNOWN = ComplianceIssue("spec.imag", "is not a known property; did you mean image?")


@pytest.mark.parametrize(
    ("issues", "want"),
    [
        pytest.param([MISSING], MISSING_PARAMETER, id="missing"),
        pytest.param([MISSING, ComplianceIssue("name", "is missing; it is required")], MISSING_PARAMETER, id="both"),
        pytest.param([UNKNOWN], "spec.imag: is not a known property", id="without the advice"),
        pytest.param([ComplianceIssue("", "the body is empty")], "The body is empty", id="no field"),
        pytest.param([ComplianceIssue("", "is a list; an object is expected")], "The body is a list", id="the body"),
        pytest.param([MISSING, UNKNOWN], "The request has 2 errors: spec.image, spec.imag", id="several"),
        pytest.param(
            [ComplianceIssue(f"f{number}", "is odd") for number in range(5)],
            "The request has 5 errors: f0, f1, f2 and 2 more",
            id="many",
        ),
        pytest.param([UNKNOWN, ComplianceIssue("a", "is 1", "min")], AGAINST_POLICY, id="policy"),
    ],
)
def test_the_headline_says_what_happened(issues: list[ComplianceIssue], want: str) -> None:
    assert Invalid(issues=issues).message == want


def test_a_headline_is_short() -> None:
    assert len(Invalid(issues=[ComplianceIssue("f", "x" * 500)]).message) == 200
