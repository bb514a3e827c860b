"""`what-if history` and `what-if capacity`: a period replayed under changes, from a file or from the server's records.

Loaded by `what-if`, because it imports the scheduler.
"""

import os
import re
import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from fairlead.cli.command import Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.flags import UsageError
from fairlead.cli.scheduling.change_flags import read_changes
from fairlead.cli.scheduling.offline import show_document
from fairlead.cli.session.input_files import read_text
from fairlead.cli.session.session import ServerSession
from fairlead.cli.terminal.console import Console
from fairlead.cli.terminal.tables import TableColumn, render_table
from fairlead.cli.terminal.time_flags import iso, read_time
from fairlead.foresight.changes import Change
from fairlead.foresight.messages import plural
from fairlead.foresight.workloads import UnknownName
from fairlead.scheduling import Snapshot, SnapshotError, read_snapshot
from fairlead.simulator.history import Arrival, HistoryError, read_history
from fairlead.simulator.lending import project_queues
from fairlead.simulator.picture import format_wait, render_svg
from fairlead.simulator.report import (
    HistoryAnswer,
    ProjectReport,
    WaitTarget,
    ask_history,
    find_capacity,
    make_cluster,
    more_nodes,
    more_quota,
    name_projects,
)

_TARGET = re.compile(r"p(\d{1,2}) wait(?: of (\S+))? *<= *(\d+(?:\.\d+)?)(s|m|h|d)")
#: Of the server's records, in seconds, if no period is given.
_RECALLED = 7 * 86_400
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def replay_history(invocation: Invocation) -> int:
    """Answer `what-if history`."""
    history, cluster, remarks = _load(invocation)
    try:
        changes = msgspec.convert(read_changes(invocation), tuple[Change, ...])
        answer = ask_history(cluster, history, changes)
    except UnknownName as error:
        raise UsageError(str(error)) from None
    answer = msgspec.structs.replace(answer, assumptions=(*answer.assumptions, *remarks))
    picture = invocation.get("svg")
    if picture:
        try:
            with open(os.path.join(invocation.environment.folder, picture), "w", encoding="utf-8") as file:
                file.write(render_svg(answer))
        except OSError as error:
            raise UsageError(f"{picture} cannot be written: {error.strerror}.") from None
    if not show_document(invocation, answer):
        _show(Console(invocation), answer)
        for remark in remarks:
            Console(invocation).say(remark)
    return OK


def find_needed_capacity(invocation: Invocation) -> int:
    """Answer `what-if capacity --target …`."""
    match = _TARGET.fullmatch(str(invocation.get("target") or ""))
    if match is None:
        raise UsageError("--target must be like 'p90 wait of vision <= 10m'; without `of …` it is about all projects.")
    history, cluster, remarks = _load(invocation)
    project = match[2]
    if project is not None and project not in {arrival.project for arrival in history}:
        raise UsageError(f"The history has no project '{project}'.")
    max_count = invocation.get("most", 64)
    target = WaitTarget(project, int(match[1]) / 100, float(match[3]) * _UNITS[match[4]])
    try:
        more, describe = _choose_capacity(invocation, cluster, project)
    except UnknownName as error:
        raise UsageError(str(error)) from None
    count, tried = find_capacity(cluster, history, target, more, max_count)
    console = Console(invocation)
    for remark in remarks:
        console.say(remark)
    for number in sorted(tried):
        console.data(f"{describe(number)}: p{match[1]} wait {format_wait(tried[number])}")
    if count is None:
        console.complain(f"Even this is not enough: {describe(max_count)}.")
        return FAILED
    console.data(f"The smallest that is enough: {describe(count)}.")
    return OK


def _choose_capacity(
    invocation: Invocation, cluster: Snapshot, project: str | None
) -> tuple[Callable[[int], Change], Callable[[int], str]]:
    """What there is to be more of, as a change and in words."""
    like = invocation.get("like")
    if invocation.get("by", "nodes") == "nodes":
        if not cluster.nodes:
            raise UsageError("The cluster has no node to add copies of.")
        name = like or cluster.nodes[0].name
        return more_nodes(cluster, name), lambda count: f"{plural(count, 'more node')} like {name}"
    if like:
        raise UsageError("--like names a node; with --by quota no node is added.")
    if project is None:
        raise UsageError("With --by quota, --target names the project, as in 'p90 wait of vision <= 10m'.")
    raised = more_quota(cluster, project)
    return raised, lambda count: f"a quota of {raised(count).value:g} GPUs for {project} ({count} more)"


class _Material(NamedTuple):
    history: tuple[Arrival, ...]
    cluster: Snapshot
    #: What the answer rests on besides the assumptions of every replay.
    remarks: tuple[str, ...] = ()


