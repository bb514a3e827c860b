"""`why NAME`: why a workload is pending, who uses what it waits for, and the smallest changes that would start it."""

from collections.abc import Callable

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT, PROJECT, Flag, UsageError
from fairlead.cli.nouns import load_module
from fairlead.cli.scheduling.answers import OFFLINE, SNAPSHOT, WORKLOAD, read_workload, show_changes
from fairlead.cli.scheduling.answers import show_why as show_why_answer
from fairlead.cli.scheduling.past import AT, at_query, show_precedence, show_timeline
from fairlead.cli.scheduling.questions import announce_turn
from fairlead.cli.session.session import ServerSession
from fairlead.cli.terminal.amounts import amount
from fairlead.cli.terminal.tables import TableColumn, render_table
from fairlead.cli.terminal.times import shown_time
from fairlead.client.errors import NameNotFound
from fairlead.client.json_object import Json

_HISTORY = Flag("history", "Show since when it waited for what, when it ran and why it was evicted", "boolean")
_AFTER = Flag("after", "Explain why this workload was placed first", placeholder="NAME")
_DETAILS = """\
  fairlead why bert --at 14:05        why it waited then
  fairlead why bert --history         12 min quota, 40 min no room for its gang
  fairlead why bert --after gpt       why gpt went first
Times are in UTC. Names of workloads of other projects are PROJECT/NAME."""
_ENDED = {"Completed", "Failed", "Deleting"}


def commands(_noun: str) -> tuple[Command, ...]:
    summary = "Explain why a workload is pending, what blocks it and what would start it"
    flags = (PROJECT, WORKLOAD, AT, _HISTORY, _AFTER, SNAPSHOT, *OUTPUT)
    return (Command("", summary, show_why, flags, "NAME", 0, 1, details=_DETAILS, completes="workload"),)


def show_why(invocation: Invocation) -> int:
    if invocation.get("snapshot"):
        code: int = load_module(OFFLINE).why(invocation)
        return code
    if sum(bool(invocation.get(flag)) for flag in ("at", "history", "after")) > 1:
        raise UsageError("Use only one of --at, --history and --after.")
    query = at_query(invocation)
    session = ServerSession(invocation)
    workload = _find(session, read_workload(invocation))
    if query or invocation.get("history") or invocation.get("after"):
        _show_past(session, workload, query)
        session.close()
        return OK
    explanation = session.client.explanation(workload["id"])
    if explanation.get("waiting"):
        announce_turn(session)
        explanation["why"] = session.client.why(workload["id"])
    if not session.show({name: value for name, value in explanation.items() if name != "values"}, workload["name"]):
        _show(session, workload, explanation)
    session.close()
    return OK


def _find(session: ServerSession, name: str) -> Json:
    """By name, or as PROJECT/NAME; also one that has been deleted, if the past is asked about."""
    project, mark, rest = name.rpartition("/")
    if mark:
        return session.client.find_workload(rest, project=project)
    try:
        return session.workload(name)
    except NameNotFound:
        if not any(session.invocation.get(flag) for flag in ("at", "history", "after")):
            raise
        deleted = session.deleted_workloads(name)
        if not deleted:
            raise
        return deleted[0]


def _show_past(session: ServerSession, workload: Json, query: dict[str, str]) -> None:
    invocation, client, id = session.invocation, session.client, workload["id"]
    if query:
        announce_turn(session)
        answer = client.why(id, **query)
        shown = show_why_answer
    elif invocation.get("history"):
        answer, shown = client.timeline(id), show_timeline
    else:
        answer, shown = client.precedence(id, _find(session, invocation.get("after"))["id"]), show_precedence
    if not session.show(answer, workload["name"]):
        shown(session.console, answer)


def _show(session: ServerSession, workload: Json, explanation: Json) -> None:
    console = session.console
    waiting = explanation.get("waiting")
    console.data(f"{explanation['name']} is {explanation['phase']}{_since(workload)}.")
    if waiting:
        _show_waiting(session, workload, waiting)
        show_changes(console, explanation["why"])
    elif explanation.get("message"):
        console.data(explanation["message"])
    if explanation.get("retryAt"):
        console.data(f"Next attempt at {shown_time(explanation['retryAt'])}.")
    last = explanation.get("lastEviction")
    if last and explanation["phase"] not in _ENDED:
        console.title("Last eviction")
        console.data(f"{shown_time(last['at'])}: {last['message']}")


def _since(workload: Json) -> str:
    return f" since {shown_time(workload['phaseUpdatedAt'])}" if workload.get("phaseUpdatedAt") else ""


def _show_waiting(session: ServerSession, workload: Json, waiting: Json) -> None:
    console = session.console
    console.data(waiting["headline"])
    if waiting.get("counted"):
        console.data(f"Counted: {waiting['counted']}")
    if len(waiting["pools"]) > 1:
        session.console.title("Node pools, in the order in which they are tried")
        for pool in waiting["pools"]:
            console.data(f"{pool['nodePool']}: {pool['message']}")
    resource = "gpu" if _requested_gpus(workload) else "cpu"
    unit = {"gpu": "GPU", "cpu": "CPU"}[resource]
    session.console.title(f"{unit}s: quotas and shares")
    _table(session, _owner_columns(resource), waiting["owners"])
    if waiting["holders"]:
        session.console.title("Workloads that use what it waits for")
        _table(session, _holder_columns(resource), waiting["holders"])
        more = waiting["holderCount"] - len(waiting["holders"])
        if more > 0:
            console.data(f"… and {more} more.")


def _requested_gpus(workload: Json) -> float:
    gpu = (workload.get("podsRequestedResources") or {}).get("gpu") or {}
    return float(gpu.get("request") or 0)


def _table(session: ServerSession, columns: tuple[TableColumn, ...], rows: list[Json]) -> None:
    console = session.console
    headers = not session.invocation.get("no-headers")
    for line in render_table(columns, rows, width=console.width(), headers=headers, paint=console.paint):
        console.data(line)


def _owner_columns(resource: str) -> tuple[TableColumn, ...]:
    def of(member: str) -> Callable[[Json], str]:
        return lambda row: amount(row[member][resource], resource)

    return (
        TableColumn("OWNER", lambda row: f"{row['type'].lower()} {row['name']}"),
        TableColumn("NODE POOL", lambda row: row["nodePool"], shrinks=True),
        TableColumn("QUOTA", of("quota")),
        TableColumn("LIMIT", of("limit")),
        TableColumn("FAIR SHARE", of("fairShare")),
        TableColumn("USED", of("allocated")),
        TableColumn("NON-PREEMPTIBLE", of("allocatedNonPreemptible"), spare=True),
        TableColumn("REQUESTED", of("requested")),
    )


def _holder_columns(resource: str) -> tuple[TableColumn, ...]:
    return (
        TableColumn("WORKLOAD", lambda row: row["workload"], shrinks=True),
        TableColumn("PROJECT", lambda row: row["project"], shrinks=True),
        TableColumn(resource.upper(), lambda row: amount(row["holds"][resource], resource)),
        TableColumn("NODES", lambda row: ",".join(row["nodes"]), shrinks=True),
        TableColumn("SINCE", lambda row: shown_time(row.get("since"))),
        TableColumn("REMARK", _remark),
    )


def _remark(row: Json) -> str:
    remarks = []
    if row["isEnding"]:
        remarks.append("ending")
    if row["isOverQuota"]:
        remarks.append("project over quota")
    if not row["preemptible"]:
        remarks.append("not preemptible")
    return ", ".join(remarks)
