"""The order of those who wait, and values that completion knows without a server."""

from pathlib import Path

import pytest

from fairlead.cli.workloads.queue import sort_by_turn
from fairlead.client.json_object import Json
from tests.unit.cli.calling import call


def test_priority_comes_first_then_age() -> None:
    rows: list[Json] = [
        {"name": "young", "priority": 50, "createdAt": "2026-01-02", "id": "1"},
        {"name": "old", "priority": 50, "createdAt": "2026-01-01", "id": "2"},
        {"name": "urgent", "priority": 125, "createdAt": "2026-01-03", "id": "3"},
        {"name": "plain", "priority": None, "createdAt": "2026-01-01", "id": "4"},
    ]
    assert [(row["position"], row["name"]) for row in sort_by_turn(rows)] == [
        (1, "urgent"),
        (2, "old"),
        (3, "young"),
        (4, "plain"),
    ]


@pytest.mark.parametrize(
    ("words", "want"),
    [
        (("list", "--type", "Dis"), ["Distributed", "DistributedInference"]),
        (("list", "--status", "Run"), ["Running"]),
        (("wait", "x", "--for", "Comp"), ["Completed"]),
    ],
)
def test_values_of_flags_are_completed(tmp_path: Path, words: tuple[str, ...], want: list[str]) -> None:
    assert call("__complete", *words, home=tmp_path).out.split() == want
