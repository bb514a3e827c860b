"""Around questions to the server's scheduler: the turn of a user, and suggestions in tables and progress lines.

An older server has neither. Then nothing is said, and tables and lines are as without suggestions.
"""

from collections.abc import Callable, Sequence

from fairlead.cli.session.session import ServerSession
from fairlead.client import ServerError
from fairlead.client.json_object import Json

#: The best change by workload id, for these ids.
Suggest = Callable[[Sequence[str]], dict[str, str]]
#: Rows of a table for which changes are asked.
_SUGGESTED = 20
_WAITING = "Waiting for "


def announce_turn(session: ServerSession) -> None:
    """Say so if earlier questions of this user are answered first."""
    try:
        count = session.client.open_questions()
    except ServerError:
        return
    if count:
        session.console.say(describe_turn(count))


def describe_turn(count: int) -> str:
    if count == 1:
        return "Another question of yours is being answered. This one waits for it."
    return f"{count} other questions of yours come first. This one waits for them."


def load_suggestions(suggest: Suggest, workload_ids: Sequence[str]) -> dict[str, str]:
    try:
        return suggest(workload_ids) if workload_ids else {}
    except ServerError:
        return {}


def add_suggestions(suggest: Suggest, rows: list[Json]) -> list[Json]:
    """Rows whose message names the best change, if they wait for room and there is one."""
    waiting = [row["id"] for row in rows if _waits_for_room(row)][:_SUGGESTED]
    suggestions = load_suggestions(suggest, waiting)
    return [_with_suggestion(row, suggestions.get(row["id"], "")) for row in rows]


def _waits_for_room(row: Json) -> bool:
    return row["phase"] == "Pending" and str(row.get("phaseMessage") or "").startswith(_WAITING)


def _with_suggestion(row: Json, suggestion: str) -> Json:
    """The change, then what it waits for: a narrow table has room for the change only, and the column of GPUs beside it
    shows what is missing."""
    if not suggestion:
        return row
    point = str(row["phaseMessage"]).partition(":")[0].rstrip(".")
    return {**row, "phaseMessage": f"To start: {suggestion}. {point}"}
