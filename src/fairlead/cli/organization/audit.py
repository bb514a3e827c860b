"""The noun `audit`: who did what, from where, and with which result."""

import time
from datetime import UTC, datetime

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT, Flag
from fairlead.cli.session.session import ServerSession
from fairlead.cli.terminal.output import Listing, chosen_format
from fairlead.cli.terminal.tables import TableColumn
from fairlead.cli.terminal.times import shown_time
from fairlead.client.json_object import Json

_PATH = "/api/v1/audit/log"
_PAGE = 1000
_DAY = 86_400.0


def commands(_noun: str) -> tuple[Command, ...]:
    return (
        Command(
            "",
            "Show who did what: changes, refusals, sign-ins and sessions",
            _audit,
            (
                Flag("since", "Show only what happened within this time", "duration", default="1d"),
                Flag("subject", "Show only what this user or service account did", placeholder="NAME"),
                Flag("failed", "Show only what was refused", "boolean"),
                Flag("limit", "Show at most this many lines, the newest", "integer", default="200"),
                *OUTPUT,
            ),
        ),
    )


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _audit(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    since = invocation.get("since")
    now = time.time()
    filters = [f"subject=={invocation.get('subject')}"] if invocation.get("subject") else []
    filters += ["result==Failed"] if invocation.get("failed") else []
    period = {"start": _moment(now - (_DAY if since is None else since)), "end": _moment(now + 60)}
    rows = _load(session, {**period, "filterBy": filters}, invocation.get("limit") or 200)
    columns = (
        TableColumn("TIME", lambda row: shown_time(row["timestamp"])),
        TableColumn("SUBJECT", lambda row: row["subject"], shrinks=True),
        TableColumn("FROM", lambda row: row.get("source_ip") or ""),
        TableColumn("OPERATION", lambda row: row["metadata"].get("operation") or row["action"]),
        TableColumn("OBJECT", _object, shrinks=True),
        TableColumn("RESULT", _result),
    )
    listing = Listing(columns, lambda row: str(row["id"]), "Nothing was recorded in this period.")
    form = chosen_format(invocation, session.settings)
    listing.show(session.console, form, rows, not invocation.get("no-headers"))
    session.close()
    return OK


def _load(session: ServerSession, query: Json, limit: int) -> list[Json]:
    """The newest lines, oldest first."""
    rows: list[Json] = []
    offset: int | None = 0
    while offset is not None and len(rows) < limit:
        number = min(_PAGE, limit - len(rows))
        page = session.client.request("GET", _PATH, **query, sortOrder="desc", offset=offset, numberOfSamples=number)
        rows += page["audit_logs"]
        offset = page.get("next")
    return rows[::-1]


def _object(row: Json) -> str:
    name = row["entity_name"] or row["entity_id"]
    return f"{row['entity_type']} {name}".rstrip()


def _result(row: Json) -> str:
    status = row.get("http_status_code")
    return f"{row['result']} ({status})" if status and row["result"] == "Failed" else str(row["result"])
