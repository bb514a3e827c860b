"""The best change in the lines of a table."""

from collections.abc import Sequence

from fairlead.cli.scheduling.questions import add_suggestions, describe_turn
from fairlead.client import ServerError
from fairlead.client.json_object import Json

ROOM = "Waiting for 4 GPUs: all 8 GPUs of n1 and n2 are in use."


def row(id: str, phase: str = "Pending", message: str = ROOM) -> Json:
    return {"id": id, "phase": phase, "phaseMessage": message}


def messages(rows: list[Json]) -> list[str]:
    return [each["phaseMessage"] for each in rows]


def test_a_message_names_what_it_waits_for_and_the_change() -> None:
    asked: list[Sequence[str]] = []

    def suggest(ids: Sequence[str]) -> dict[str, str]:
        asked.append(ids)
        return {"a": "request 2 GPUs instead of 4"}

    rows = [row("a"), row("b"), row("c", "Running", "1 pod running"), row("d", message="Can never start: too large.")]
    assert messages(add_suggestions(suggest, rows)) == [
        "To start: request 2 GPUs instead of 4. Waiting for 4 GPUs",
        ROOM,
        "1 pod running",
        "Can never start: too large.",
    ]
    assert asked == [["a", "b"]]


def test_only_the_first_rows_are_asked_about() -> None:
    asked: list[Sequence[str]] = []

    def suggest(ids: Sequence[str]) -> dict[str, str]:
        asked.append(ids)
        return {}

    add_suggestions(suggest, [row(str(number)) for number in range(30)])
    add_suggestions(suggest, [row("x", "Running")])
    assert [len(ids) for ids in asked] == [20]


def test_a_server_without_suggestions() -> None:
    def refuse(ids: Sequence[str]) -> dict[str, str]:
        raise ServerError(404, "Not found", "There is no such path.")

    assert messages(add_suggestions(refuse, [row("a")])) == [ROOM]


def test_whose_turn_it_is() -> None:
    assert describe_turn(1) == "Another question of yours is being answered. This one waits for it."
    assert describe_turn(2) == "2 other questions of yours come first. This one waits for them."
