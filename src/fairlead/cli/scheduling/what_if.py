"""`what-if`: what some changes would do to everybody, on the server's state or on a snapshot file. Changes nothing.

`--apply` then makes the changes for which the server has an operation, after a question.
"""

import json

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.flags import OUTPUT, Flag, UsageError
from fairlead.cli.nouns import load_module
from fairlead.cli.scheduling.answers import OFFLINE, show_what_if
from fairlead.cli.scheduling.change_flags import CHANGE_FLAGS, read_changes
from fairlead.cli.scheduling.questions import announce_turn
from fairlead.cli.session.input_files import read_text
from fairlead.cli.session.session import ServerSession
from fairlead.client.json_object import Json
from fairlead.client.kinds import load_kinds

_FLAGS = (
    *CHANGE_FLAGS,
    Flag("filename", "Changes as YAML or JSON, a list below `changes`; - is standard input", short="f"),
    Flag("snapshot", "Ask about this snapshot instead of a server; - is standard input", placeholder="FILE"),
    Flag("apply", "Make the changes after you confirm them", "boolean"),
    Flag("yes", "With --apply: do not ask", "boolean", "y"),
    *OUTPUT,
)
_HISTORY = "scheduling.history"
_CLUSTER_FLAGS = (
    Flag("format", "Format of the file", choices=("fairlead", "sacct", "philly", "openb"), default="fairlead"),
    Flag("nodes", "A cluster of equal nodes, as in 80x8, with equal quotas", placeholder="NODESxGPUS"),
    Flag("snapshot", "Nodes, queues and settings of this snapshot instead", placeholder="FILE"),
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
    Flag("most", "Add at most this many nodes", "integer", default="64"),
    *_CLUSTER_FLAGS,
)
_HISTORY_DETAILS = """\
Needs no server. Every workload is submitted at its recorded time and runs as
long as recorded. The file has one JSON object per line, or is the output of
`sacct -P -X --format=JobID,Account,Submit,ElapsedRaw,NNodes,ReqTRES`, or a
public trace (philly, openb).
  fairlead what-if history jobs.txt --format sacct --nodes 20x8 \\
    --quota vision.gpu=64"""
_DETAILS = """\
Prints who would start, who would be evicted or wait longer, and the shares
before and after. Nothing is changed without --apply, which makes changes of
quotas, limits, weights and removed workloads (they are suspended).
  fairlead what-if --quota team-b.gpu=12 --weight vision=3
  fairlead what-if --add-node 2x=dgx-1 --drain node-3"""


def commands(_noun: str) -> tuple[Command, ...]:
    summary = "Show what changes would do to everybody, without making them"
    replayed = "Replay the submissions of a period with changes"
    needed = "Find how many more nodes a target for waiting times needs"
    return (
        Command("", summary, _run, _FLAGS, details=_DETAILS),
        Command("history", replayed, _replay, _HISTORY_FLAGS, "FILE", 1, 1, details=_HISTORY_DETAILS),
        Command("capacity", needed, _find_capacity, _CAPACITY_FLAGS, "FILE", 1, 1),
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
        _refuse_inapplicable(changes)
    announce_turn(session)
    answer = session.client.what_if(changes)
    if not session.show(answer, ""):
        show_what_if(session.console, answer)
    code = _apply(session, changes) if invocation.get("apply") else OK
    session.close()
    return code


def _refuse_inapplicable(changes: list[Json]) -> None:
    by_hand = [change for change in changes if change["change"] not in ("share", "removeWorkload")]
    if by_hand:
        raise UsageError(
            f"The server has no operation for {json.dumps(by_hand[0])}; leave --apply out, or make that change by hand."
        )


def _apply(session: ServerSession, changes: list[Json]) -> int:
    if not session.invocation.get("yes") and not _is_confirmed(session):
        session.console.complain("Nothing was changed. Use --yes to make the changes without confirmation.")
        return FAILED
    for change in changes:
        if change["change"] == "share":
            _apply_share(session, change)
        else:
            _suspend(session, change["workload"])
    return OK


def _is_confirmed(session: ServerSession) -> bool:
    environment = session.invocation.environment
    if not environment.stdin.isatty():
        return False
    environment.stderr.write("Make these changes? (y/N) ")
    environment.stderr.flush()
    return environment.stdin.readline().strip().lower() in ("y", "yes")


def _apply_share(session: ServerSession, change: Json) -> None:
    noun, owner = _find_owner(session, change["queue"])
    chosen = [quota for quota in owner["resources"] if change.get("nodePool") in (None, quota["nodePool"]["name"])]
    changed = [quota | {change["resource"]: _changed_quota(quota, change)} for quota in chosen]
    session.client.request("PATCH", f"/api/v1/org-unit/{noun}s/{owner['id']}/resources", changed)
    session.console.data(f"{noun} {owner['name']}: {change['field']} changed")


def _changed_quota(quota: Json, change: Json) -> Json:
    """The quota of the resource as REST takes it: null is unlimited, except for guaranteed GPUs."""
    member = {"quota": "deserved", "limit": "limit", "weight": "overQuotaWeight"}[change["field"]]
    present: Json = dict(quota.get(change["resource"]) or {})
    value = change["value"]
    if change["resource"] == "memory" and member != "overQuotaWeight":
        value = value if value == -1 else value / {"MB": 10**6, "GB": 10**9}.get(str(present.get("units")), 2**20)
    is_null = value == -1 and (change["resource"], member) != ("gpu", "deserved")
    return present | {member: None if is_null else value}


def _find_owner(session: ServerSession, name: str) -> tuple[str, Json]:
    for noun, rows in (("project", session.client.projects()), ("department", session.client.departments())):
        for row in rows:
            if row["name"] == name:
                return noun, row
    raise UsageError(f"There is no project or department '{name}'.")


def _suspend(session: ServerSession, name: str) -> None:
    workload = session.workload(name.rpartition("/")[2])
    key = next(key for key, entry in load_kinds().items() if entry.title == workload["type"])
    session.client.kind(key).suspend(workload["id"])
    session.console.data(f"{workload['name']}: suspend requested")
