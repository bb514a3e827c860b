"""`what-if`: what some changes would do to everybody, on the server's state or on a snapshot file. Changes nothing.

`--apply` then makes the changes for which the server has an operation, after a question.
"""

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT, Flag, UsageError
from fairlead.cli.nouns import load_module
from fairlead.cli.scheduling.answers import OFFLINE, RUNTIMES, show_what_if
from fairlead.cli.scheduling.applied_changes import YES, confirm_and_apply, refuse_inapplicable
from fairlead.cli.scheduling.change_flags import CHANGE_FLAGS, read_changes
from fairlead.cli.scheduling.questions import announce_turn
from fairlead.cli.session.input_files import read_text
from fairlead.cli.session.session import ServerSession

_FLAGS = (
    *CHANGE_FLAGS,
    Flag("filename", "Changes as YAML or JSON, a list below `changes`; - is standard input", short="f"),
    Flag("snapshot", "Ask about this snapshot instead of a server; - is standard input", placeholder="FILE"),
    RUNTIMES,
    Flag("no-times", "Do not estimate when waiting workloads would start; faster", "boolean"),
    Flag("apply", "Make the changes after you confirm them", "boolean"),
    YES,
    *OUTPUT,
)
_HISTORY = "scheduling.history"
_CLUSTER_FLAGS = (
    Flag("format", "Format of the file", choices=("fairlead", "sacct", "philly", "openb"), default="fairlead"),
    Flag("nodes", "A cluster of equal nodes, as in 80x8, with equal quotas", placeholder="NODESxGPUS"),
    Flag("snapshot", "Nodes, queues and settings of this snapshot instead", placeholder="FILE"),
    Flag("since", "Without FILE: the beginning, a time before the end or a date; 7d by default", placeholder="TIME"),
    Flag("until", "Without FILE: the end, a time before now or a date; now by default", placeholder="TIME"),
    Flag("first", "Replay at most this many submissions", "integer"),
)
_HISTORY_FLAGS = (
    *(flag for flag in CHANGE_FLAGS if flag.name not in ("remove-workload", "priority")),
    *_CLUSTER_FLAGS,
    Flag("svg", "Also draw the waiting times into this SVG file", placeholder="FILE"),
    *OUTPUT,
)
_CAPACITY_FLAGS = (
    Flag("target", "What to reach, as in 'p90 wait of vision <= 10m'", placeholder="TEXT"),
    Flag("by", "What to add: nodes, or quota of the project in --target", choices=("nodes", "quota"), default="nodes"),
    Flag("like", "Add nodes like this one; like the first one by default", placeholder="NODE"),
    Flag("most", "Add at most this many nodes, or GPUs of quota", "integer", default="64"),
    *_CLUSTER_FLAGS,
)
_HISTORY_DETAILS = """\
Every workload is submitted at its recorded time and runs as long as recorded.
Without FILE, these are the records of the server, on its nodes and quotas. A
file needs no server: it has one JSON object per line, or is the output of
`sacct -P -X --format=JobID,Account,Submit,ElapsedRaw,NNodes,ReqTRES`, or a
public trace (philly, openb).
  fairlead what-if history --since 30d --quota vision.gpu=12
  fairlead what-if history jobs.txt --format sacct --nodes 20x8 \\
    --quota vision.gpu=64"""
_DETAILS = """\
Prints who would start, who would be evicted or wait longer, the shares, and
when waiting workloads would start, before and after. Nothing is changed without --apply, which makes changes of
quotas, limits and weights, cordons and drains nodes, and suspends removed
workloads.
  fairlead what-if --quota team-b.gpu=12 --weight vision=3
  fairlead what-if --add-node 2x=dgx-1 --drain node-3"""


def commands(_noun: str) -> tuple[Command, ...]:
    summary = "Show what changes would do to all workloads, without making them"
    replayed = "Replay the submissions of a period with changes"
    needed = "Find how many more nodes, or how much more quota, a target for waiting times needs"
    return (
        Command("", summary, _run, _FLAGS, details=_DETAILS),
        Command("history", replayed, _replay, _HISTORY_FLAGS, "[FILE]", 0, 1, details=_HISTORY_DETAILS),
        Command("capacity", needed, _find_capacity, _CAPACITY_FLAGS, "[FILE]", 0, 1),
    )


def _replay(invocation: Invocation) -> int:
    code: int = load_module(_HISTORY).replay_history(invocation)
    return code


def _find_capacity(invocation: Invocation) -> int:
    code: int = load_module(_HISTORY).find_needed_capacity(invocation)
    return code


def _run(invocation: Invocation) -> int:
    changes = read_changes(invocation)
    path = invocation.get("filename")
    if path:
        changes += load_module(OFFLINE).read_changes_file(read_text(invocation, path), path)
    if not changes:
        raise UsageError("No change given, as in `fairlead what-if --quota team-b.gpu=12`.")
    if invocation.get("snapshot"):
        if invocation.get("apply"):
            raise UsageError("--apply changes a server; a snapshot file cannot be changed.")
        code: int = load_module(OFFLINE).what_if(invocation, changes)
        return code
    session = ServerSession(invocation)
    if invocation.get("apply"):
        refuse_inapplicable(changes)
    announce_turn(session)
    answer = session.client.what_if(changes, times=not invocation.get("no-times"))
    if not session.show(answer, ""):
        show_what_if(session.console, answer)
    code = confirm_and_apply(session, changes) if invocation.get("apply") else OK
    session.close()
    return code
