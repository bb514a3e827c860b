"""`apply -f`, `diff -f` and `delete -f`: compare workload YAML files with the server and change the server.

Nothing is sent before every document of every file has been read without errors. Applying an unchanged file does
nothing; members that cannot change in a submitted workload are named. Templates come first, because workloads use them.
"""

import difflib
import os
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import msgspec

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.files.apply_objects import (
    Templates,
    apply_template,
    create_secrets,
    delete_secrets,
    delete_template,
    diff_template,
)
from fairlead.cli.files.policy_files import apply_policy, delete_policy, diff_policy, read_legacy_policies
from fairlead.cli.flags import OUTPUT, PROJECT, Flag, UsageError
from fairlead.cli.session.input_files import read_text
from fairlead.cli.session.report import exit_code, render_error
from fairlead.cli.session.session import ServerSession
from fairlead.cli.workloads.actions import CHOICE_FLAGS, action
from fairlead.cli.workloads.notes import show_plan_of, submit_checked
from fairlead.cli.workloads.submit_flags import SUBMISSION_FLAGS
from fairlead.client import ClientError, NameNotFound
from fairlead.client.json_object import Json
from fairlead.formats.convert.from_yaml import TemplateFile, read_files
from fairlead.formats.convert.to_rest import request_body
from fairlead.formats.convert.to_yaml import differences, render
from fairlead.formats.intermediate import IntermediateWorkload, Unconvertible
from fairlead.formats.legacy_policies import LEGACY_KINDS

_FILES = Flag("filename", "File or folder with workload YAML; - is standard input", "string", "f", True)
_RECURSIVE = Flag("recursive", "Read folders recursively", "boolean", "R")
_DRY_RUN = Flag("dry-run", "Only print what would be done", "boolean")
_ENDINGS = (".yaml", ".yml", ".json")
_STOPPED, _DELETED = "Stopped", "Deleted"
_ENDED = ("Completed", "Failed")
_OnWorkload = Callable[[ServerSession, IntermediateWorkload], int]
_OnTemplate = Callable[[ServerSession, Templates, TemplateFile], int]
_OnPolicy = Callable[[ServerSession, Json], int]


class _Actions(NamedTuple):
    """What a command does with each document of a file."""

    on_workload: _OnWorkload
    on_template: _OnTemplate
    on_policy: _OnPolicy
    #: Whether templates and policies come after the workloads that use them.
    is_deletion: bool = False


class _Documents(NamedTuple):
    workloads: list[IntermediateWorkload]
    templates: list[TemplateFile]
    policies: list[Json]


class Live(NamedTuple):
    """A workload on the server: its row in lists, and its own object with the spec."""

    row: Json
    content: Json


def commands(noun: str) -> tuple[Command, ...]:
    flags = (_FILES, _RECURSIVE, PROJECT)
    by_noun = {
        "apply": Command(
            "",
            "Submit, change, suspend or resume the workloads in files",
            _apply,
            (*flags, _DRY_RUN, *SUBMISSION_FLAGS, *OUTPUT),
        ),
        "diff": Command("", "Compare the workloads in files with the server", _diff, flags),
        "delete": Command(
            "",
            "Delete workloads by name, by labels or in files",
            _delete,
            (*CHOICE_FLAGS, *flags[:2], _DRY_RUN),
            "[NAME...]",
            0,
            None,
            completes="workload",
        ),
    }
    return (by_noun[noun],)


def _apply(invocation: Invocation) -> int:
    return _each(invocation, _Actions(_apply_one, apply_template, apply_policy))


def check_files(invocation: Invocation) -> int:
    """`policy check`: whether the policies of their projects accept the workloads in files. Nothing is submitted."""
    return _each(invocation, _Actions(_check_one, _skip_template, _skip_policy))


#: The flags of `policy check`.
CHECK_FLAGS = (_FILES, _RECURSIVE, PROJECT)


def _diff(invocation: Invocation) -> int:
    return _each(invocation, _Actions(_diff_one, diff_template, diff_policy))


