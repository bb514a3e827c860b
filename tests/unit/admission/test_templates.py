"""A request laid over a template."""

from typing import Any

import pytest

from fairlead.admission.templates import apply_template
from fairlead.kinds import KINDS

A, B = {"name": "A", "value": "1"}, {"name": "B", "value": "2"}


@pytest.mark.parametrize(
    ("sent", "template", "want"),
    [
        pytest.param({}, {"image": "x"}, {"image": "x"}, id="what is left out is the template's"),
        pytest.param({"image": "y"}, {"image": "x"}, {"image": "y"}, id="what is given wins"),
        pytest.param({"image": None}, {"image": "x"}, {"image": None}, id="null is given too"),
        pytest.param(
            {"compute": {"cpuCoreRequest": 2}},
            {"compute": {"cpuCoreRequest": 1, "cpuMemoryRequest": "1G"}},
            {"compute": {"cpuCoreRequest": 2, "cpuMemoryRequest": "1G"}},
            id="objects member by member",
        ),
        pytest.param(
            {"environmentVariables": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]},
            {"environmentVariables": [A, B]},
            {"environmentVariables": [A, {"name": "B", "value": "3"}, {"name": "C", "value": "4"}]},
            id="items by key: replaced, added, kept",
        ),
        pytest.param(
            {"environmentVariables": [{"name": "A", "exclude": True}]},
            {"environmentVariables": [A, B]},
            {"environmentVariables": [B]},
            id="exclude removes",
        ),
        pytest.param(
            {"environmentVariables": [{"name": "Z", "exclude": True}]},
            {"environmentVariables": [A]},
            {"environmentVariables": [A, {"name": "Z", "exclude": True}]},
            id="exclude of what the template lacks is left to the policy",
        ),
        pytest.param(
            {"security": {"capabilities": ["KILL"]}},
            {"security": {"capabilities": ["CHOWN"]}},
            {"security": {"capabilities": ["KILL"]}},
            id="lists without a key are replaced",
        ),
    ],
)
def test_merging(sent: dict[str, Any], template: dict[str, Any], want: dict[str, Any]) -> None:
    assert apply_template(KINDS["training"].spec, sent, template) == want
