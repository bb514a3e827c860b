"""Questions about the past on the command line: the flag `--at`, timelines, who went first; and `replay`."""

import time

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.flags import OUTPUT, Flag, UsageError
from fairlead.cli.session.session import ServerSession
from fairlead.cli.terminal.console import Console
from fairlead.cli.terminal.tables import TableColumn, render_table
from fairlead.cli.terminal.time_flags import iso, read_time
from fairlead.cli.terminal.times import shown_time, span
from fairlead.client.json_object import Json

AT = Flag(
    "at",
    "In the last scheduling cycle at or before this time (14:05, 30m ago as 30m, 2026-10-01T08:00) or revision (r8123)",
    placeholder="TIME",
)
_DETAILS = """\
Rebuilds the state of every recorded cycle and decides again. The same version
of Fairlead gives the same decisions to the byte; after an upgrade, the
differences are listed, and the exit code is 1.
  fairlead replay --from 14:00 --to 15:00
  fairlead replay --from 2h -o json"""


def commands(_noun: str) -> tuple[Command, ...]:
    flags = (
        Flag(
            "from",
            "The beginning: 14:00, 2h for two hours ago, a date and time, or a revision (r8123)",
            placeholder="TIME",
            default="1h",
        ),
        Flag("to", "The end; now by default", placeholder="TIME"),
        *OUTPUT,
    )
    summary = "Repeat recorded scheduling decisions and list what differs"
    return (Command("", summary, _replay, flags, details=_DETAILS),)


def at_query(invocation: Invocation, flag: str = "at", parameter: str = "at") -> dict[str, str]:
    """The query parameter for a time or a revision that a flag names; nothing if it is not given."""
    text = str(invocation.get(flag) or "")
    if not text:
        return {}
    if text[:1] == "r" and text[1:].isascii() and text[1:].isdigit():
        return {parameter: text[1:]}
    return {parameter: iso(read_time(invocation, flag, time.time()))}


def _replay(invocation: Invocation) -> int:
    query = {**at_query(invocation, "from", "since"), **at_query(invocation, "to", "until")}
    since, until = query.get("since", ""), query.get("until", "")
    if "T" in since and "T" in until and until < since:
        times = f"--to is {shown_time(until)}, before --from, which is {shown_time(since)}"
        raise UsageError(f"{times}. A time of day means its last occurrence.")
    session = ServerSession(invocation)
    answer = session.client.replay(**query)
    while answer.get("nextSince") is not None:
        further = session.client.replay(**{**query, "since": iso(answer["nextSince"])})
        answer = _join(answer, further)
    if not session.show(answer, ""):
        _show_replay(session.console, answer)
    session.close()
    return OK if answer["same"] == answer["cycles"] else FAILED


def _join(answer: Json, further: Json) -> Json:
    sums = {member: answer[member] + further[member] for member in ("cycles", "same", "binds", "evictions")}
    versions = list(dict.fromkeys([*answer["recordedBy"], *further["recordedBy"]]))
    differences = [*answer["differences"], *further["differences"]]
    return {**further, **sums, "since": answer["since"], "recordedBy": versions, "differences": differences}


def _show_replay(console: Console, answer: Json) -> None:
    cycles, same = answer["cycles"], answer["same"]
    console.data(
        f"{cycles} scheduling cycles ({answer['binds']} pods placed, {answer['evictions']} evicted): "
        f"{same} decided identically, {cycles - same} differently."
    )
    versions = ", ".join(answer["recordedBy"])
    if versions and versions != answer["scheduler"]:
        console.data(f"Decided then by version {versions}, now by version {answer['scheduler']}.")
    for each in answer["differences"]:
        console.title(f"{shown_time(iso(each['at']))}, revision {each['revision']}, version {each['scheduler']}")
        console.data(each["message"])
        for line in each["lines"]:
            console.data(f"- {line}")
        if each["more"]:
            console.data(f"… and {each['more']} more.")


def show_timeline(console: Console, answer: Json) -> None:
    """Since when it waited for what, and why it was evicted."""
    console.data(f"{answer['workload']} ({answer['project']}): {answer['message']}")
    if not answer["isComplete"]:
        console.data("Its first events are no longer kept, so the beginning is not known.")
    console.title("Timeline")
    columns = (
        TableColumn("SINCE", lambda row: shown_time(iso(row["since"]))),
        TableColumn("FOR", lambda row: span(row["seconds"])),
        TableColumn("STATE", lambda row: row["state"]),
        TableColumn("WAITED FOR", lambda row: row["blocker"], shrinks=True),
    )
    last = len(answer["spans"]) - 1
    spans = [each for number, each in enumerate(answer["spans"]) if each["seconds"] >= 1 or number == last]
    for line in render_table(columns, spans, width=console.width(), headers=True, paint=console.paint):
        console.data(line)
    if answer["evictions"]:
        console.title("Evictions")
        for each in answer["evictions"]:
            message = each["message"][:1].upper() + each["message"][1:]
            console.data(f"{shown_time(iso(each['at']))}: pod {each['pod']}. {message}")


def show_precedence(console: Console, answer: Json) -> None:
    console.data(answer["message"])
    if answer["cause"] != "notCompared":
        headline = f"In the scheduling cycle at {shown_time(iso(answer['now']))}, revision {answer['revision']}."
        console.data(console.paint(headline, "grey"))
