"""The noun `template`: named specs that workloads are submitted from with `--template`."""

import time

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT, PROJECT, Flag, UsageError
from fairlead.cli.session.input_files import read_json_file
from fairlead.cli.session.session import ServerSession, find_named
from fairlead.cli.terminal.output import Listing, chosen_format, render
from fairlead.cli.terminal.tables import TableColumn
from fairlead.cli.terminal.times import age
from fairlead.client.access.urls import quote
from fairlead.client.json_object import Json
from fairlead.client.kinds import KindEntry, load_kinds

_BASE = "/api/v1/workload-templates"
_PAGE = 500


def commands(noun: str) -> tuple[Command, ...]:
    kinds = load_kinds()
    kind = Flag("kind", "Kind of workload", choices=tuple(kinds), default=next(iter(kinds)))
    file = Flag("file", "JSON file with the spec, or with a whole request; - is standard input", short="f")
    description = Flag("description", "Description", placeholder="TEXT")
    return (
        Command("list", "List the templates that the project can use", _list, (PROJECT, *OUTPUT), aliases=("ls",)),
        Command("describe", "Show a template", _describe, (PROJECT, *OUTPUT), "NAME", 1, 1),
        Command(
            "create",
            "Create a template in the project",
            _create,
            (PROJECT, file, kind, description, *OUTPUT),
            "NAME",
            1,
            1,
        ),
        Command(
            "delete", "Delete templates; workloads made from them keep running", _delete, (PROJECT,), "NAME...", 1, None
        ),
    )


def load_templates(session: ServerSession) -> list[Json]:
    """The templates that the project can use, of every kind of workload."""
    rows: list[Json] = []
    project = int(session.project()["id"])
    offset: int | None = 0
    while offset is not None:
        page = session.client.request("GET", _BASE, limit=_PAGE, offset=offset, complyToProject=project)
        rows += page["entries"]
        offset = page["pagination"].get("nextOffset")
    return rows


def find_template(session: ServerSession, name: str) -> Json:
    """The template with that name or id."""
    return find_named(load_templates(session), name, "template")


def _kind_of(row: Json) -> KindEntry:
    return next(kind for kind in load_kinds().values() if kind.title == row["meta"]["workloadType"])


def _list(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    now = time.time()
    columns = (
        TableColumn("NAME", lambda row: row["meta"]["name"], shrinks=True),
        TableColumn("TYPE", lambda row: row["meta"]["workloadType"]),
        TableColumn("SCOPE", lambda row: row["meta"]["scopeType"]),
        TableColumn("IMAGE", lambda row: row["spec"].get("image") or "", shrinks=True),
        TableColumn("COMPLIES", lambda row: "no" if row.get("complianceIssues") else "yes"),
        TableColumn("ID", lambda row: row["meta"]["id"], wide=True),
        TableColumn("AGE", lambda row: age(row["meta"].get("createdAt"), now)),
    )
    listing = Listing(columns, lambda row: str(row["meta"]["name"]), "No templates found.")
    form = chosen_format(invocation, session.settings)
    listing.show(session.console, form, load_templates(session), not invocation.get("no-headers"))
    session.close()
    return OK


def _describe(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    template = find_template(session, invocation.names[0])
    if not session.show(template, template["meta"]["name"]):
        session.console.data(render(session.console, "yaml", template))
    session.close()
    return OK


def _create(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    kinds = load_kinds()
    kind = kinds[invocation.get("kind") or next(iter(kinds))]
    content = _read_file(invocation)
    meta: Json = {"name": invocation.names[0], "scopeType": "project", "scopeId": str(session.project()["id"])}
    if invocation.get("description"):
        meta["description"] = invocation.get("description")
    body = {"meta": meta, "spec": content.get("spec", content)}
    created = session.client.request("POST", f"{_BASE}/{kind.rest}", body)
    if not session.show(created, created["meta"]["name"]):
        session.console.data(created["meta"]["name"])
    session.close()
    return OK


def _read_file(invocation: Invocation) -> Json:
    path = invocation.get("file")
    if path is None:
        raise UsageError("Pass the spec with --file FILE; - is standard input.")
    return read_json_file(invocation, path)


def _delete(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    for name in invocation.names:
        template = find_template(session, name)
        session.client.request("DELETE", f"{_BASE}/{_kind_of(template).rest}/{quote(template['meta']['id'])}")
        session.console.say(f"Deleted template {template['meta']['name']}.")
    session.close()
    return OK
