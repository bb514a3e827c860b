"""The noun `policy`: read, apply and test the policies of an organization.

A policy file is YAML with `type`, `name`, `scope` (and `project`, `department` or `cluster`), `defaults`, `rules` and
`imposedAssets`. What `describe` prints can be applied again.
"""

import difflib
from typing import Any

import msgspec
import yaml

from fairlead.admission.policies.cases import TYPES, CaseFile, judge_case
from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.files.apply import CHECK_FLAGS, check_files
from fairlead.cli.flags import OUTPUT, PROJECT, Flag, UsageError
from fairlead.cli.session.input_files import read_text
from fairlead.cli.session.session import ServerSession, find_named
from fairlead.cli.terminal.console import Console
from fairlead.cli.terminal.output import Listing, chosen_format, render
from fairlead.cli.terminal.tables import TableColumn
from fairlead.client.json_object import Json
from fairlead.client.suggest import suggest
from fairlead.formats.policies import explain_rules

_BASE = "/api/v2/policy"
#: The first type that is declared.
_DEFAULT_TYPE = next(iter(TYPES))
_SCOPES = ("tenant", "cluster", "department", "project")
_MEMBERS = ("type", "name", "scope", "project", "department", "cluster", "defaults", "rules", "imposedAssets")


def commands(_noun: str) -> tuple[Command, ...]:
    type = Flag("type", "Type of workload", choices=tuple(TYPES), default=_DEFAULT_TYPE)
    scope = Flag("scope", "Scope of the policy", choices=_SCOPES, default="tenant")
    department = Flag("department", "Department, for that scope", placeholder="NAME")
    files = Flag("filename", "File with policies in YAML; - is standard input", "string", "f", True)
    where = (type, scope, PROJECT, department)
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
    columns = (
        TableColumn("TYPE", lambda row: row["type"]),
        TableColumn("NAME", lambda row: row["meta"]["name"], shrinks=True),
        TableColumn("SCOPE", lambda row: _scope_name(row["meta"])),
        TableColumn("CHANGED BY", lambda row: row["meta"]["updatedBy"]),
    )
    rows = session.client.request("GET", _BASE, includeFallbackPolicies=True)["policies"]
    listing = Listing(columns, lambda row: str(row["meta"]["name"]), "No policies found.")
    listing.show(session.console, chosen_format(invocation, session.settings), rows, not invocation.get("no-headers"))
    session.close()
    return OK


def _scope_name(meta: Json) -> str:
    id = meta.get(f"{meta['scope']}Id") if meta["scope"] in ("project", "department") else ""
    return f"{meta['scope']} {id}" if id else str(meta["scope"])


def _path(type: str) -> str:
    return f"{_BASE}/{TYPES[type].rest}"


def _scope_query(session: ServerSession, scope: str, names: Json) -> Json:
    """The scope with the ids of what the names stand for."""
    if scope == "project":
        name = names.get("project")
        rows = session.client.projects()
        return {
            "scope": scope,
            "projectId": int((find_named(rows, name, "project") if name else session.project())["id"]),
        }
    if scope == "department":
        if not names.get("department"):
            raise UsageError("Name the department of the policy.")
        return {
            "scope": scope,
            "departmentId": find_named(session.client.departments(), names["department"], "department")["id"],
        }
    return {"scope": scope}


def _asked_scope(session: ServerSession) -> Json:
    invocation = session.invocation
    scope = invocation.get("scope") or ("project" if invocation.get("project") else "tenant")
    return _scope_query(session, scope, {name: invocation.get(name) for name in ("project", "department")})