def _delete(invocation: Invocation) -> int:
    if not invocation.get("filename"):
        return action("delete").run(invocation)
    return _each(invocation, _Actions(_delete_one, delete_template, delete_policy, is_deletion=True))


def _each(invocation: Invocation, actions: _Actions) -> int:
    """Act on every document of the files; returns the exit code of the first failure."""
    session = ServerSession(invocation)
    templates = Templates(session)
    read = _read(session, templates)
    if read is None:
        session.close()
        return FAILED
    steps: list[tuple[str, Callable[[], int]]] = [
        *((one["name"], partial(actions.on_policy, session, one)) for one in read.policies),
        *((one.name, partial(actions.on_template, session, templates, one)) for one in read.templates),
        *((one.name, partial(actions.on_workload, session, one)) for one in read.workloads),
    ]
    if actions.is_deletion:
        steps.reverse()
    code = OK
    for name, step in steps:
        try:
            outcome = step()
            code = code or outcome
        except ClientError as error:
            session.console.complain(f"fairlead: {name}: {render_error(error)}")
            code = code or exit_code(error)
    session.close()
    return code


def _read(session: ServerSession, templates: Templates) -> _Documents | None:
    """The workloads, templates and older policies of all files; None if there were errors, which have been printed."""
    invocation = session.invocation
    files = [(path, read_text(invocation, path)) for path in _paths(invocation)]

    def namespace() -> str:
        return f"runai-{session.project()['name']}"

    try:
        workloads, documents = read_files(files, templates.fetch, namespace, skips=LEGACY_KINDS)
        policies = [one for path, text in files for one in _legacy_policies(session, path, text)]
    except Unconvertible as unconvertible:
        for line in unconvertible.lines:
            session.console.complain(line)
        return None
    if not workloads and not documents and not policies:
        session.console.complain(f"No workload, template or policy found in {', '.join(path for path, _ in files)}.")
        return None
    for workload in workloads:
        for path, what in workload.remarks:
            session.console.complain(f"{workload.name}: {path}: {what}")
    return _Documents(workloads, documents, policies)


def _legacy_policies(session: ServerSession, path: str, text: str) -> list[Json]:
    if not any(kind in text for kind in LEGACY_KINDS):
        return []
    return read_legacy_policies(text, path, session.console.complain)


def _skip_policy(session: ServerSession, document: Json) -> int:
    session.console.say(f"{document['name']} is a policy; check it with `fairlead policy apply --dry-run`.")
    return OK


def _paths(invocation: Invocation) -> list[str]:
    given = invocation.get("filename")
    if not given:
        raise UsageError("No files given. Name them with -f.")
    return [path for one in given for path in _in_folder(one, bool(invocation.get("recursive")))]


def _in_folder(path: str, recursive: bool) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    paths = []
    for folder, folders, names in os.walk(path):
        folders.sort()
        paths += [os.path.join(folder, name) for name in sorted(names) if name.endswith(_ENDINGS)]
        if not recursive:
            break
    if not paths:
        raise UsageError(f"No files ending in {', '.join(_ENDINGS)} found in {path}.")
    return paths


def _project(session: ServerSession, workload: IntermediateWorkload) -> Json:
    """The project of the document's namespace, or else the project of the command."""
    if not workload.project:
        return session.project()
    projects = session.client.projects(filterBy=[f"name=={workload.project}"])
    if not projects:
        raise NameNotFound(f"There is no project '{workload.project}' for its namespace.")
    return projects[0]


def _find(session: ServerSession, workload: IntermediateWorkload, project: Json) -> Live | None:
    """The workload with that name; for a prefix, one that was submitted with it and has the same spec."""
    sign = f"name=^{workload.name}-" if workload.is_prefix else f"name=={workload.name}"
    filters = [sign, f"projectId=={project['id']}", f"type=={workload.kind.title}"]
    client = session.client.kind(workload.kind.key)
    for row in session.client.all_workloads(filterBy=filters):
        content = client.get(row["id"])
        if content.get("desiredPhase") == _DELETED:
            continue
        is_same = content["requestedName"] == workload.name and not _changes(session, content, workload)
        if is_same or not workload.is_prefix:
            return Live(row, content)
    return None


