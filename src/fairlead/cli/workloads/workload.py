"""The noun `workload`, and the shortcuts `list`, `describe` and `logs`: workloads of every kind in one project.

The verbs of single kinds use the same functions with the type of the kind.
"""

from typing import Any

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT, PROJECT, Flag, UsageError
from fairlead.cli.scheduling.questions import add_suggestions
from fairlead.cli.session.session import ServerSession
from fairlead.cli.terminal.output import chosen_format, render
from fairlead.cli.terminal.phases import read_phase
from fairlead.cli.workloads.actions import action
from fairlead.cli.workloads.describe import describe
from fairlead.cli.workloads.listing import workload_listing
from fairlead.cli.workloads.logs import logs_command
from fairlead.client.json_object import Json
from fairlead.client.kinds import load_kinds
from fairlead.client.suggest import suggest

LIST_FLAGS = (
    PROJECT,
    Flag("all", "Include all projects", "boolean", "A", aliases=("all-projects",)),
    Flag("cluster", "Only workloads of this cluster, of all its projects", placeholder="NAME"),
    Flag("limit", "Show at most this many (default: all)", "integer"),
    Flag("offset", "Skip this many at the beginning", "integer", default="0"),
    Flag("status", "Show only workloads in this phase", placeholder="PHASE"),
    Flag("deleted", "Show workloads deleted in the last 14 days instead", "boolean"),
    Flag("search", "Show only workloads that contain this text"),
    *OUTPUT,
)
LIST_DETAILS = "PODS and GPU show how many a workload has now and how many it requests."
#: Formats of `describe` that can be submitted again, and the objects that a cluster would have.
_DIALECTS = ("yaml", "rest", "command", "python", "kubernetes")
DESCRIBE_FLAGS = (
    PROJECT,
    Flag(
        "output",
        "Output format; yaml, rest, command and python can be submitted again",
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
            "describe", "Show workloads", describe_workload, DESCRIBE_FLAGS, "NAME...", 1, None, completes="workload"
        ),
        "logs": logs_command(),
        "delete": action("delete"),
        "suspend": action("suspend"),
        "resume": action("resume"),
    }
    return (by_noun[noun]._replace(verb=""),) if noun in by_noun else tuple(by_noun.values())


_TYPE_FLAGS = (
    Flag("type", "Show only workloads of this type", placeholder="TYPE"),
    Flag("framework", "Show only distributed workloads of this framework", placeholder="NAME"),
)


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
    if invocation.get("cluster"):
        filters.append(f"clusterId=={session.cluster()['uuid']}")
    elif not invocation.get("all"):
        filters.append(f"projectId=={session.project()['id']}")
    narrowed = {
        "filterBy": filters,
        "deleted": True if invocation.get("deleted") else None,
        "search": invocation.get("search"),
    }
    rows = _load_rows(session, narrowed)
    form = chosen_format(invocation, session.settings)
    if form in ("table", "wide"):
        rows = add_suggestions(session.client.suggestions, rows)
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
    form = chosen_format(invocation, session.settings)
    workloads = [session.client.workload(session.workload(name, title)["id"]) for name in invocation.names]
    if form == "json":
        whole = [_whole(session, workload) for workload in workloads]
        session.console.data(render(session.console, form, whole if len(whole) > 1 else whole[0]))
    else:
        for number, workload in enumerate(workloads):
            _describe_one(session, workload, form, number)
    session.close()
    return OK


def _describe_one(session: ServerSession, workload: Json, form: str, number: int) -> None:
    if form == "name":
        session.console.data(workload["name"])
    elif form in _DIALECTS:
        if number and form in ("yaml", "kubernetes"):
            session.console.data("---")
        session.console.data(session.client.written(workload["id"], form).rstrip("\n"))
    else:
        if number:
            session.console.data("")
        describe(session, workload)


def _whole(session: ServerSession, workload: Json) -> Json:
    return {
        **workload,
        "pods": session.client.pods(workload["id"]),
        "events": session.client.events(workload["id"]),
    }
