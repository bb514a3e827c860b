"""The nouns `environment`, `compute` and `datasource`: named parts of a workload.

`submit` takes them by name (`--environment`, `--compute`, `--datasource`). The workload API does not know assets, so
their content is put into the request here; flags and files win over it.
"""

import time
from collections.abc import Iterator

from fairlead.admission.assets import HeldAsset, credentials_of, render_assets
from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT, PROJECT, Flag, UsageError
from fairlead.cli.session.input_files import read_json_file
from fairlead.cli.session.session import ServerSession, find_named
from fairlead.cli.terminal.output import Listing, chosen_format, render
from fairlead.cli.terminal.tables import TableColumn
from fairlead.cli.terminal.times import age
from fairlead.client import NameNotFound
from fairlead.client.access.urls import quote
from fairlead.client.json_object import Json
from fairlead.model.english import with_article

_BASE = "/api/v1/asset"
NOUNS = ("environment", "compute", "datasource")
_NAMES = {"environment": "environment", "compute": "compute resource", "datasource": "data source"}
#: The kinds of data sources, and their paths below `datasource/`.
_SOURCES = {
    "git": "git",
    "hostPath": "host-path",
    "nfs": "nfs",
    "pvc": "pvc",
    "s3": "s3",
    "config-map": "config-map",
    "secret-volume": "secrets",
}


def commands(noun: str) -> tuple[Command, ...]:
    word = _NAMES[noun]
    kind = (Flag("kind", "Kind of data source", choices=tuple(_SOURCES), default="nfs"),)
    file = Flag("file", "JSON file with the spec; - is standard input", short="f", placeholder="FILE")
    description = Flag("description", "Description", placeholder="TEXT")
    create_flags = (PROJECT, file, description, *(kind if noun == "datasource" else ()), *OUTPUT)
    return (
        Command("list", f"List {word}s", lambda call: _list(call, noun), (PROJECT, *OUTPUT), aliases=("ls",)),
        Command("describe", f"Show one {word}", lambda call: _describe(call, noun), (PROJECT, *OUTPUT), "NAME", 1, 1),
        Command(
            "create",
            f"Create {with_article(word)} in the project",
            lambda call: _create(call, noun),
            create_flags,
            "NAME",
            1,
            1,
        ),
        Command(
            "delete",
            f"Delete {word}s; workloads that used them keep running",
            lambda call: _delete(call, noun),
            (PROJECT,),
            "NAME...",
            1,
            None,
        ),
    )


def _rows(session: ServerSession, noun: str) -> list[Json]:
    """The assets that workloads of the project can use."""
    rows: list[Json] = session.client.request("GET", f"{_BASE}/{noun}", complyToProject=int(session.project()["id"]))[
        "entries"
    ]
    return rows


def find_asset(session: ServerSession, noun: str, name: str) -> Json:
    """The asset with that name or id."""
    return find_named(_rows(session, noun), name, _NAMES[noun])


def _path(noun: str, kind: str) -> str:
    return f"{_BASE}/{noun}/{_SOURCES[kind]}" if noun == "datasource" else f"{_BASE}/{noun}"


def _list(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    now = time.time()
    columns = (
        TableColumn("NAME", lambda row: row["meta"]["name"], shrinks=True),
        TableColumn("KIND", lambda row: row["meta"]["kind"]),
        TableColumn("SCOPE", lambda row: row["meta"]["scope"]),
        TableColumn("CREATED BY", lambda row: row["meta"]["createdBy"], wide=True),
        TableColumn("ID", lambda row: row["meta"]["id"], wide=True),
        TableColumn("AGE", lambda row: age(row["meta"].get("createdAt"), now)),
    )
    listing = Listing(columns, lambda row: str(row["meta"]["name"]), f"No {_NAMES[noun]}s found.")
    form = chosen_format(invocation, session.settings)
    listing.show(session.console, form, _rows(session, noun), not invocation.get("no-headers"))
    session.close()
    return OK


def _describe(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    asset = find_asset(session, noun, invocation.names[0])
    if not session.show(asset, asset["meta"]["name"]):
        session.console.data(render(session.console, "yaml", asset))
    session.close()
    return OK


def _create(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    if invocation.get("file") is None:
        raise UsageError("Pass the spec with --file FILE; - is standard input.")
    content = read_json_file(invocation, invocation.get("file"))
    project = int(session.project()["id"])
    meta: Json = {"name": invocation.names[0], "scope": "project", "projectId": project}
    if invocation.get("description"):
        meta["description"] = invocation.get("description")
    path = _path(noun, invocation.get("kind", "nfs"))
    created = session.client.request("POST", path, {"meta": meta, "spec": content.get("spec", content)})
    if not session.show(created, created["meta"]["name"]):
        session.console.data(created["meta"]["name"])
    session.close()
    return OK


def _delete(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    for name in invocation.names:
        asset = find_asset(session, noun, name)["meta"]
        session.client.request("DELETE", f"{_path(noun, asset['kind'])}/{quote(asset['id'])}")
        session.console.say(f"Deleted {_NAMES[noun]} {asset['name']}.")
    session.close()
    return OK


def apply_assets(session: ServerSession, spec: Json) -> None:
    """Put the content of the named assets into a spec; members that the spec has already win."""
    assets = [find_asset(session, noun, name) for noun, name in _named(session.invocation) if name]
    if not assets:
        return
    contents = [_read_asset(session, one) for one in assets]
    _put_below(spec, render_assets(contents, _find_secrets(session, credentials_of(contents))))


def _named(invocation: Invocation) -> Iterator[tuple[str, str]]:
    yield from ((noun, invocation.get(noun, "")) for noun in ("environment", "compute"))
    yield from (("datasource", name) for name in invocation.get("datasource", ()))


def _read_asset(session: ServerSession, asset: Json) -> HeldAsset:
    meta, spec = asset["meta"], asset["spec"]
    kind = meta["kind"]
    if kind in _SOURCES:
        # The list of all data sources nests each spec below its kind.
        (spec,) = spec.values()
    if spec.get("connections"):
        session.console.say("The environment's connections are ignored; use --external-url or --port instead.")
    claim = asset["clusterInfo"]["resources"][0]["name"] if kind == "pvc" else ""
    given = {name: value for name, value in spec.items() if name != "connections"}
    return HeldAsset(kind=kind, name=meta["name"], spec=given, claim_name=claim)


def _find_secrets(session: ServerSession, credentials: set[str]) -> dict[str, str]:
    """The names of the secrets that hold the credentials, by the credentials' ids."""
    rows = session.client.request("GET", f"{_BASE}/credentials")["entries"] if credentials else ()
    secrets = {row["meta"]["id"]: str(row["clusterInfo"]["resources"][0]["name"]) for row in rows}
    for missing in sorted(credentials - secrets.keys()):
        raise NameNotFound(f"The asset refers to credential {missing}, which does not exist.")
    return secrets


def _put_below(spec: Json, given: Json) -> None:
    own_variables = {one["name"] for one in spec.get("environmentVariables", ())}
    for name, value in given.items():
        if name == "environmentVariables":
            others = [one for one in value if one["name"] not in own_variables]
            spec[name] = [*others, *spec.get(name, ())]
        elif name == "storage":
            for volumes, items in value.items():
                spec.setdefault(name, {}).setdefault(volumes, []).extend(items)
        elif name in ("compute", "security"):
            spec[name] = {**value, **spec.get(name, {})}
        else:
            spec.setdefault(name, value)