def _changes(session: ServerSession, content: Json, workload: IntermediateWorkload) -> list[str]:
    """Paths at which the workload differs from the document."""
    return differences(workload.kind, _whole_spec(session, content, workload), _wanted_spec(session, content, workload))


def _whole_spec(session: ServerSession, content: Json, workload: IntermediateWorkload) -> Json:
    """The spec of a request or a workload, with the members that REST has beside it."""
    beside = session.client.kind(workload.kind.key).entry.outside_spec
    return (content.get("spec") or {}) | {name: content[name] for name in beside if name in content}


def _wanted_spec(session: ServerSession, content: Json, workload: IntermediateWorkload) -> Json:
    """The spec that the document asks for, as the server merges it with templates and policies."""
    live = _whole_spec(session, content, workload)
    if not workload.template_id and not differences(workload.kind, live, workload.spec):
        return workload.spec
    # As a prefix, because the existing workload has the name already.
    body = _request(session, workload, content) | {"useGivenNameAsPrefix": True}
    wanted = _whole_spec(session, session.client.kind(workload.kind.key).dry_run(body), workload)
    if workload.template_id:
        return wanted
    # A policy has set these; it may have changed since the submission, which changes nothing in the workload.
    by_policy = {name: live[name] for name in wanted if name not in workload.spec and name in live}
    return wanted | by_policy


def _request(session: ServerSession, workload: IntermediateWorkload, place: Json) -> Json:
    body: Json = request_body(workload)
    body |= {"projectId": str(place.get("projectId") or place["id"]), "clusterId": place["clusterId"]}
    return body | ({"templateId": workload.template_id} if workload.template_id else {})


def _check_one(session: ServerSession, workload: IntermediateWorkload) -> int:
    # As a prefix, because a workload of that name may exist already.
    body = _request(session, workload, _project(session, workload)) | {"useGivenNameAsPrefix": True}
    accepted = session.client.kind(workload.kind.key).dry_run(body)
    changed = differences(workload.kind, _whole_spec(session, accepted, workload), workload.spec)
    suffix = f"; set by policy or template: {', '.join(changed)}" if changed else ""
    session.console.data(f"{workload.name} would be accepted{suffix}")
    return OK


def _skip_template(session: ServerSession, templates: Templates, document: TemplateFile) -> int:
    session.console.say(f"{document.name} is a template; it is checked when a workload uses it.")
    return OK


def _apply_one(session: ServerSession, workload: IntermediateWorkload) -> int:
    project = _project(session, workload)
    live = _find(session, workload, project)
    if live is None:
        _submit(session, workload, project)
        return OK
    before = _whole_spec(session, live.content, workload)
    wanted = _wanted_spec(session, live.content, workload)
    changes = differences(workload.kind, before, wanted)
    allowed = session.client.kind(workload.kind.key).entry.can_change
    fixed = [path for path in changes if _member(path) not in allowed or _is_removed_value(before, wanted, path)]
    if fixed:
        fixed_part = "the spec" if not allowed else "this part of the spec"
        session.console.complain(
            f"fairlead: {workload.name}: {fixed_part} of a submitted workload cannot change; these members differ: "
            f"{', '.join(fixed)}.\nDelete it first, or give it another name."
        )
        return FAILED
    if changes:
        _change(session, workload, live, changes, _patch(before, wanted, changes))
    else:
        _set_active(session, workload, live)
    return OK


def _change(
    session: ServerSession, workload: IntermediateWorkload, live: Live, changes: list[str], patch: Json
) -> None:
    """Change the members that can change while it runs."""
    paths = ", ".join(changes)
    if session.invocation.get("dry-run"):
        session.console.data(f"{live.row['name']}: would be changed ({paths})")
        return
    session.client.kind(workload.kind.key).update(live.row["id"], patch)
    session.console.data(f"{live.row['name']}: changed ({paths})")


