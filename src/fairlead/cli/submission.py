"""`submit`: makes the creation request from a file, flags and the words after `--`, and sends it."""

import shlex
from collections.abc import Callable, Sequence
from typing import Any

from fairlead.cli import follow
from fairlead.cli.asset import apply_assets
from fairlead.cli.command import Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import Parsed, UsageError
from fairlead.cli.json_file import read_json_file
from fairlead.cli.output import chosen_format, render
from fairlead.cli.session import Session
from fairlead.cli.settings import next_command
from fairlead.cli.spec_flags import Entry, apply_flags, load_table
from fairlead.cli.template import find_template
from fairlead.client import ServerError
from fairlead.client.kinds import KindEntry

Json = dict[str, Any]

#: How often a taken number behind --name-prefix is tried again with the next.
_TRIES = 5


def submit(invocation: Invocation, kind: KindEntry) -> int:
    session = Session(invocation)
    body = make_request(session, kind)
    if invocation.get("dry-run"):
        form = chosen_format(invocation, session.settings)
        made = session.client.kind(kind.key).try_out(body)
        session.console.data(render(session.console, form, body | {"spec": made["spec"]}))
        session.close()
        return OK
    created = send(session, kind, body)
    show_created(session, kind, created)
    code = OK
    if invocation.get("attach"):
        code = follow.follow_to_end(session, created, invocation.get("pod-running-timeout"))
    session.close()
    return code


def make_request(session: Session, kind: KindEntry) -> Json:
    """The creation request: the file's content, then the flags, then what follows from the project."""
    invocation = session.invocation
    body = _read_file(invocation)
    spec = body.setdefault("spec", {})
    if not isinstance(spec, dict):
        raise UsageError("The file's spec is no object.")
    spec.update({name: body.pop(name) for name in kind.beside if name in body})
    fill_spec(spec, kind, invocation.parsed, lambda pod: apply_assets(session, pod))
    body.update({name: spec.pop(name) for name in kind.beside if name in spec})
    if invocation.get("template"):
        body["templateId"] = find_template(session, invocation.get("template"))["meta"]["id"]
    _apply_name(session, kind, body)
    _apply_project(session, body)
    return body


def fill_spec(spec: Json, kind: KindEntry, parsed: Parsed, add_assets: Callable[[Json], None] | None = None) -> None:
    """Put what a command line says into a spec, which may hold something already. `convert` reads commands with it."""
    values = parsed.values
    if kind.sets is not None:
        spec.setdefault(*kind.sets)
    known = frozenset(spec)
    table = load_table(kind.key)
    apply_flags(table, {name: value for name, value in values.items() if name != "command"}, spec)
    if parsed.trailing is not None:
        place = spec.setdefault(kind.words_in, {}) if kind.words_in else spec
        apply_words(parsed.trailing, bool(values.get("command")), place)
    if add_assets is not None:
        add_assets(spec.setdefault(kind.words_in, {}) if kind.words_in else spec)
    if values.get("exclude-node"):
        apply_excluded(values["exclude-node"], spec.setdefault(kind.words_in, {}) if kind.words_in else spec)
    for name, like in kind.alike:
        if name not in known and values.get(as_other(name, like)) is not False:
            _make_alike(spec, name, like, table)


def as_other(name: str, like: str) -> str:
    """The flag that says whether one role is as another: `worker-as-leader`."""
    return f"{name}-as-{like}" if like else ""


def _make_alike(spec: Json, name: str, like: str, table: Sequence[Entry]) -> None:
    """What flags do not say of a role is as in the other one; a role like the whole is there only if they say some."""
    if like:
        if like in spec:
            spec[name] = {**spec[like], **spec.get(name, {})}
    elif name in spec:
        members = {entry["path"].split(".")[1] for entry in table if entry["path"].startswith(f"{name}.")}
        spec[name] = {**{member: value for member, value in spec.items() if member in members}, **spec[name]}


def apply_excluded(nodes: Sequence[str], spec: Json) -> None:
    """None of these nodes: a further expression of every term, since a term that matches is enough."""
    if nodes:
        names = [name for text in nodes for name in text.split(",")]
        terms = spec.setdefault("nodeAffinityRequired", {}).setdefault("nodeSelectorTerms", [])
        if not terms:
            terms.append({})
        for term in terms:
            excluded = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": names}
            term.setdefault("matchExpressions", []).append(excluded)


def apply_words(words: list[str] | None, is_command: bool, spec: Json) -> None:
    """The words after `--` are the image's arguments, or with --command the whole command. REST takes one text each."""
    if words is None:
        return
    if not words:
        raise UsageError("There is nothing after --.")
    if not is_command:
        spec["args"] = shlex.join(words)
        return
    spec["command"] = shlex.join(words[:1])
    spec.pop("args", None)
    if words[1:]:
        spec["args"] = shlex.join(words[1:])


def _read_file(invocation: Invocation) -> Json:
    path = invocation.get("file")
    if path is None:
        return {}
    return read_json_file(invocation, path)


def _apply_name(session: Session, kind: KindEntry, body: Json) -> None:
    invocation = session.invocation
    given = invocation.names[0] if invocation.names else invocation.get("name")
    prefix = invocation.get("name-prefix")
    if given and prefix:
        raise UsageError("Give a name or --name-prefix, not both.")
    if given:
        body["name"] = given
    elif prefix:
        body["name"] = _next_name(session, prefix)
    elif "name" not in body:
        body["name"], body["useGivenNameAsPrefix"] = "-".join(kind.command), True


def _next_name(session: Session, prefix: str) -> str:
    filters = [f"name=^{prefix}-", f"projectId=={session.project()['id']}"]
    taken = [found["name"][len(prefix) + 1 :] for found in session.client.all_workloads(filterBy=filters)]
    return f"{prefix}-{max((int(end) for end in taken if end.isdecimal()), default=0) + 1}"


def _apply_project(session: Session, body: Json) -> None:
    """A file's own project and cluster stand unless a flag says otherwise."""
    if "projectId" not in body or session.invocation.get("project"):
        body["projectId"] = str(session.project()["id"])
    if "clusterId" not in body:
        body["clusterId"] = session.project()["clusterId"]


def send(session: Session, kind: KindEntry, body: Json) -> Json:
    """Submit it; a number behind --name-prefix that somebody else took meanwhile is counted on."""
    prefix = session.invocation.get("name-prefix")
    for _ in range(_TRIES if prefix else 1):
        try:
            return session.client.kind(kind.key).submit(body)
        except ServerError as error:
            following = _next_name(session, prefix) if prefix and error.status == 400 else body["name"]
            if following == body["name"]:
                raise
            body["name"] = following
    raise UsageError(f"No free number was found behind the prefix '{prefix}'.")


def show_created(session: Session, kind: KindEntry, created: Json) -> None:
    """The new workload's name as the result, and what to do next beside it."""
    form = chosen_format(session.invocation, session.settings)
    if form in ("json", "yaml"):
        session.console.data(render(session.console, form, created))
    else:
        session.console.data(created["name"])
        if form != "name":
            again = next_command(session.invocation, f"{' '.join(kind.command)} logs -f {created['name']}")
            session.console.say(f"Submitted. Follow it with `{again}`.")
