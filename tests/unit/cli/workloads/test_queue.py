"""The order of those who wait, and values that completion knows without a server."""

from pathlib import Path
from typing import cast

import pytest

from fairlead.cli.workloads.queue import load_visible_nodes, sort_by_turn
from fairlead.client import Client, ServerError
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


class RefusingClient:
    """A client whose server does not show the nodes."""

    def __init__(self, status: int) -> None:
        self._status = status

    def nodes(self) -> list[Json]:
        raise ServerError(self._status, "No access rule allows it")


def test_a_user_who_may_not_see_nodes_sees_the_rest() -> None:
    assert load_visible_nodes(cast(Client, RefusingClient(403))) == []
    with pytest.raises(ServerError, match="No access rule"):
        load_visible_nodes(cast(Client, RefusingClient(500)))


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