def _load(invocation: Invocation) -> _Material:
    if not invocation.names:
        return _load_recorded(invocation)
    if invocation.get("since") or invocation.get("until"):
        raise UsageError("--since and --until choose from the server's records; leave out FILE.")
    path = invocation.names[0]
    try:
        history = read_history(read_text(invocation, path), invocation.get("format", "fairlead"))
    except HistoryError as error:
        raise UsageError(f"{path}: {error}") from None
    history = _first(invocation, history)
    return _Material(history, _cluster(invocation, history))


def _load_recorded(invocation: Invocation) -> _Material:
    """The submissions that the server has recorded, by default on the cluster that it has now."""
    now = time.time()
    until = read_time(invocation, "until", now) if invocation.get("until") else now
    since = read_time(invocation, "since", until) if invocation.get("since") else until - _RECALLED
    session = ServerSession(invocation)
    recorded = session.client.submission_history(since=iso(since), until=iso(until))
    history = _first(invocation, msgspec.convert(recorded["submissions"], tuple[Arrival, ...]))
    if not history:
        raise UsageError(f"No workload ran from {recorded['since']} to {recorded['until']}; choose with --since.")
    remarks = [
        f"{plural(len(history), 'workload')} ran from {recorded['since']} to {recorded['until']}. Those that started "
        "earlier are submitted at the beginning; those that still ran at the end are taken to end then."
    ]
    if recorded["leftOut"]:
        remarks.append(f"Left out: {plural(recorded['leftOut'], 'workload')} that only waited.")
    if invocation.get("snapshot") or invocation.get("nodes"):
        cluster = _cluster(invocation, history)
    else:
        cluster = _with_projects(read_snapshot(session.client.snapshot()), history, "The server")
        remarks.append("The nodes, quotas and settings are those that the server has now.")
    session.close()
    return _Material(history, cluster, tuple(remarks))


def _first(invocation: Invocation, history: tuple[Arrival, ...]) -> tuple[Arrival, ...]:
    first = invocation.get("first")
    return history[:first] if first else history


def _cluster(invocation: Invocation, history: tuple[Arrival, ...]) -> Snapshot:
    """Nodes and quotas of a snapshot file, or equal nodes and equal quotas."""
    path = invocation.get("snapshot")
    if path:
        try:
            snapshot = read_snapshot(read_text(invocation, path))
        except SnapshotError as error:
            raise UsageError(f"{path} is not valid: {' '.join(error.problems[:5])}") from None
        return _with_projects(snapshot, history, path)
    match = re.fullmatch(r"(\d+)x(\d+)", str(invocation.get("nodes") or ""))
    if match is None or not int(match[1]):
        raise UsageError("Name the cluster with --nodes NODESxGPUS, as in 80x8, or with --snapshot FILE.")
    return make_cluster(history, int(match[1]), int(match[2]))


def _with_projects(snapshot: Snapshot, history: tuple[Arrival, ...], source: str) -> Snapshot:
    projects = {arrival.project for arrival in history}
    cluster = name_projects(snapshot, projects)
    missing = projects - project_queues(cluster).keys()
    if missing:
        raise UsageError(f"{source} has no project '{min(missing)}', which the history names.")
    return cluster


def _show(console: Console, answer: HistoryAnswer) -> None:
    after = {each.project: each for each in answer.after.projects} if answer.after is not None else {}
    rows = [
        row
        for row in answer.before.projects
        if row.workloads or row.lent_gpu_hours or (after and after[row.project].lent_gpu_hours)
    ]
    columns = [
        TableColumn("PROJECT", lambda row: row.project, shrinks=True),
        TableColumn("WORKLOADS", lambda row: str(row.workloads)),
        TableColumn("GPU HOURS", lambda row: f"{row.gpu_hours:.0f}"),
        *_lending_columns(lambda row: row),
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
            *_lending_columns(with_changes),
        ]
    for line in render_table(columns, rows, width=console.width(), headers=True, paint=console.paint):
        console.data(line)
    for title, report in (("All", answer.before), ("All, then", answer.after)):
        if report is not None:
            console.data(
                f"{title}: wait p50 {format_wait(report.wait_p50)}, p90 {format_wait(report.wait_p90)}, "
                f"{100 * report.allocation:.1f} % of the GPU time in use, evictions: {report.evictions}, "
                f"GPU hours borrowed: {report.borrowed_gpu_hours:.0f}, of that lent by projects: "
                f"{report.lent_gpu_hours:.0f}."
            )
    if answer.after is not None:
        console.data(f"Wait less: {', '.join(answer.winners) or 'nobody'}.")
        console.data(f"Wait longer: {', '.join(answer.losers) or 'nobody'}.")


def _lending_columns(report_of: Callable[[ProjectReport], ProjectReport]) -> list[TableColumn]:
    """GPU hours, left out first on a narrow terminal."""
    return [
        TableColumn("BORROWED", lambda row: f"{report_of(row).borrowed_gpu_hours:.0f}", spare=True),
        TableColumn("LENT", lambda row: f"{report_of(row).lent_gpu_hours:.0f}", spare=True),
    ]
