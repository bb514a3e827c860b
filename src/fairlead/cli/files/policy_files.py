"""Policies in files: reading them, also in the older form of custom resources, and bringing them to the server.

Used by the noun `policy`, and by `apply`, `diff` and `delete` for policies between the workloads of a file.
"""

import difflib
from collections.abc import Callable
from typing import Any

import yaml

from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.flags import UsageError
from fairlead.cli.session.session import ServerSession, find_named
from fairlead.cli.terminal.output import render
from fairlead.client.json_object import Json
from fairlead.client.suggest import suggest
from fairlead.formats.legacy_policies import is_legacy, read_legacy_policy
from fairlead.kinds.policies import POLICY_TYPES
from fairlead.model.errors import Invalid

TYPES = {type.key: type for type in POLICY_TYPES.values()}
BASE = "/api/v2/policy"
SCOPES = ("tenant", "cluster", "department", "project")
_MEMBERS = ("type", "name", "scope", "project", "department", "cluster", "defaults", "rules", "imposedAssets")
#: Called with each line about what a policy in the older form loses.
OnLoss = Callable[[str], object]
CONTENT = ("defaults", "rules", "imposedAssets")


def policy_path(type: str) -> str:
    return f"{BASE}/{TYPES[type].rest}"


def scope_query(session: ServerSession, scope: str, names: Json) -> Json:
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
            raise UsageError("The policy has the scope department; name the department.")
        return {
            "scope": scope,
            "departmentId": find_named(session.client.departments(), names["department"], "department")["id"],
        }
    if scope == "cluster" and names.get("cluster"):
        return {"scope": scope, "clusterId": session.find_cluster(names["cluster"])["uuid"]}
    return {"scope": scope}


def read_policies(text: str, path: str, on_loss: OnLoss = lambda line: None) -> list[Json]:
    """The policies in the text of a file, each checked for its members."""
    documents = []
    for number, document in enumerate(read_documents(text, path), 1):
        where = f"{path}, document {number}"
        if is_legacy(document):
            documents.append(_convert_legacy(document, where, on_loss))
            continue
        if not isinstance(document, dict):
            raise UsageError(f"{where} is not a policy: it must be an object.")
        for name in document:
            if name not in _MEMBERS:
                raise UsageError(f"{where}: {name} is not a member of a policy.{suggest(str(name), _MEMBERS)}")
        for name, known in (("type", tuple(TYPES)), ("scope", SCOPES)):
            if document.get(name) not in known:
                raise UsageError(f"{where}: {name} must be one of {', '.join(known)}.")
        if not document.get("name"):
            raise UsageError(f"{where}: name is missing.")
        documents.append(document)
    return documents


def read_legacy_policies(text: str, path: str, on_loss: OnLoss) -> list[Json]:
    """The policies in the older form that are in a file with workloads."""
    documents = enumerate(read_documents(text, path), 1)
    return [
        _convert_legacy(each, f"{path}, document {number}", on_loss) for number, each in documents if is_legacy(each)
    ]


def _convert_legacy(document: Json, where: str, on_loss: OnLoss) -> Json:
    try:
        policy = read_legacy_policy(document)
    except Invalid as error:
        lines = [f"{issue.field}: {issue.details}" for issue in error.issues]
        raise UsageError(f"{where}: {document['kind']} cannot be read:\n  " + "\n  ".join(lines)) from None
    for loss in policy.losses:
        on_loss(f"{policy.name}: {loss}")
    place = {"scope": "project", "project": policy.project} if policy.project else {"scope": "tenant"}
    content = {"defaults": policy.defaults, "rules": policy.rules}
    return {"type": policy.type.key, "name": policy.name, **place, **content}


def read_documents(text: str, path: str) -> list[Any]:
    try:
        return [one for one in yaml.safe_load_all(text) if one is not None]
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not valid YAML: {error}") from None


def _body(session: ServerSession, document: Json) -> Json:
    meta = {"name": document["name"], **scope_query(session, document["scope"], document)}
    return {"meta": meta, "policy": {name: document.get(name) for name in CONTENT}}


def apply_policy(session: ServerSession, document: Json) -> int:
    is_dry_run = bool(session.invocation.get("dry-run"))
    path = policy_path(document["type"])
    record = session.client.request("PUT", path, _body(session, document), validateOnly=is_dry_run)
    word = "is valid" if is_dry_run else "applied"
    session.console.say(f"Policy {document['name']} for {document['type']} {word}.")
    complain_of_no_effect(session, record)
    return OK


def complain_of_no_effect(session: ServerSession, record: Json) -> None:
    """Print why a policy has no effect, if the server says so."""
    if status := record["policy"].get("status"):
        session.console.complain(status["validation"]["errorMessage"])


def delete_policy(session: ServerSession, document: Json) -> int:
    if session.invocation.get("dry-run"):
        session.console.say(f"Policy {document['name']} for {document['type']} would be deleted.")
        return OK
    scope = scope_query(session, document["scope"], document)
    session.client.request("DELETE", policy_path(document["type"]), **scope)
    session.console.say(f"Policy {document['name']} for {document['type']} deleted.")
    return OK


def diff_policy(session: ServerSession, document: Json) -> int:
    """Print how the policy on the server differs from the document; returns the exit code of `diff`."""
    scope = scope_query(session, document["scope"], document)
    entries = session.client.request("GET", BASE)["policies"]
    has_one = any(
        entry["type"] == document["type"] and all(entry["meta"].get(name) == value for name, value in scope.items())
        for entry in entries
    )
    live = session.client.request("GET", policy_path(document["type"]), **scope)["policy"] if has_one else {}
    before, after = (
        render(session.console, "yaml", {name: one.get(name) or {} for name in CONTENT}) for one in (live, document)
    )
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), "server", document["name"], lineterm=""))
    if lines:
        session.console.data("\n".join(lines))
    return FAILED if lines else OK