def _describe(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    type = invocation.get("type") or _DEFAULT_TYPE
    record = session.client.request("GET", _path(type), **_asked_scope(session))
    if not session.show(record, record["meta"]["name"]):
        session.console.data(render(session.console, "yaml", _as_file(type, record)))
    session.close()
    return OK


def _as_file(type: str, record: Json) -> Json:
    meta = record["meta"]
    names = {name: str(meta[f"{name}Id"]) for name in ("project", "department", "cluster") if meta.get(f"{name}Id")}
    content = {name: value for name, value in record["policy"].items() if value}
    return {"type": type, "name": meta["name"], "scope": meta["scope"], **names, **content}


def _effective(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    type = invocation.get("type") or _DEFAULT_TYPE
    answer = session.client.request("GET", f"{_path(type)}/effective", projectId=session.project()["id"])
    if not session.show(answer["effective"], type):
        session.console.data(render(session.console, "yaml", answer["effective"]))
    session.close()
    return OK


def _read(invocation: Invocation) -> list[Json]:
    paths = invocation.get("filename") or []
    if not paths:
        raise UsageError("Pass policies with --filename FILE; - is standard input.")
    return [document for path in paths for document in read_policies(read_text(invocation, path), path)]


def read_policies(text: str, path: str) -> list[Json]:
    """The policies in the text of a file, each checked for its members."""
    documents = []
    for number, document in enumerate(_documents(text, path), 1):
        where = f"{path}, document {number}"
        if not isinstance(document, dict):
            raise UsageError(f"{where} is not a policy: it must be an object.")
        for name in document:
            if name not in _MEMBERS:
                raise UsageError(f"{where}: {name} is not a member of a policy.{suggest(str(name), _MEMBERS)}")
        for name, known in (("type", tuple(TYPES)), ("scope", _SCOPES)):
            if document.get(name) not in known:
                raise UsageError(f"{where}: {name} must be one of {', '.join(known)}.")
        if not document.get("name"):
            raise UsageError(f"{where}: name is missing.")
        documents.append(document)
    return documents


def _documents(text: str, path: str) -> list[Any]:
    try:
        return [one for one in yaml.safe_load_all(text) if one is not None]
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not valid YAML: {error}") from None


def _body(session: ServerSession, document: Json) -> Json:
    meta = {"name": document["name"], **_scope_query(session, document["scope"], document)}
    return {"meta": meta, "policy": {name: document.get(name) for name in ("defaults", "rules", "imposedAssets")}}


def _apply(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    is_dry_run = bool(invocation.get("dry-run"))
    for document in _read(invocation):
        body = _body(session, document)
        session.client.request("PUT", _path(document["type"]), body, validateOnly=is_dry_run)
        word = "is valid" if is_dry_run else "applied"
        session.console.say(f"Policy {document['name']} for {document['type']} {word}.")
    session.close()
    return OK


def _diff(invocation: Invocation) -> int:
    """Exit code 1 if there are differences, as `diff` has it."""
    session = ServerSession(invocation)
    code = OK
    for document in _read(invocation):
        scope = _scope_query(session, document["scope"], document)
        entries = session.client.request("GET", _BASE)["policies"]
        has_one = any(
            entry["type"] == document["type"] and all(entry["meta"].get(name) == value for name, value in scope.items())
            for entry in entries
        )
        live = session.client.request("GET", _path(document["type"]), **scope)["policy"] if has_one else {}
        before, after = (
            render(
                session.console, "yaml", {name: one.get(name) or {} for name in ("defaults", "rules", "imposedAssets")}
            )
            for one in (live, document)
        )
        lines = list(
            difflib.unified_diff(before.splitlines(), after.splitlines(), "server", document["name"], lineterm="")
        )
        if lines:
            session.console.data("\n".join(lines))
            code = FAILED
    session.close()
    return code


def _delete(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    type = invocation.get("type") or _DEFAULT_TYPE
    session.client.request("DELETE", _path(type), **_asked_scope(session))
    session.console.say(f"Deleted the policy for {type}.")
    session.close()
    return OK


def _explain(invocation: Invocation) -> int:
    type = TYPES[invocation.get("type") or _DEFAULT_TYPE]
    try:
        text = explain_rules(type, invocation.names[0])
    except KeyError as error:
        raise UsageError(f"{type.rest} have no field {error.args[0]}.") from None
    Console(invocation).data(text)
    return OK


def _test(invocation: Invocation) -> int:
    console = Console(invocation)
    results: list[Json] = []
    for path in invocation.names:
        for document in _documents(read_text(invocation, path), path):
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
