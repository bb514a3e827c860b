"""`convert FILE --to DIALECT`: a workload from one dialect into another, and the list of what could not be carried."""

import gc
import json
import os
import shlex
from typing import Any

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.flags import Flag, UsageError, parse
from fairlead.cli.kinds import commands as kind_commands
from fairlead.cli.session import Session
from fairlead.cli.submission import fill_spec
from fairlead.client.kinds import KindEntry, load_kinds

Json = dict[str, Any]

_COMMAND = "command"
_TARGETS = ("rest", "yaml", "flags", "kubernetes")
_SOURCES = ("rest", "yaml", "flags", _COMMAND, "sbatch", "kubernetes", "dstack", "skypilot")
_PROGRAMS = ("runai", "fairlead")
_STANDARD = "standard"
_FLAGS = (
    Flag("to", "Dialect to write", choices=_TARGETS, default="yaml"),
    Flag("filename", "The file, if it is not given as a word; - reads standard input", short="f", placeholder="FILE"),
    Flag("from", "Dialect to read, where it cannot be told", choices=_SOURCES),
    Flag("workload", "A workload of the server instead of a file", short="w", placeholder="NAME"),
    Flag("kind", "Kind of workload, where the dialect names none", placeholder="KIND"),
    Flag("project", "Name of the project, where the dialect names none", short="p", placeholder="NAME"),
    Flag("program", "Program of a command line that is written", choices=_PROGRAMS, default="fairlead"),
    Flag("output", "json: the result and what was lost, as one object", short="o", choices=("text", "json")),
)
_DETAILS = """FILE is a creation request, a workload, workload YAML, an sbatch script, a Kubernetes Job, a dstack or
SkyPilot task, or a command line; - reads standard input. The result goes to standard output, what could
not be carried to standard error.

Examples:
  fairlead convert job.json --to yaml -p team-a
  fairlead convert workload.yaml --to flags
  fairlead convert --to rest -- runai training submit hello -i python:3.12 -g 1
  fairlead convert --workload hello --to flags
  fairlead convert job.sbatch --to yaml"""


def commands(_noun: str) -> tuple[Command, ...]:
    return (
        Command(
            "",
            "Turn a workload from one dialect into another",
            _run,
            _FLAGS,
            "[FILE]",
            most=1,
            trailing="COMMAND LINE",
            details=_DETAILS,
        ),
    )


def _run(invocation: Invocation) -> int:
    # Nearly all of the time goes into loading the model, and a tenth of that into looking for garbage in it.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return _convert(invocation)
    finally:
        if was_enabled:
            gc.enable()


def _convert(invocation: Invocation) -> int:
    around = invocation.surroundings
    converter = around.load("convert")
    target = invocation.get("to", "yaml")
    try:
        found = [_placed(converter, invocation, one) for one in _read(converter, invocation)]
        rendered = [_render(converter, invocation, one, target) for one in found]
    except converter.Unconvertible as unconvertible:
        around.stderr.write("\n".join(f"fairlead: {line}" for line in unconvertible.lines) + "\n")
        return FAILED
    remarks = [remark for one in found for remark in one.remarks]
    losses = [loss for one in rendered for loss in one.losses]
    if invocation.get("output") == "json":
        around.stdout.write(_as_json([one.plain for one in rendered], losses, remarks))
        return OK
    separator = "---\n" if target in ("yaml", "kubernetes") else ""
    around.stdout.write(separator.join(one.text for one in rendered))
    for path, what in remarks:
        around.stderr.write(f"{path}: {what}\n")
    if losses:
        around.stderr.write(f"Not carried ({len(losses)}):\n")
        around.stderr.writelines(f"  {loss}\n" for loss in losses)
    return OK


def _as_json(results: list[Any], losses: list[Any], remarks: list[tuple[str, str]]) -> str:
    lost = [
        {name: value for name in loss.__struct_fields__ if _is_said(value := getattr(loss, name))} for loss in losses
    ]
    said = [{"path": path, "details": what} for path, what in remarks]
    return json.dumps({"results": results, "losses": lost, "remarks": said}, indent=2, ensure_ascii=False) + "\n"


def _is_said(value: Any) -> bool:
    """Whether a member of a loss holds something; what is not there is a value of its own type."""
    return isinstance(value, str | int | float | bool | list | dict | None)


