"""What `apply`, `diff` and `delete` do besides workloads: templates that files contain or use, and secrets for
credentials that are in files as plain text.
"""

import difflib
import json

from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.session.session import ServerSession
from fairlead.client import NameNotFound, ServerError
from fairlead.client.access.urls import quote
from fairlead.client.json_object import Json
from fairlead.client.kinds import load_kinds
from fairlead.formats.convert.from_yaml import TemplateFile, server_template
from fairlead.formats.intermediate import IntermediateWorkload
from fairlead.formats.yaml.inherit import ServerTemplate

_TEMPLATES, _SECRETS = "/api/v1/workload-templates", "/api/v1/secrets"
_TAKEN = 409


class Templates:
    """The server's templates, each requested once."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._rows: dict[str, list[Json]] = {}

    def fetch(self, namespace: str, name: str) -> ServerTemplate | None:
        """The template that documents in that namespace see under that name, or None. For `read_files`."""
        row = self.find(namespace, name)
        if row is None:
            return None
        return server_template(row["meta"]["id"], row["meta"]["workloadType"], self.manifest(row))

    def find(self, namespace: str, name: str) -> Json | None:
        """A template of the namespace's project; for the shared namespace, one with a wider scope."""
        project = namespace.removeprefix("runai-") if namespace.startswith("runai-") else ""
        rows = self._rows.get(name)
        if rows is None:
            page = self._session.client.request("GET", _TEMPLATES, limit=100, filterBy=[f"name=={name}"])
            rows = self._rows[name] = page["entries"]
        ids = [str(one["id"]) for one in self._projects(project)] if project else []
        for row in rows:
            meta = row["meta"]
            if (meta["scopeType"] == "project") == bool(project) and (not project or meta["scopeId"] in ids):
                return row
        return None

    def _projects(self, name: str) -> list[Json]:
        return self._session.client.projects(filterBy=[f"name=={name}"])

    def forget(self, name: str) -> None:
        """Drop a cached template after a change."""
        self._rows.pop(name, None)

    def manifest(self, row: Json) -> str:
        content = self._session.client.request("GET", f"{_TEMPLATES}/{quote(row['meta']['id'])}/manifest")
        return str(content["manifest"])


def apply_template(session: ServerSession, templates: Templates, template: TemplateFile) -> int:
    """Store the template's document on the server."""
    if session.invocation.get("dry-run"):
        row = templates.find(template.namespace, template.name)
        is_same = row is not None and templates.manifest(row) == template.manifest
        change = "unchanged" if is_same else "would be created" if row is None else "would be changed"
    else:
        body = {"manifest": template.manifest}
        change = session.client.request("PUT", f"{_TEMPLATES}/manifests", body)["change"]
    session.console.data(f"{template.name}: template {change}")
    return OK


def diff_template(session: ServerSession, templates: Templates, template: TemplateFile) -> int:
    row = templates.find(template.namespace, template.name)
    before = templates.manifest(row) if row is not None else ""
    if row is not None and not before:
        before = json.dumps({"spec": row["spec"]})
    lines = difflib.unified_diff(
        _lines(before), _lines(template.manifest), f"server/{template.name}", f"file/{template.name}", lineterm=""
    )
    differing = list(lines)
    if differing:
        session.console.data("\n".join(differing))
    return FAILED if differing else OK


def _lines(text: str) -> list[str]:
    return json.dumps(json.loads(text), indent=2, ensure_ascii=False).splitlines() if text else []


def delete_template(session: ServerSession, templates: Templates, template: TemplateFile) -> int:
    row = templates.find(template.namespace, template.name)
    if row is None:
        session.console.data(f"{template.name}: template not found")
    elif session.invocation.get("dry-run"):
        session.console.data(f"{template.name}: template would be deleted")
    else:
        rest = next(entry.rest for entry in load_kinds().values() if entry.title == row["meta"]["workloadType"])
        session.client.request("DELETE", f"{_TEMPLATES}/{rest}/{quote(row['meta']['id'])}")
        templates.forget(template.name)
        session.console.data(f"{template.name}: template deleted")
    return OK


def create_secrets(session: ServerSession, workload: IntermediateWorkload, project: Json) -> None:
    """Create the secrets that the workload's spec refers to, from credentials in the file."""
    for secret in workload.secrets:
        body = {"name": secret.name, "projectId": str(project["id"]), "data": secret.values}
        try:
            session.client.request("POST", _SECRETS, body)
        except ServerError as error:
            if error.status != _TAKEN:
                raise
            known = _find_secret(session, secret.name, project)
            session.client.request("PUT", f"{_SECRETS}/{quote(known['id'])}", {"data": secret.values})
        session.console.say(f"{workload.name}: its credentials are stored in the secret {secret.name}.")


def delete_secrets(session: ServerSession, workload: IntermediateWorkload, project: Json) -> None:
    """Delete the secrets that `create_secrets` has created; a secret that is still in use is kept."""
    for secret in workload.secrets:
        try:
            known = _find_secret(session, secret.name, project)
            session.client.request("DELETE", f"{_SECRETS}/{quote(known['id'])}")
        except (NameNotFound, ServerError):
            session.console.say(
                f"{workload.name}: the secret {secret.name} was not deleted: it is in use, or does not exist."
            )


def _find_secret(session: ServerSession, name: str, project: Json) -> Json:
    page = session.client.request("GET", _SECRETS, projectId=str(project["id"]), search=name, limit=100)
    for row in page["items"]:
        if row["name"] == name:
            secret: Json = row
            return secret
    raise NameNotFound(f"There is no secret '{name}' in the project.")
