"""`submit`: builds the creation request from a file, flags and the arguments after `--`, and sends it."""

from fairlead.cli.assets.asset import apply_assets
from fairlead.cli.assets.template import find_template
from fairlead.cli.command import Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import UsageError
from fairlead.cli.session.input_files import read_json_file
from fairlead.cli.session.session import ServerSession
from fairlead.cli.session.settings import next_command
from fairlead.cli.terminal.output import chosen_format, render
from fairlead.cli.workloads import follow
from fairlead.cli.workloads.notes import note_unenforced, show_plan_of, submit_checked
from fairlead.cli.workloads.submit_flags import apply_arguments, fill_spec, flags_in_errors
from fairlead.client import ServerError
from fairlead.client.commands import HOST_IMAGE
from fairlead.client.json_object import Json
from fairlead.client.kinds import KindEntry

#: How many numbers are tried after --name-prefix if others are taken.
_TRIES = 5
_ONE_MACHINE = "local"


def submit(invocation: Invocation, kind: KindEntry) -> int:
    session = ServerSession(invocation)
    body = make_request(session, kind)
    if invocation.get("dry-run"):
        form = chosen_format(invocation, session.settings)
        with flags_in_errors(kind.key, invocation):
            preview = session.client.kind(kind.key).dry_run(body)
        session.console.data(render(session.console, form, body | {"spec": preview["spec"]}))
        session.close()
        return OK
    if invocation.get("plan"):
        with flags_in_errors(kind.key, invocation):
            show_plan_of(session, kind.key, body)
        session.close()
        return OK
    with flags_in_errors(kind.key, invocation):
        created = send(session, kind, body)
    show_created(session, kind, created)
    note_unenforced(session, created)
    code = OK
    if invocation.get("attach"):
        code = follow.follow_to_end(session, created, invocation.get("pod-running-timeout"))
    session.close()
    return code


def make_request(session: ServerSession, kind: KindEntry) -> Json:
    """The creation request: the file, then the flags, then the project and its cluster."""
    invocation = session.invocation
    body = _read_file(invocation)
    spec = body.setdefault("spec", {})
    if not isinstance(spec, dict):
        raise UsageError("The spec in the file is not an object.")
    spec.update({name: body.pop(name) for name in kind.outside_spec if name in body})
    uses_template = bool(invocation.get("template") or body.get("templateId"))

    def complete(pod: Json) -> None:
        apply_assets(session, pod)
        if not uses_template:
            _use_host_image(session, pod)

    fill_spec(spec, kind, invocation.parsed, complete)
    body.update({name: spec.pop(name) for name in kind.outside_spec if name in spec})
    if invocation.get("template"):
        body["templateId"] = find_template(session, invocation.get("template"))["meta"]["id"]
    _apply_name(session, kind, body)
    _apply_project(session, body)
    return body


def _use_host_image(session: ServerSession, pod: Json) -> None:
    """Without an image, a command runs on the files of a server of one machine; a cluster has no such files."""
    trailing = session.invocation.parsed.trailing
    if pod.get("image") or not (trailing or pod.get("command")):
        return
    if any(cluster.get("engine") != _ONE_MACHINE for cluster in session.client.clusters()):
        raise UsageError("No image given. A cluster needs one: name it with --image.")
    pod["image"] = HOST_IMAGE
    if trailing:
        apply_arguments(trailing, True, pod)
    session.console.say("No image given: the command uses the files of the server's machine.")


def _read_file(invocation: Invocation) -> Json:
    path = invocation.get("file")
    if path is None:
        return {}
    return read_json_file(invocation, path)


def _apply_name(session: ServerSession, kind: KindEntry, body: Json) -> None:
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


def _next_name(session: ServerSession, prefix: str) -> str:
    filters = [f"name=^{prefix}-", f"projectId=={session.project()['id']}"]
    suffixes = [row["name"][len(prefix) + 1 :] for row in session.client.all_workloads(filterBy=filters)]
    return f"{prefix}-{max((int(end) for end in suffixes if end.isdecimal()), default=0) + 1}"


def _apply_project(session: ServerSession, body: Json) -> None:
    """Set project and cluster; those of a file are kept unless a flag overrides them."""
    if "projectId" not in body or session.invocation.get("project"):
        body["projectId"] = str(session.project()["id"])
    if "clusterId" not in body:
        body["clusterId"] = session.project()["clusterId"]


def send(session: ServerSession, kind: KindEntry, body: Json) -> Json:
    """Submit it; if the number after --name-prefix is taken, try the next."""
    prefix = session.invocation.get("name-prefix")
    for _ in range(_TRIES if prefix else 1):
        try:
            return submit_checked(session, kind.key, body)
        except ServerError as error:
            following = _next_name(session, prefix) if prefix and error.status == 400 else body["name"]
            if following == body["name"]:
                raise
            body["name"] = following
    raise UsageError(f"No free name was found with the prefix '{prefix}'.")


def show_created(session: ServerSession, kind: KindEntry, created: Json) -> None:
    """Print the new workload's name as the result, and a hint what to do next."""
    form = chosen_format(session.invocation, session.settings)
    if form in ("json", "yaml"):
        session.console.data(render(session.console, form, created))
    else:
        session.console.data(created["name"])
        if form != "name":
            again = next_command(session.invocation, f"{' '.join(kind.command)} logs -f {created['name']}", "project")
            session.console.say(f"Submitted. Follow it with `{again}`.")
