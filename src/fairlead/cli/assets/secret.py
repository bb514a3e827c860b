"""The nouns `secret`, `configmap`, `pvc` and `credential`: list, describe, create, delete.

Other users of the machine can see values on a command line for a moment. They cannot see values that come from a file
or from standard input (`KEY=-`).
"""

import time
from collections.abc import Callable

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT, PROJECT, Flag, UsageError
from fairlead.cli.session.session import ServerSession, find_named
from fairlead.cli.terminal.facts import record_facts, show_facts
from fairlead.cli.terminal.output import Listing, chosen_format
from fairlead.cli.terminal.tables import TableColumn
from fairlead.cli.terminal.times import age
from fairlead.client.access.urls import quote
from fairlead.client.json_object import Json

_PATHS = {
    "secret": "/api/v1/secrets",
    "configmap": "/api/v1/config-maps",
    "pvc": "/api/v1/persistent-volume-claims",
    "credential": "/api/v1/user-credentials",
}
_TITLES = {"secret": "secret", "configmap": "config map", "pvc": "claim", "credential": "credential"}
_LITERAL = Flag("from-literal", "A key and its value", repeatable=True, placeholder="KEY=VALUE")
_FILE = Flag(
    "from-file", "A key and the file with its value; - is standard input", repeatable=True, placeholder="KEY=FILE"
)
_DESCRIPTION = Flag("description", "Description", placeholder="TEXT")
_CLAIM_FLAGS = (
    Flag("size", "Size, such as 10Gi", placeholder="QUANTITY"),
    Flag("storage-class", "Storage class", placeholder="NAME", default="local"),
    Flag(
        "access-mode",
        "Access modes",
        repeatable=True,
        choices=("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"),
        default="ReadWriteOnce",
    ),
)
_PAGE = 500


def commands(noun: str) -> tuple[Command, ...]:
    word = _TITLES[noun]
    flags = _CLAIM_FLAGS if noun == "pvc" else (_LITERAL, _FILE)
    place = () if noun == "credential" else (PROJECT,)
    return (
        _command(noun, "list", f"List {word}s", _list, (*place, *OUTPUT))._replace(
            usage="", min_names=0, max_names=0, aliases=("ls",)
        ),
        _command(noun, "describe", f"Show a {word}; secret values are never shown", _describe, (*place, *OUTPUT)),
        _command(noun, "create", f"Create a {word}", _create, (*place, _DESCRIPTION, *flags, *OUTPUT)),
        _command(noun, "delete", f"Delete {word}s that are not in use", _delete, place)._replace(
            usage="NAME...", max_names=None
        ),
    )


def _command(
    noun: str, verb: str, summary: str, run: Callable[[Invocation, str], int], flags: tuple[Flag, ...]
) -> Command:
    return Command(verb, summary, lambda call: run(call, noun), flags, "NAME", 1, 1)


def _rows(session: ServerSession, noun: str) -> list[Json]:
    """Everything that workloads of the project can use; for credentials, the caller's workloads."""
    query: Json = {} if noun == "credential" else {"projectId": str(session.project()["id"])}
    rows: list[Json] = []
    offset: int | None = 0
    while offset is not None:
        page = session.client.request("GET", _PATHS[noun], limit=_PAGE, offset=offset, **query)
        rows += page["items"]
        offset = page.get("next")
    return rows


def _find(session: ServerSession, noun: str, name: str) -> Json:
    return find_named(_rows(session, noun), name, _TITLES[noun])


def _list(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    listing = Listing(_columns(noun), lambda row: str(row["name"]), f"No {_TITLES[noun]}s found.")
    form = chosen_format(invocation, session.settings)
    listing.show(session.console, form, _rows(session, noun), not invocation.get("no-headers"))
    session.close()
    return OK


def _columns(noun: str) -> tuple[TableColumn, ...]:
    now = time.time()
    name = TableColumn("NAME", lambda row: row["name"], shrinks=True)
    age_column = TableColumn("AGE", lambda row: age(row.get("createdAt"), now))
    by = TableColumn("CREATED BY", lambda row: row.get("createdBy") or "", wide=True)
    if noun == "pvc":
        return (
            name,
            TableColumn("SIZE", lambda row: row["size"]),
            TableColumn("CLASS", lambda row: row["storageClass"]),
            TableColumn("ACCESS", lambda row: ",".join(row["accessModes"])),
            by,
            age_column,
        )
    scope = TableColumn("SCOPE", lambda row: row["scope"], wide=True)
    return (name, TableColumn("KEYS", lambda row: ",".join(row.get("keys") or ()), shrinks=True), scope, by, age_column)


def _describe(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    record = _find(session, noun, invocation.names[0])
    if not session.show(record, record["name"]):
        values = {member: value for member, value in record.items() if isinstance(value, dict)}
        show_facts(session.console, record_facts({name: value for name, value in record.items() if name not in values}))
        for member, content in values.items():
            session.console.data(f"\n{member.capitalize()}")
            for key, text in content.items():
                session.console.data(f"{key}: {text}")
    session.close()
    return OK


def _create(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    body: Json = {"name": invocation.names[0]}
    if noun != "credential":
        body["projectId"] = str(session.project()["id"])
    if invocation.get("description"):
        body["description"] = invocation.get("description")
    if noun == "pvc":
        body |= _claim(invocation)
    else:
        body["data"] = read_values(invocation)
    created = session.client.request("POST", _PATHS[noun], body)
    if not session.show(created, created["name"]):
        session.console.data(created["name"])
    session.close()
    return OK


def _claim(invocation: Invocation) -> Json:
    if not invocation.get("size"):
        raise UsageError("A persistent volume claim needs --size, such as --size 10Gi.")
    members: Json = {"size": invocation.get("size")}
    if invocation.get("storage-class"):
        members["storageClass"] = invocation.get("storage-class")
    if invocation.get("access-mode"):
        members["accessModes"] = invocation.get("access-mode")
    return members


def read_values(invocation: Invocation) -> dict[str, str]:
    """Keys and values from the flags, from the files that they name, and from standard input."""
    values: dict[str, str] = {}
    for pair in invocation.get("from-literal") or ():
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError("--from-literal takes KEY=VALUE.")
        values[key] = value
    for pair in invocation.get("from-file") or ():
        key, equals, path = pair.partition("=")
        if not equals:
            raise UsageError("--from-file takes KEY=FILE.")
        values[key] = _read(invocation, path)
    if not values:
        raise UsageError("Pass values with --from-literal KEY=VALUE or --from-file KEY=FILE.")
    return values


def _read(invocation: Invocation, path: str) -> str:
    if path == "-":
        return invocation.environment.stdin.read()
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from error


def _delete(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    for name in invocation.names:
        record = _find(session, noun, name)
        session.client.request("DELETE", f"{_PATHS[noun]}/{quote(record['id'])}")
        session.console.say(f"Deleted {_TITLES[noun]} {record['name']}.")
    session.close()
    return OK
