"""The noun `workload`, and the shortcuts `list`, `describe` and `logs`: workloads of every kind in one project.

The verbs of single kinds use the same functions with the type of the kind.
"""

from collections.abc import Callable
from typing import Any

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT, PROJECT, Flag, UsageError
from fairlead.cli.pods.waiting import check_container, wait_for_pod
from fairlead.cli.session.report import exit_code, render_error
from fairlead.cli.session.session import ServerSession
from fairlead.cli.terminal.output import chosen_format, render
from fairlead.cli.workloads.describe import describe
from fairlead.cli.workloads.listing import workload_listing
from fairlead.client import ClientError
from fairlead.client.json_object import Json
from fairlead.client.kinds import load_kinds
from fairlead.client.suggest import suggest

LIST_FLAGS = (
    PROJECT,
    Flag("all", "Include all projects", "boolean", "A"),
    Flag("limit", "Show at most this many (default: all)", "integer"),
    Flag("offset", "Skip this many at the beginning", "integer", default="0"),
    Flag("status", "Show only workloads in this phase", placeholder="PHASE"),
    Flag("deleted", "Show workloads deleted in the last 14 days instead", "boolean"),
    Flag("search", "Show only workloads that contain this text"),
    *OUTPUT,
)
LIST_DETAILS = "PODS and GPU show how many a workload has now and how many it requests."
#: Formats of `describe` that can be submitted again.
_DIALECTS = ("yaml", "rest", "command")
DESCRIBE_FLAGS = (
    PROJECT,
    Flag(
        "output",
        "Output format; yaml, rest and command can be submitted again",
        short="o",
        choices=("table", "wide", "json", "name", *_DIALECTS),
        placeholder="FORMAT",
        default="table",
    ),
    *OUTPUT[1:],
    Flag("general", "Show the state", "boolean", default="true"),
    Flag("compute", "Show the compute resources", "boolean", default="true"),
    Flag("networks", "Show the addresses", "boolean", default="true"),
    Flag("pods", "Show the pods", "boolean", default="true"),
    Flag("events", "Show the events", "boolean", default="true"),
    Flag("containers", "Show the containers of the pods", "boolean"),
    Flag("event-limit", "Show at most this many events; -1 for all", "integer", default="50"),
    Flag("pod-limit", "Show at most this many pods; -1 for all", "integer", default="10"),
    Flag("sortEvents", "Order of the events", choices=("asc", "desc"), default="asc"),
)
LOGS_FLAGS = (
    PROJECT,
    Flag("name", "Name of the workload, if it is not the first argument", placeholder="NAME"),
    Flag("pod", "Pod (default: the master or leader, or the newest)", placeholder="NAME"),
    Flag("container", "Container; pods have only one", short="c", placeholder="NAME"),
    Flag("follow", "Follow the output until the pod ends", "boolean", "f"),
    Flag("previous", "Show the output of the previous attempt", "boolean"),
    Flag("since", "Show only output newer than this", "duration"),
    Flag("since-time", "Show only output since this time (ISO 8601)", placeholder="MOMENT"),
    Flag("tail", "Show only this many last lines; -1 for all", "integer", "t", default="-1"),
    Flag("limit-bytes", "Show at most this many bytes", "integer"),
    Flag("timestamps", "Start each line with its time", "boolean"),
    Flag("wait-timeout", "Wait at most this long for a pod to start", "duration"),
)
#: Other names of phases.
PHASE_WORDS = {"suspended": "Stopped", "suspending": "Stopping", "succeeded": "Completed"}
PHASES = (
    "Creating",
    "Initializing",
    "Resuming",
    "Pending",
    "Deleting",
    "Running",
    "Updating",
    "Stopped",
    "Stopping",
    "Degraded",
    "Failed",
    "Completed",
    "Terminating",
    "Unknown",
)
#: Verbs and the phases in which the server accepts them without effect.
_WITHOUT_EFFECT = {
    "suspend": ("Completed", "Failed", "Stopped", "Stopping", "Deleting"),
    "resume": tuple(phase for phase in PHASES if phase not in ("Stopped", "Stopping")),
}


def commands(noun: str) -> tuple[Command, ...]:
    by_noun = {
        "list": Command(
            "list",
            "List workloads",
            _list_any,
            (*LIST_FLAGS, *_TYPE_FLAGS),
            aliases=("ls",),
            details=LIST_DETAILS,
        ),
        "describe": Command(
            "describe", "Show a workload", describe_workload, DESCRIBE_FLAGS, "NAME", 1, 1, completes="workload"
        ),
        "logs": Command(
            "logs", "Show the output of a workload", show_logs, LOGS_FLAGS, "NAME", 0, 1, completes="workload"
        ),
        "delete": Command("delete", "Delete workloads", _delete, (PROJECT,), "NAME...", 1, None, completes="workload"),
    }
    return (by_noun[noun]._replace(verb=""),) if noun in by_noun else tuple(by_noun.values())


_TYPE_FLAGS = (
    Flag("type", "Show only workloads of this type", placeholder="TYPE"),
    Flag("framework", "Show only distributed workloads of this framework", placeholder="NAME"),
)


def read_phase(text: str) -> str:
    """The phase with that name or one of its other names, ignoring case."""
    wanted = PHASE_WORDS.get(text.lower(), text).lower()
    for phase in PHASES:
        if phase.lower() == wanted:
            return phase
    known = [phase.lower() for phase in PHASES]
    raise UsageError(f"'{text}' is not a phase; the phases are {', '.join(PHASES)}.{suggest(wanted, known)}")


