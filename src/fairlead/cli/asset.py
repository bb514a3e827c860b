"""The nouns `environment`, `compute` and `datasource`: pieces of a workload under names of their own.

`submit` takes them by name (`--environment`, `--compute`, `--datasource`): the interface for workloads knows none of
them, so what they hold is put into the request here, below what flags and files say.
"""

import time
from typing import Any

from fairlead.cli.command import Command, Invocation, one
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT, PROJECT, Flag, UsageError
from fairlead.cli.json_file import read_json_file
from fairlead.cli.output import Listing, chosen_format, render
from fairlead.cli.session import NotFound, Session, find_named
from fairlead.cli.tables import Column
from fairlead.cli.times import age
from fairlead.client.client import quote

Json = dict[str, Any]
_BASE = "/api/v1/asset"
NOUNS = ("environment", "compute", "datasource")
_WORDS = {"environment": "environment", "compute": "compute resource", "datasource": "data source"}
#: The kinds of data sources: their path below `datasource/`, and the list of a workload's storage that they go into.
_SOURCES = {
    "git": ("git", "git"),
    "hostPath": ("host-path", "hostPath"),
    "nfs": ("nfs", "nfs"),
    "pvc": ("pvc", "pvc"),
    "s3": ("s3", "s3"),
    "config-map": ("config-map", "configMapVolume"),
    "secret-volume": ("secrets", "secretVolume"),
}
#: Members of assets that name a credential, and the workload's that names the credential's secret instead.
_CREDENTIALS = {
    "passwordAssetId": "passwordSecret",
    "credentialId": "passwordSecret",
    "accessKeyAssetId": "accessKeySecret",
    "credentialAssetId": "secret",
}
#: What an environment says of the process stands in a workload at the top; the rest is its security.
_OF_PROCESS = frozenset(
    ("image", "imagePullPolicy", "command", "args", "workingDir", "createHomeDir", "probes", "tty", "stdin")
)
_NOT_TAKEN = frozenset({"connections", "overrideUidGidInWorkspace"})


def commands(noun: str) -> tuple[Command, ...]:
    word = _WORDS[noun]
    kind = (Flag("kind", "The kind of data source", choices=tuple(_SOURCES), default="nfs"),)
    file = Flag("file", "JSON file with the spec; - is standard input", short="f", placeholder="FILE")
    description = Flag("description", "What it is for", placeholder="TEXT")
    made = (PROJECT, file, description, *(kind if noun == "datasource" else ()), *OUTPUT)
    return (
        Command("list", f"List {word}s", lambda call: _list(call, noun), (PROJECT, *OUTPUT), aliases=("ls",)),
        Command("describe", f"Show one {word}", lambda call: _describe(call, noun), (PROJECT, *OUTPUT), "NAME", 1, 1),
        Command("create", f"Create {one(word)} for the project", lambda call: _create(call, noun), made, "NAME", 1, 1),
        Command(
            "delete",
            f"Delete {word}s; workloads made from them stay",
            lambda call: _delete(call, noun),
            (PROJECT,),
            "NAME...",
            1,
            None,
        ),
    )


def _rows(session: Session, noun: str) -> list[Json]:
    """Those that workloads of the project can use."""
    rows: list[Json] = session.client.request("GET", f"{_BASE}/{noun}", complyToProject=int(session.project()["id"]))[
        "entries"
    ]
    return rows


def find_asset(session: Session, noun: str, name: str) -> Json:
    """The asset of that name or id."""
    return find_named(_rows(session, noun), name, _WORDS[noun])


def _path(noun: str, kind: str) -> str:
    return f"{_BASE}/{noun}/{_SOURCES[kind][0]}" if noun == "datasource" else f"{_BASE}/{noun}"


def _list(invocation: Invocation, noun: str) -> int:
    session = Session(invocation)
    now = time.time()
    columns = (
        Column("NAME", lambda row: row["meta"]["name"], shrinks=True),
        Column("KIND", lambda row: row["meta"]["kind"]),
        Column("SCOPE", lambda row: row["meta"]["scope"]),
        Column("CREATED BY", lambda row: row["meta"]["createdBy"], wide=True),
        Column("ID", lambda row: row["meta"]["id"], wide=True),
        Column("AGE", lambda row: age(row["meta"].get("createdAt"), now)),
    )
    listing = Listing(columns, lambda row: str(row["meta"]["name"]), f"There are no {_WORDS[noun]}s.")
    form = chosen_format(invocation, session.settings)
    listing.show(session.console, form, _rows(session, noun), not invocation.get("no-headers"))
    session.close()
    return OK


