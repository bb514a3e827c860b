"""`why NAME`: why a workload is pending, who uses what it waits for, and the smallest changes that would start it."""

from collections.abc import Callable

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT, PROJECT
from fairlead.cli.nouns import load_module
from fairlead.cli.scheduling.answers import OFFLINE, SNAPSHOT, show_changes
from fairlead.cli.scheduling.questions import announce_turn
from fairlead.cli.session.session import ServerSession
from fairlead.cli.terminal.amounts import amount
from fairlead.cli.terminal.tables import TableColumn, render_table
from fairlead.cli.terminal.times import shown_time
from fairlead.client.json_object import Json

_ENDED = {"Completed", "Failed", "Deleting"}


def commands(_noun: str) -> tuple[Command, ...]:
    summary = "Explain why a workload is pending, what blocks it and what would start it"
    return (Command("", summary, show_why, (PROJECT, SNAPSHOT, *OUTPUT), "NAME", 1, 1, completes="workload"),)


def show_why(invocation: Invocation) -> int:
    if invocation.get("snapshot"):
        code: int = load_module(OFFLINE).why(invocation)
        return code
    session = ServerSession(invocation)
    workload = session.workload(invocation.names[0])
    explanation = session.client.explanation(workload["id"])
    if explanation.get("waiting"):
        announce_turn(session)
        explanation["why"] = session.client.why(workload["id"])
    if not session.show({name: value for name, value in explanation.items() if name != "values"}, workload["name"]):
        _show(session, workload, explanation)
    session.close()
    return OK


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
    asked = (workload.get("podsRequestedResources") or {}).get("gpu") or {}
    return float(asked.get("request") or 0)


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