def read_type(text: str) -> str:
    """The type of workload with that name, as lists or commands spell it."""
    kinds = load_kinds().values()
    spelled = {word.lower(): kind.title for kind in kinds for word in (" ".join(kind.command), kind.key, kind.title)}
    if text.lower() in spelled:
        return spelled[text.lower()]
    titles = [kind.title for kind in kinds]
    raise UsageError(
        f"'{text}' is not a type of workload; the types are {', '.join(titles)}.{suggest(text.lower(), spelled)}"
    )


def _read_framework(text: str) -> str:
    subtypes = [subtype for kind in load_kinds().values() for subtype in kind.subtypes]
    known = {str(subtype.sets[1]).lower(): str(subtype.sets[1]) for subtype in subtypes if subtype.sets}
    if text.lower() in known:
        return known[text.lower()]
    names = ", ".join(known.values())
    raise UsageError(f"'{text}' is not a framework; the frameworks are {names}.{suggest(text.lower(), known)}")


def _list_any(invocation: Invocation) -> int:
    title = invocation.get("type")
    return list_workloads(invocation, read_type(title) if title else None)


def list_workloads(invocation: Invocation, title: str | None = None, sets: tuple[str, object] | None = None) -> int:
    """Print all workloads; with --limit one page, and how many there are if the page does not show all.

    `sets` is the member that the command of a sub-type sets: (member, value).
    """
    filters = [f"type=={title}"] if title else []
    filters += ["==".join(map(str, sets))] if sets else []
    if invocation.get("status"):
        filters.append(f"phase=={read_phase(invocation.get('status'))}")
    if invocation.get("framework"):
        filters.append(f"distributedFramework=={_read_framework(invocation.get('framework'))}")
    session = ServerSession(invocation)
    if not invocation.get("all"):
        filters.append(f"projectId=={session.project()['id']}")
    narrowed = {
        "filterBy": filters,
        "deleted": True if invocation.get("deleted") else None,
        "search": invocation.get("search"),
    }
    rows = _load_rows(session, narrowed)
    form = chosen_format(invocation, session.settings)
    workload_listing().show(session.console, form, rows, not invocation.get("no-headers"))
    session.close()
    return OK


def _load_rows(session: ServerSession, narrowed: dict[str, Any]) -> list[Json]:
    """The newest first: all of them, or those of the page that --limit and --offset ask for."""
    newest = {"sortBy": "createdAt", "sortOrder": "desc"}
    offset, limit = session.invocation.get("offset", 0), session.invocation.get("limit")
    if limit is None:
        return list(session.client.all_workloads(**narrowed, **newest))[offset:]
    page = session.client.workloads(**narrowed, **newest, offset=offset, limit=limit)
    rows: list[Json] = page["workloads"]
    if page.get("next") is not None:
        count = session.client.count_workloads(**narrowed)
        session.console.complain(f"Showing {offset + 1} to {offset + len(rows)} of {count}.")
    return rows


def describe_workload(invocation: Invocation, title: str | None = None) -> int:
    session = ServerSession(invocation)
    workload = session.client.workload(session.workload(invocation.names[0], title)["id"])
    form = chosen_format(invocation, session.settings)
    if form == "name":
        session.console.data(workload["name"])
    elif form in _DIALECTS:
        session.console.data(session.client.written(workload["id"], form).rstrip("\n"))
    elif form == "json":
        whole = {
            **workload,
            "pods": session.client.pods(workload["id"]),
            "events": session.client.events(workload["id"]),
        }
        session.console.data(render(session.console, form, whole))
    else:
        describe(session, workload)
    session.close()
    return OK


def show_logs(invocation: Invocation, title: str | None = None) -> int:
    """Print the output of a pod; with --follow, also new output."""
    session = ServerSession(invocation)
    name = invocation.names[0] if invocation.names else invocation.get("name")
    if not name:
        raise UsageError("No workload given. Pass its name.")
    workload = session.workload(name, title)
    if invocation.get("wait-timeout") is not None or invocation.get("follow"):
        wait_for_pod(session, workload["id"], invocation.get("wait-timeout"))
    check_container(session, workload)
    for piece in session.client.logs(workload["id"], **_log_query(invocation)):
        session.console.raw(piece)
    session.close()
    return OK


def _log_query(invocation: Invocation) -> Json:
    tail = invocation.get("tail", -1)
    since = invocation.get("since-time")
    return {
        "pod": invocation.get("pod"),
        "follow": invocation.get("follow"),
        "previous": invocation.get("previous"),
        "since": since if since else _seconds(invocation.get("since")),
        "tail": tail if tail >= 0 else None,
        "limitBytes": invocation.get("limit-bytes"),
        "timestamps": invocation.get("timestamps"),
    }


def _seconds(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"


def act_on_each(
    invocation: Invocation, title: str | None, verb: str, act: Callable[[ServerSession, Json], None]
) -> int:
    """Act on every named workload, even if one fails; returns the exit code of the first failure.

    The server also accepts actions that have no effect; the message says so.
    """
    session = ServerSession(invocation)
    code = OK
    for name in invocation.names:
        try:
            workload = session.workload(name, title)
            act(session, workload)
            has_effect = workload["phase"] not in _WITHOUT_EFFECT.get(verb, ())
            outcome = f"{verb} requested" if has_effect else f"is {workload['phase']}, so {verb} has no effect"
            session.console.say(f"{name}: {outcome}.")
        except ClientError as error:
            session.console.complain(f"fairlead: {name}: {render_error(error)}")
            code = code or exit_code(error)
    session.close()
    return code


def _delete(invocation: Invocation) -> int:
    return act_on_each(invocation, None, "delete", _delete_one)


def _delete_one(session: ServerSession, workload: Json) -> None:
    for key, entry in load_kinds().items():
        if entry.title == workload["type"]:
            session.client.kind(key).delete(workload["id"])
            return
    raise ClientError(f"This version of `fairlead` does not know workloads of type {workload['type']}.")