def _describe(invocation: Invocation, noun: str) -> int:
    session = Session(invocation)
    found = find_asset(session, noun, invocation.names[0])
    if not session.show(found, found["meta"]["name"]):
        session.console.data(render(session.console, "yaml", found))
    session.close()
    return OK


def _create(invocation: Invocation, noun: str) -> int:
    session = Session(invocation)
    if invocation.get("file") is None:
        raise UsageError("Give the spec with --file FILE; - is standard input.")
    content = read_json_file(invocation, invocation.get("file"))
    project = int(session.project()["id"])
    meta: Json = {"name": invocation.names[0], "scope": "project", "projectId": project}
    if invocation.get("description"):
        meta["description"] = invocation.get("description")
    path = _path(noun, invocation.get("kind", "nfs"))
    made = session.client.request("POST", path, {"meta": meta, "spec": content.get("spec", content)})
    if not session.show(made, made["meta"]["name"]):
        session.console.data(made["meta"]["name"])
    session.close()
    return OK


def _delete(invocation: Invocation, noun: str) -> int:
    session = Session(invocation)
    for name in invocation.names:
        found = find_asset(session, noun, name)["meta"]
        session.client.request("DELETE", f"{_path(noun, found['kind'])}/{quote(found['id'])}")
        session.console.say(f"Deleted {_WORDS[noun]} {found['name']}.")
    session.close()
    return OK


def apply_assets(session: Session, spec: Json) -> None:
    """Put what the named assets hold into a spec, below what stands there already."""
    invocation = session.invocation
    if invocation.get("environment"):
        _apply_environment(session, find_asset(session, "environment", invocation.get("environment"))["spec"], spec)
    if invocation.get("compute"):
        found = find_asset(session, "compute", invocation.get("compute"))["spec"]
        spec["compute"] = {**_without_nulls(found), **spec.get("compute", {})}
    for name in invocation.get("datasource", ()):
        found = find_asset(session, "datasource", name)
        # In the list of all data sources the spec stands below its kind.
        (held,) = found["spec"].values()
        into = _SOURCES[found["meta"]["kind"]][1]
        spec.setdefault("storage", {}).setdefault(into, []).append(_mounted(session, found, held))


def _apply_environment(session: Session, held: Json, spec: Json) -> None:
    given = {name: value for name, value in _without_nulls(held).items() if name not in _NOT_TAKEN}
    variables = [_variable(session, one) for one in given.pop("environmentVariables", ())]
    named = {one["name"] for one in spec.get("environmentVariables", ())}
    if variables:
        spec["environmentVariables"] = [
            *(one for one in variables if one["name"] not in named),
            *spec.get("environmentVariables", ()),
        ]
    for name, value in given.items():
        place = spec if name in _OF_PROCESS else spec.setdefault("security", {})
        place.setdefault(name, value)
    if held.get("connections"):
        session.console.say("The connections of the environment are not taken over; give --external-url or --port.")


def _variable(session: Session, held: Json) -> Json:
    """A variable of an environment as a workload has it: a credential is named by its secret there."""
    variable = {name: value for name, value in _without_nulls(held).items() if name != "description"}
    credential = variable.pop("credential", None)
    if credential:
        variable["secret"] = {"name": _secret_of(session, credential["assetId"]), "key": credential["key"]}
    return variable


def _mounted(session: Session, found: Json, held: Json) -> Json:
    item = _without_nulls(held)
    for member, instead in _CREDENTIALS.items():
        if member in item:
            item[instead] = _secret_of(session, item.pop(member))
    if found["meta"]["kind"] == "pvc":
        # The asset has made its claim already.
        item = {name: value for name, value in item.items() if name in ("path", "readOnly", "dataSharing")}
        item |= {"existingPvc": True, "claimName": found["clusterInfo"]["resources"][0]["name"]}
    return item


def _secret_of(session: Session, credential_id: str) -> str:
    for row in session.client.request("GET", f"{_BASE}/credentials")["entries"]:
        if row["meta"]["id"] == credential_id:
            return str(row["clusterInfo"]["resources"][0]["name"])
    raise NotFound(f"The credential {credential_id} that the asset names is not there.")


def _without_nulls(members: Json) -> Json:
    return {name: value for name, value in members.items() if value is not None}
