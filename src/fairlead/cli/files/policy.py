"""The noun `policy`: read, apply and test the policies of an organization.

A policy file is YAML with `type`, `name`, `scope` (and `project`, `department` or `cluster`), `defaults`, `rules` and
`imposedAssets`. What `describe` prints can be applied again.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from fairlead.admission.policies.cases import TYPES, CaseFile, judge_case
from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.files.apply import CHECK_FLAGS, check_files
from fairlead.cli.files.policy_files import (
    BASE,
    CONTENT,
    SCOPES,
    apply_policy,
    complain_of_no_effect,
    diff_policy,
    policy_path,
    read_documents,
    read_policies,
    scope_query,
)
from fairlead.cli.flags import OUTPUT, PROJECT, Flag, UsageError
from fairlead.cli.session.input_files import read_text
from fairlead.cli.session.session import ServerSession
from fairlead.cli.terminal.console import Console
from fairlead.cli.terminal.output import Listing, chosen_format, render
from fairlead.cli.terminal.tables import TableColumn
from fairlead.client.errors import ServerError
from fairlead.client.json_object import Json
from fairlead.formats.policies import explain_rules

#: The first type that is declared.
_DEFAULT_TYPE = next(iter(TYPES))


def commands(_noun: str) -> tuple[Command, ...]:
    type = Flag("type", "Type of workload", choices=tuple(TYPES), default=_DEFAULT_TYPE)
    scope = Flag("scope", "Scope of the policy", choices=SCOPES, default="tenant")
    department = Flag("department", "Department, for that scope", placeholder="NAME")
    files = Flag("filename", "File with policies in YAML; - is standard input", "string", "f", True)
    cluster = Flag("cluster", "Cluster, for that scope", placeholder="NAME")
    where = (type, scope, PROJECT, department, cluster)
    return (
        Command("list", "List policies", _list, OUTPUT, aliases=("ls",)),
        Command("describe", "Show the policy of a scope, in the form that `apply` reads", _describe, (*where, *OUTPUT)),
        Command(
            "effective",
            "Show what holds in a project, and where each rule comes from",
            _effective,
            (type, PROJECT, *OUTPUT),
        ),
        Command(
            "apply",
            "Create or replace the policies in files",
            _apply,
            (files, Flag("dry-run", "Only check them", "boolean")),
        ),
        Command("diff", "Compare the policies in files with the server", _diff, (files,)),
        Command("delete", "Delete the policy of a scope", _delete, where),
        Command("check", "Check workloads in files against the policies of their project", check_files, CHECK_FLAGS),
        Command("explain", "Show which rules fit a field", _explain, (type,), "FIELD", 1, 1),
        Command("test", "Run test cases of policies from files, without a server", _test, OUTPUT, "FILE...", 1, None),
    )


def _list(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    rows = session.client.request("GET", BASE, includeFallbackPolicies=True)["policies"]
    owners = _owners_of(session, [row["meta"] for row in rows])
    columns = (
        TableColumn("TYPE", lambda row: row["type"]),
        TableColumn("NAME", lambda row: row["meta"]["name"], shrinks=True),
        TableColumn("SCOPE", lambda row: f"{row['meta']['scope']} {_owner_in(row['meta'], owners)}".rstrip()),
        TableColumn("CHANGED BY", lambda row: row["meta"]["updatedBy"]),
    )
    listing = Listing(columns, lambda row: str(row["meta"]["name"]), "No policies found.")
    listing.show(session.console, chosen_format(invocation, session.settings), rows, not invocation.get("no-headers"))
    session.close()
    return OK


def _owners_of(session: ServerSession, metas: Sequence[Json]) -> dict[tuple[str, str], str]:
    """The names of projects and departments that have these policies, by scope and id, as far as one may see them."""
    names: dict[tuple[str, str], str] = {}
    for scope, load in (("project", session.client.projects), ("department", session.client.departments)):
        if any(meta["scope"] == scope for meta in metas):
            with suppress(ServerError):
                names |= {(scope, str(owner["id"])): str(owner["name"]) for owner in load()}
    return names


def _owner_in(meta: Json, owners: Mapping[tuple[str, str], str]) -> str:
    """The project or department that has the policy; its id if its name is not known."""
    scope = str(meta["scope"])
    id = str(meta.get(f"{scope}Id", "")) if scope in ("project", "department") else ""
    return owners.get((scope, id), id)


def _asked_scope(session: ServerSession) -> Json:
    invocation = session.invocation
    scope = invocation.get("scope") or ("project" if invocation.get("project") else "tenant")
    return scope_query(session, scope, {name: invocation.get(name) for name in SCOPES})


def _describe(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    type = invocation.get("type") or _DEFAULT_TYPE
    record = session.client.request("GET", policy_path(type), **_asked_scope(session))
    if not session.show(record, record["meta"]["name"]):
        session.console.data(render(session.console, "yaml", _as_file(session, type, record)))
    complain_of_no_effect(session, record)
    session.close()
    return OK


def _as_file(session: ServerSession, type: str, record: Json) -> Json:
    meta = record["meta"]
    names = {name: str(meta[f"{name}Id"]) for name in ("project", "department", "cluster") if meta.get(f"{name}Id")}
    if owner := _owner_in(meta, _owners_of(session, [meta])):
        names[meta["scope"]] = owner
    content = {name: record["policy"][name] for name in CONTENT if record["policy"].get(name)}
    return {"type": type, "name": meta["name"], "scope": meta["scope"], **names, **content}


def _effective(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    type = invocation.get("type") or _DEFAULT_TYPE
    answer = session.client.request("GET", f"{policy_path(type)}/effective", projectId=session.project()["id"])
    if not session.show(answer["effective"], type):
        session.console.data(render(session.console, "yaml", answer["effective"]))
    session.close()
    return OK


def _read(session: ServerSession) -> list[Json]:
    invocation = session.invocation
    paths = invocation.get("filename") or []
    if not paths:
        raise UsageError("Pass policies with --filename FILE; - is standard input.")
    return [
        document
        for path in paths
        for document in read_policies(read_text(invocation, path), path, session.console.complain)
    ]


def _apply(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    for document in _read(session):
        apply_policy(session, document)
    session.close()
    return OK


def _diff(invocation: Invocation) -> int:
    """Exit code 1 if there are differences, as `diff` has it."""
    session = ServerSession(invocation)
    codes = [diff_policy(session, document) for document in _read(session)]
    session.close()
    return max(codes, default=OK)


def _delete(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    type = invocation.get("type") or _DEFAULT_TYPE
    session.client.request("DELETE", policy_path(type), **_asked_scope(session))
    session.console.say(f"Deleted the policy for {type}.")
    session.close()
    return OK


def _explain(invocation: Invocation) -> int:
    type = TYPES[invocation.get("type") or _DEFAULT_TYPE]
    try:
        text = explain_rules(type, invocation.names[0])
    except KeyError as error:
        name, hint = error.args
        raise UsageError(f"{type.rest} have no field {name}{hint or '.'}") from None
    Console(invocation).data(text)
    return OK


def _test(invocation: Invocation) -> int:
    console = Console(invocation)
    results: list[Json] = []
    for path in invocation.names:
        for document in read_documents(read_text(invocation, path), path):
            try:
                file = msgspec.convert(document, CaseFile)
            except msgspec.ValidationError as error:
                raise UsageError(f"{path} is not a file of policy cases: {error}") from None
            if file.type not in TYPES:
                raise UsageError(f"{path}: type must be one of {', '.join(TYPES)}.")
            results += [{"file": path, "name": case.name, "differences": judge_case(file, case)} for case in file.cases]
    failed = [result for result in results if result["differences"]]
    form = chosen_format(invocation, {})
    if form in ("json", "yaml"):
        console.data(render(console, form, results))
    else:
        for result in failed:
            console.data(f"{console.paint('FAILED', 'red')}  {result['file']}: {result['name']}")
            for difference in result["differences"]:
                console.data(f"        {difference}")
        console.data(f"{len(results)} cases, {len(failed)} failed.")
    return FAILED if failed or not results else OK
