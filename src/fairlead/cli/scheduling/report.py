"""`report usage`: who used, borrowed, lent and waited for what, as a table, CSV or JSON."""

import csv
import io
import time
from collections.abc import Callable, Sequence
from typing import Any

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT, Flag, UsageError
from fairlead.cli.session.session import ServerSession
from fairlead.cli.terminal.output import chosen_format, render
from fairlead.cli.terminal.tables import TableColumn, render_table
from fairlead.cli.terminal.time_flags import iso, read_time
from fairlead.client.json_object import Json

_FORMATS = ("table", "wide", "csv", "json", "yaml")
_OUTPUT = tuple(flag._replace(choices=_FORMATS) if flag.name == "output" else flag for flag in OUTPUT)
#: By dimension: the members of a row that name its group.
_MEMBERS = {
    "day": ("day",),
    "department": ("department", "departmentId"),
    "project": ("project", "projectId"),
    "user": ("user",),
    "workload": ("workload", "workloadId"),
    "nodepool": ("nodePool",),
}
_HOURS = ("gpuHours", "cpuHours", "memoryGibHours")
_AMOUNTS = ("used", "withinQuota", "borrowed", "lent", "waited")
_POOL_AMOUNTS = ("capacity", "used", "idle", "unavailable", "overbooked")
_DETAILS = """\
Hours are exact: intervals begin when a pod gets its place and end when it has
ended, even if the server was restarted in between. What is still running counts
until now. Days begin at 00:00 UTC.
  fairlead report usage --since 30d --by project
  fairlead report usage --since 2026-10-01 --until 2026-11-01 --by project,user -o csv
  fairlead report usage --since 7d --by nodepool,day
By node pool or day alone, it shows what pools had: used, idle, unavailable."""


def commands(_noun: str) -> tuple[Command, ...]:
    return (
        Command(
            "usage",
            "Report who used, borrowed, lent and waited for GPUs, CPU and memory",
            _report,
            (
                Flag("since", "The beginning: a time before the end, or a date", placeholder="TIME", default="30d"),
                Flag("until", "The end: a time before now, or a date; now by default", placeholder="TIME"),
                Flag(
                    "by",
                    "Group by workload, user, project, department, nodepool, day",
                    placeholder="NAME,NAME",
                    default="project",
                ),
                *_OUTPUT,
            ),
            details=_DETAILS,
        ),
    )


def _report(invocation: Invocation) -> int:
    by = [word for word in str(invocation.get("by") or "project").split(",") if word]
    if unknown := [word for word in by if word not in _MEMBERS]:
        raise UsageError(f"--by does not know '{unknown[0]}'; use {', '.join(_MEMBERS)}.")
    now = time.time()
    until = read_time(invocation, "until", now) if invocation.get("until") else now
    since = read_time(invocation, "since", until) if invocation.get("since") else until - 30 * 86_400
    session = ServerSession(invocation)
    query = {"since": iso(since), "by": ",".join(by)}
    if invocation.get("until"):
        query["until"] = iso(until)
    report = session.client.request("GET", "/api/v1/usage", **query)
    form = chosen_format(invocation, session.settings)
    if form in ("json", "yaml"):
        session.console.data(render(session.console, form, report))
    elif form == "csv":
        session.console.data(_render_csv(report, by).rstrip("\n"))
    else:
        _show_table(session, report, by, form)
    session.close()
    return OK


def _is_about_pools(by: Sequence[str]) -> bool:
    return set(by) <= {"nodepool", "day"}


def _show_table(session: ServerSession, report: Json, by: Sequence[str], form: str) -> None:
    rows = report["nodePools"] if _is_about_pools(by) else report["rows"]
    # By day alone, a line still belongs to one pool.
    groups = ["day", "nodepool"] if _is_about_pools(by) else list(_MEMBERS)
    columns = [
        TableColumn(name.upper(), _reader(_MEMBERS[name][0]), shrinks=name in ("workload", "user", "project"))
        for name in groups
        if name in by or (name == "nodepool" and _is_about_pools(by))
    ]
    columns += _pool_columns() if _is_about_pools(by) else _usage_columns(has_lent=any("lent" in row for row in rows))
    console = session.console
    if not rows:
        console.say("Nothing was used or waited for in this period.")
    else:
        shown = [column for column in columns if form == "wide" or not column.wide]
        width = None if form == "wide" else console.width()
        headers = not session.invocation.get("no-headers")
        for line in render_table(shown, rows, width=width, headers=headers, paint=console.paint):
            console.data(line)
    if report["since"] == report["ledgerStart"]:
        console.say(f"Nothing is recorded before {report['ledgerStart']}.")


def _reader(member: str) -> Callable[[Json], str]:
    return lambda row: str(row.get(member, ""))


def _hours(member: str, unit: str = "gpuHours") -> Callable[[Json], str]:
    return lambda row: f"{row[member][unit]:.2f}"


def _usage_columns(*, has_lent: bool) -> list[TableColumn]:
    lent = [
        TableColumn("LENT", _hours("lent")),
        TableColumn("LENT TO", lambda row: _name_counterparts(row.get("lentTo", ()), 2), spare=True),
    ]
    return [
        TableColumn("GPU HOURS", _hours("used")),
        TableColumn("IN QUOTA", _hours("withinQuota")),
        TableColumn("BORROWED", _hours("borrowed")),
        *(lent[:1] if has_lent else []),
        TableColumn("WAITED", _hours("waited")),
        TableColumn("CPU HOURS", _hours("used", "cpuHours"), spare=True),
        TableColumn("GIB HOURS", _hours("used", "memoryGibHours"), spare=True),
        *(lent[1:] if has_lent else []),
    ]


def _pool_columns() -> list[TableColumn]:
    return [
        TableColumn("GPU HOURS", _hours("capacity")),
        *(TableColumn(name.upper(), _hours(name)) for name in ("used", "idle", "unavailable")),
        TableColumn("CPU HOURS", _hours("capacity", "cpuHours"), spare=True),
        TableColumn("USED", _hours("used", "cpuHours"), spare=True),
    ]


def _name_counterparts(parties: Sequence[Json], digits: int) -> str:
    hours_by_name = [(party["name"], party["hours"]["gpuHours"]) for party in parties if party["hours"]["gpuHours"]]
    return ";".join(f"{name}={hours:.{digits}f}" for name, hours in hours_by_name)


def _render_csv(report: Json, by: Sequence[str]) -> str:
    """Every amount of every row; a report by pools has what the pools had."""
    is_about_pools = _is_about_pools(by)
    rows = report["nodePools"] if is_about_pools else report["rows"]
    members = [member for name, some in _MEMBERS.items() if name in by for member in some]
    if is_about_pools and "nodePool" not in members:
        members.append("nodePool")
    amounts = _POOL_AMOUNTS if is_about_pools else _AMOUNTS
    parties = [] if is_about_pools else ["lentTo", "borrowedFrom"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    header = [*members, *(f"{amount}.{unit}" for amount in amounts for unit in _HOURS)]
    writer.writerow([*header, *([] if is_about_pools else ["waitedHours"]), *parties])
    for row in rows:
        line: list[Any] = [row.get(member, "") for member in members]
        line += [(row.get(amount) or {}).get(unit, "") for amount in amounts for unit in _HOURS]
        line += [] if is_about_pools else [row["waitedHours"]]
        writer.writerow([*line, *(_name_counterparts(row.get(party, ()), 6) for party in parties)])
    return text.getvalue()
