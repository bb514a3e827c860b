"""Flags that a request carries as annotations."""

from typing import Any

import pytest

from fairlead.cli.flags import UsageError
from fairlead.cli.workloads.additions import apply_additions, describe_additions, read_time_limit


@pytest.mark.parametrize(
    ("text", "want"),
    [("90m", 5400), ("1h30m", 5400), ("1-12:00:00", 129_600), ("02:30:00", 9000), ("30:00", 1800), ("1-2", 93_600)],
)
def test_time_limit(text: str, want: int) -> None:
    assert read_time_limit(text) == want


@pytest.mark.parametrize("text", ["90", "soon", "0s", "0:00"])
def test_what_is_not_a_time_limit(text: str) -> None:
    with pytest.raises(UsageError, match="--time"):
        read_time_limit(text)


def test_dependencies_are_one_annotation() -> None:
    spec: dict[str, Any] = {}
    apply_additions({"after": ["prep", "any:fetch"]}, spec)
    assert spec == {"annotations": [{"name": "fairlead/after", "value": "prep,any:fetch"}]}
    with pytest.raises(UsageError, match="--after: 'Prep' must be the name of a workload"):
        apply_additions({"after": ["Prep"]}, {})


def test_what_was_asked_for_is_described() -> None:
    spec: dict[str, Any] = {}
    apply_additions({"array": "0-3%2", "time": "30:00", "after": ["prep"]}, spec)
    assert describe_additions(spec["annotations"]) == [("Time limit", "30m"), ("After", "prep"), ("Array", "0-3")]
    assert describe_additions([]) == [("Time limit", ""), ("After", ""), ("Array", "")]


def test_an_array_sets_completions_and_how_many_run_at_once() -> None:
    spec: dict[str, Any] = {"annotations": [{"name": "a", "value": "b"}]}
    apply_additions({"array": "5-9%2", "time": "1h"}, spec)
    assert spec == {
        "completions": 5,
        "parallelism": 2,
        "annotations": [
            {"name": "a", "value": "b"},
            {"name": "fairlead/array", "value": "5-9"},
            {"name": "fairlead/time-limit", "value": "3600"},
        ],
    }