def _placed(converter: Any, invocation: Invocation, found: Any) -> Any:
    project = invocation.get("project")
    return found if not project else converter.in_project(found, project)


def _render(converter: Any, invocation: Invocation, found: Any, target: str) -> Any:
    if target != "kubernetes":
        return converter.render(found, target, invocation.get("program", "fairlead"))
    renderer = invocation.surroundings.load("kubernetes")
    objects, losses = renderer.render_spec(found.kind, found.name, found.project or "default", found.spec)
    return converter.rendered_objects(found, objects, losses)


def _read(converter: Any, invocation: Invocation) -> list[Any]:
    words = invocation.parsed.trailing
    if invocation.get("workload"):
        return [_read_live(converter, invocation, invocation.get("workload"))]
    if words is not None:
        return [_read_command(converter, words)]
    path = invocation.names[0] if invocation.names else invocation.get("filename")
    if not path:
        raise UsageError("Convert what? Name a file or a --workload, or put a command line after --.")
    text = read_text(invocation, path)
    dialect = invocation.get("from")
    if dialect in (_COMMAND, "flags") or (dialect is None and text.split()[:1] and text.split()[0] in _PROGRAMS):
        try:
            return [_read_command(converter, shlex.split(text, comments=True))]
        except ValueError as error:
            raise UsageError(f"{path} is no command line: {error}.") from None
    kind = converter.find_kind(invocation.get("kind")) if invocation.get("kind") else None
    found: list[Any] = converter.read_any(text, dialect or converter.detect(text), kind, path)
    return found


def _read_live(converter: Any, invocation: Invocation, name: str) -> Any:
    """A workload as the server has it."""
    session = Session(invocation)
    row = session.workload(name)
    key = next((key for key, entry in load_kinds().items() if entry.title == row["type"]), None)
    if key is None:
        raise UsageError(f"This version of the command does not know workloads of type {row['type']}.")
    client = session.client.kind(key)
    content = client.get(row["id"])
    session.close()
    body = {"name": content["name"], "spec": content.get("spec") or {}}
    body |= {name: content[name] for name in client.entry.beside if name in content}
    found = converter.from_request(key, body, row["projectName"])
    return converter.altered(found, {"is_active": content["desiredPhase"] != "Stopped"})


def read_text(invocation: Invocation, path: str) -> str:
    """The text of a file, or of standard input."""
    try:
        if path == "-":
            return invocation.surroundings.stdin.read()
        with open(os.path.join(invocation.surroundings.folder, path), encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is no UTF-8 text.") from None


def _read_command(converter: Any, words: list[str]) -> Any:
    """A `submit` command line, read by the flags of its kind."""
    rest = words[1:] if words[:1] and words[0] in _PROGRAMS else list(words)
    kind, rest = _find_kind(rest)
    if rest[:1] != ["submit"]:
        raise UsageError(f"Only `{' '.join(kind.command)} submit` describes a workload.")
    parsed = parse(rest[1:], kind_commands(kind)[0].flags)
    spec: Json = {}
    fill_spec(spec, kind, parsed)
    prefix = parsed.values.get("name-prefix")
    name = parsed.names[0] if parsed.names else parsed.values.get("name") or prefix or "-".join(kind.command)
    is_prefix = not (parsed.names or parsed.values.get("name"))
    beside = {name: spec.pop(name) for name in kind.beside if name in spec}
    body = {"name": name, "useGivenNameAsPrefix": is_prefix, "spec": spec, **beside}
    return converter.from_request(kind.key, body, parsed.values.get("project", ""))


def _find_kind(words: list[str]) -> tuple[KindEntry, list[str]]:
    every = [one for entry in load_kinds().values() for one in (entry, *entry.subtypes)]
    entries = [entry for entry in every if tuple(words[: len(entry.command)]) == entry.command]
    if not entries:
        known = ", ".join(" ".join(entry.command) for entry in load_kinds().values())
        raise UsageError(f"'{' '.join(words[:2])}' is no kind of workload; there are {known}.")
    kind = max(entries, key=lambda entry: len(entry.command))
    rest = words[len(kind.command) :]
    return kind, rest[1:] if rest[:1] == [_STANDARD] else rest