def _member(path: str) -> str:
    """The member of the spec that a path is in."""
    return path.split(".")[0].split("[")[0]


def _is_removed_value(before: Json, wanted: Json, path: str) -> bool:
    """Whether a member is missing that no patch can remove: null at the top level of a patch changes nothing."""
    member = _member(path)
    return wanted.get(member) is None and not isinstance(before.get(member), list | dict)


def _patch(before: Json, wanted: Json, changes: list[str]) -> Json:
    """The patch that carries out the changes: lists are replaced, objects are patched member by member."""
    patch: Json = {}
    for member in {_member(path) for path in changes}:
        old, new = before.get(member), wanted.get(member)
        if isinstance(old, dict):
            patch[member] = _difference(old, new or {}, member, changes)
        else:
            patch[member] = [] if new is None else new
    return patch


def _difference(before: Json, wanted: Json, path: str, changes: list[str]) -> Json:
    """The patch of an object: null removes a member. Members that the file cannot have are left alone."""
    patch: Json = {}
    for name in before:
        here = f"{path}.{name}"
        if name not in wanted and any(one == here or one.startswith((f"{here}.", f"{here}[")) for one in changes):
            patch[name] = None
    for name, value in wanted.items():
        known = before.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            patch[name] = _difference(known, value, f"{path}.{name}", changes)
        else:
            patch[name] = value
    return patch


def _submit(session: ServerSession, workload: IntermediateWorkload, project: Json) -> None:
    if session.invocation.get("dry-run"):
        session.console.data(f"{workload.name}: would be submitted")
        return
    is_suspended = not workload.is_active
    if session.invocation.get("plan"):
        show_plan_of(session, workload.kind.key, _request(session, workload, project), is_suspended)
        return
    create_secrets(session, workload, project)
    request = _request(session, workload, project)
    created = submit_checked(session, workload.kind.key, request, workload.origin, suspended=is_suspended)
    session.console.data(f"{created['name']}: submitted" + ("" if workload.is_active else " and suspended"))


def _set_active(session: ServerSession, workload: IntermediateWorkload, live: Live) -> None:
    """Suspend or resume the workload if the document asks for it."""
    name, is_stopped = live.row["name"], live.content["desiredPhase"] == _STOPPED
    if live.content.get("actualPhase") in _ENDED or workload.is_active != is_stopped:
        session.console.data(f"{name}: unchanged")
        return
    verb, done = ("resume", "resumed") if workload.is_active else ("suspend", "suspended")
    if session.invocation.get("dry-run"):
        session.console.data(f"{name}: would be {done}")
        return
    getattr(session.client.kind(workload.kind.key), verb)(live.row["id"])
    session.console.data(f"{name}: {done}")


def _diff_one(session: ServerSession, workload: IntermediateWorkload) -> int:
    """Print the difference as YAML; exit code 1 if there is one."""
    project = _project(session, workload)
    live = _find(session, workload, project)
    before = ""
    wanted = workload
    if live is not None:
        spec = _whole_spec(session, live.content, workload)
        is_active = live.content["desiredPhase"] != _STOPPED
        before = render(msgspec.structs.replace(workload, spec=spec, is_active=is_active)).text
        wanted = msgspec.structs.replace(workload, spec=_wanted_spec(session, live.content, workload))
    after = render(wanted).text
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"server/{workload.name}", f"file/{workload.name}", lineterm=""
    )
    differing = list(lines)
    if differing:
        session.console.data("\n".join(differing))
    return FAILED if differing else OK


def _delete_one(session: ServerSession, workload: IntermediateWorkload) -> int:
    project = _project(session, workload)
    live = _find(session, workload, project)
    if live is None:
        session.console.data(f"{workload.name}: not found")
    elif session.invocation.get("dry-run"):
        session.console.data(f"{live.row['name']}: would be deleted")
    else:
        session.client.kind(workload.kind.key).delete(live.row["id"])
        session.console.data(f"{live.row['name']}: deleted")
        delete_secrets(session, workload, project)
    return OK
