"""`what-if history` and `what-if capacity`: a recorded period replayed under changes. No server is needed.

Loaded by `what-if`, because it imports the scheduler.
"""

import os
import re

import msgspec

from fairlead.cli.command import Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.flags import UsageError
from fairlead.cli.scheduling.change_flags import read_changes
from fairlead.cli.scheduling.offline import show_document
from fairlead.cli.session.input_files import read_text
from fairlead.cli.terminal.console import Console
from fairlead.cli.terminal.tables import TableColumn, render_table
from fairlead.foresight.changes import Change
from fairlead.foresight.workloads import UnknownName
from fairlead.scheduling import Snapshot, SnapshotError, read_snapshot
from fairlead.simulator.history import Arrival, HistoryError, read_history
from fairlead.simulator.picture import format_wait, render_svg
from fairlead.simulator.report import HistoryAnswer, ProjectReport, ask_history, find_capacity, make_cluster

_TARGET = re.compile(r"p(\d{1,2}) wait(?: of (\S+))? *<= *(\d+(?:\.\d+)?)(s|m|h|d)")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def replay_history(invocation: Invocation) -> int:
    """Answer `what-if history FILE`."""
    history, cluster = _load(invocation)
    try:
        changes = msgspec.convert(read_changes(invocation), tuple[Change, ...])
        answer = ask_history(cluster, history, changes)
    except UnknownName as error:
        raise UsageError(str(error)) from None
    picture = invocation.get("svg")
    if picture:
        with open(os.path.join(invocation.environment.folder, picture), "w", encoding="utf-8") as file:
            file.write(render_svg(answer))
    if not show_document(invocation, answer):
        _show(Console(invocation), answer)
    return OK


def find_needed_capacity(invocation: Invocation) -> int:
    """Answer `what-if capacity FILE --target …`."""
    match = _TARGET.fullmatch(str(invocation.get("target") or ""))
    if match is None:
        raise UsageError("--target must be like 'p90 wait of vision <= 10m'; without `of …` it is about all projects.")
    history, cluster = _load(invocation)
    project = match[2]
    if project is not None and project not in {arrival.project for arrival in history}:
        raise UsageError(f"The history has no project '{project}'.")
    most = invocation.get("most", 64)
    wait = float(match[3]) * _UNITS[match[4]]
    count, tried = find_capacity(cluster, history, project, int(match[1]) / 100, wait, most)
    console = Console(invocation)
    for number in sorted(tried):
        console.data(f"{_more_nodes(number)}: p{match[1]} wait {format_wait(tried[number])}")
    if count is None:
        console.complain(f"Not even {_more_nodes(most)} would be enough.")
        return FAILED
    console.data(f"{_more_nodes(count)} like {cluster.nodes[0].name} {'is' if count == 1 else 'are'} enough.")
    return OK


def _more_nodes(count: int) -> str:
    return "1 more node" if count == 1 else f"{count} more nodes"


def _load(invocation: Invocation) -> tuple[tuple[Arrival, ...], Snapshot]:
    path = invocation.names[0]
    try:
        history = read_history(read_text(invocation, path), invocation.get("format", "fairlead"))
    except HistoryError as error:
        raise UsageError(f"{path}: {error}") from None
    first = invocation.get("first")
    history = history[:first] if first else history
    return history, _cluster(invocation, history)


def _cluster(invocation: Invocation, history: tuple[Arrival, ...]) -> Snapshot:
    """Nodes and quotas of a snapshot file, or equal nodes and equal quotas."""
    path = invocation.get("snapshot")
    if path:
        try:
            snapshot = read_snapshot(read_text(invocation, path))
        except SnapshotError as error:
            raise UsageError(f"{path} is not valid: {' '.join(error.problems[:5])}") from None
        missing = {arrival.project for arrival in history} - {queue.name for queue in snapshot.queues}
        if missing:
            raise UsageError(f"{path} has no queue '{min(missing)}', which the history names.")
        return snapshot
    match = re.fullmatch(r"(\d+)x(\d+)", str(invocation.get("nodes") or ""))
    if match is None or not int(match[1]):
        raise UsageError("Name the cluster with --nodes NODESxGPUS, as in 80x8, or with --snapshot FILE.")
    return make_cluster(history, int(match[1]), int(match[2]))


def _show(console: Console, answer: HistoryAnswer) -> None:
    after = {each.project: each for each in answer.after.projects} if answer.after is not None else {}
    columns = [
        TableColumn("PROJECT", lambda row: row.project, shrinks=True),
        TableColumn("WORKLOADS", lambda row: str(row.workloads)),
        TableColumn("GPU HOURS", lambda row: f"{row.gpu_hours:.0f}"),
        TableColumn("WAIT P50", lambda row: format_wait(row.wait_p50)),
        TableColumn("P90", lambda row: format_wait(row.wait_p90)),
        TableColumn("EVICTIONS", lambda row: str(row.evictions)),
    ]
    if after:

        def with_changes(row: ProjectReport) -> ProjectReport:
            return after[row.project]

        columns += [
            TableColumn("THEN P50", lambda row: format_wait(with_changes(row).wait_p50)),
            TableColumn("P90", lambda row: format_wait(with_changes(row).wait_p90)),
            TableColumn("EVICTIONS", lambda row: str(with_changes(row).evictions)),
        ]
    for line in render_table(columns, answer.before.projects, width=console.width(), headers=True, paint=console.paint):
        console.data(line)
    for title, report in (("All", answer.before), ("All, then", answer.after)):
        if report is not None:
            console.data(
                f"{title}: wait p50 {format_wait(report.wait_p50)}, p90 {format_wait(report.wait_p90)}, "
                f"{100 * report.allocation:.1f} % of the GPU time in use, evictions: {report.evictions}."
            )
    if answer.after is not None:
        console.data(f"Wait less: {', '.join(answer.winners) or 'nobody'}.")
        console.data(f"Wait longer: {', '.join(answer.losers) or 'nobody'}.")
