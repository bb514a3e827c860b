"""`convert FILE --to DIALECT`: a workload from one dialect into another, and the list of what could not be carried."""

import gc
import json
import os
from typing import Any

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.flags import Flag, UsageError

_COMMAND = "command"
_TARGETS = ("rest", "yaml", "flags", "kubernetes")
_SOURCES = ("rest", "yaml", "flags", _COMMAND, "sbatch", "kubernetes", "dstack", "skypilot")
PROGRAMS = ("runai", "fairlead")
_FLAGS = (
    Flag("to", "Dialect to write", choices=_TARGETS, default="yaml"),
    Flag("filename", "The file, if it is not given as a word; - reads standard input", short="f", placeholder="FILE"),
    Flag("from", "Dialect to read, where it cannot be told", choices=_SOURCES),
    Flag("workload", "A workload of the server instead of a file", short="w", placeholder="NAME"),
    Flag("kind", "Kind of workload, where the dialect names none", placeholder="KIND"),
    Flag("project", "Name of the project, where the dialect names none", short="p", placeholder="NAME"),
    Flag("program", "Program of a command line that is written", choices=PROGRAMS, default="fairlead"),
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
    target = invocation.get("to", "yaml")
    try:
        found = [_placed(invocation, one) for one in _read(invocation)]
        rendered = [_render(invocation, one, target) for one in found]
    except around.load("converted").Unconvertible as unconvertible:
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
    for title, is_gone in (("Not carried", True), ("Carried otherwise", False)):
        told = [f"  {loss}\n" for loss in losses if loss.is_gone is is_gone]
        if told:
            around.stderr.write(f"{title} ({len(told)}):\n")
            around.stderr.writelines(told)
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


def _placed(invocation: Invocation, found: Any) -> Any:
    project = invocation.get("project")
    return found if not project else invocation.surroundings.load("converted").in_project(found, project)


def _render(invocation: Invocation, found: Any, target: str) -> Any:
    load = invocation.surroundings.load
    if target == "flags":
        # The table is there as data, and working it out from the declarations takes its time.
        table = load("spec_flags").load_table(found.kind.key)
        return load("convert_to_flags").render(found, invocation.get("program", "fairlead"), table)
    if target == "kubernetes":
        objects, losses = load("kubernetes").render_spec(found.kind, found.name, found.project or "default", found.spec)
        return load("convert_to_yaml").rendered_objects(found, objects, losses)
    return load("convert").render(load, found, target)


def _read(invocation: Invocation) -> list[Any]:
    load = invocation.surroundings.load
    words = invocation.parsed.trailing
    if invocation.get("workload"):
        return [load("convert_live").read_live(invocation, invocation.get("workload"))]
    if words is not None:
        return [load("convert_command").read_command(load, words)]
    path = invocation.names[0] if invocation.names else invocation.get("filename")
    if not path:
        raise UsageError("Convert what? Name a file or a --workload, or put a command line after --.")
    text = read_text(invocation, path)
    dialect = invocation.get("from")
    if dialect in (_COMMAND, "flags") or (dialect is None and text.split()[:1] and text.split()[0] in PROGRAMS):
        reader = load("convert_command")
        return [reader.read_command(load, reader.split_line(text, path))]
    converter = load("convert")
    kind = load("converted").find_kind(invocation.get("kind")) if invocation.get("kind") else None
    file = "standard input" if path == "-" else path
    found: list[Any] = converter.read_any(load, text, dialect or converter.detect(load, text, file), kind, file)
    return found


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
