"""`convert FILE --to FORMAT`: writes a workload in another format, and lists what could not be converted."""

import json

import msgspec

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.files.convert_command import PROGRAMS, read_command, split_line
from fairlead.cli.flags import Flag, UsageError
from fairlead.cli.nouns import load_module
from fairlead.cli.session.input_files import read_text
from fairlead.cli.workloads.spec_flags import load_table
from fairlead.formats.convert import dialects, to_flags
from fairlead.formats.intermediate import (
    ConversionResult,
    IntermediateWorkload,
    Unconvertible,
    find_kind,
    in_project,
)
from fairlead.formats.losses import Loss

#: Loaded only if they are needed: the client, and the renderer of Kubernetes objects.
_LIVE, _OBJECTS = "files.convert_live", "files.convert_objects"
_COMMAND = "command"
_TARGETS = ("rest", "yaml", "flags", "kubernetes")
_SOURCES = ("rest", "yaml", "flags", _COMMAND, "sbatch", "kubernetes", "dstack", "skypilot")
_FLAGS = (
    Flag("to", "Format to write", choices=_TARGETS, default="yaml"),
    Flag("filename", "File to read; - is standard input", short="f", placeholder="FILE"),
    Flag("from", "Format of the input, if it cannot be detected", choices=_SOURCES),
    Flag("workload", "Convert a workload of the server instead of a file", short="w", placeholder="NAME"),
    Flag("kind", "Kind of workload, if the input does not name one", placeholder="KIND"),
    Flag("project", "Project of the workload, if the input does not name one", short="p", placeholder="NAME"),
    Flag("program", "Program name in the command line that is written", choices=PROGRAMS, default="fairlead"),
    Flag("output", "json prints the result and its losses as one object", short="o", choices=("text", "json")),
)
_DETAILS = """FILE is a creation request, a workload, workload YAML, an sbatch script, a
Kubernetes Job, a dstack or SkyPilot task, or a command line; - is standard
input. The result goes to standard output, and what could not be converted to
standard error.

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
            "Convert a workload from one format to another",
            _run,
            _FLAGS,
            "[FILE]",
            max_names=1,
            trailing="COMMAND LINE",
            details=_DETAILS,
        ),
    )


def _run(invocation: Invocation) -> int:
    environment = invocation.environment
    target = invocation.get("to", "yaml")
    try:
        workloads = [_with_project(invocation, workload) for workload in _read(invocation)]
        results = [_render(invocation, workload, target) for workload in workloads]
    except Unconvertible as unconvertible:
        environment.stderr.write("\n".join(f"fairlead: {line}" for line in unconvertible.lines) + "\n")
        return FAILED
    remarks = [remark for workload in workloads for remark in workload.remarks]
    losses = [loss for result in results for loss in result.losses]
    if invocation.get("output") == "json":
        environment.stdout.write(_render_json(results, losses, remarks))
        return OK
    separator = "---\n" if target in ("yaml", "kubernetes") else ""
    environment.stdout.write(separator.join(result.text for result in results))
    for path, remark in remarks:
        environment.stderr.write(f"{path}: {remark}\n")
    for title, is_gone in (("Not converted", True), ("Converted with changes", False)):
        lines = [f"  {loss}\n" for loss in losses if loss.is_gone is is_gone]
        if lines:
            environment.stderr.write(f"{title} ({len(lines)}):\n")
            environment.stderr.writelines(lines)
    return OK


def _render_json(results: list[ConversionResult], losses: list[Loss], remarks: list[tuple[str, str]]) -> str:
    content = {
        "results": [result.plain for result in results],
        "losses": msgspec.to_builtins(losses),
        "remarks": [{"path": path, "details": remark} for path, remark in remarks],
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _with_project(invocation: Invocation, workload: IntermediateWorkload) -> IntermediateWorkload:
    project = invocation.get("project")
    return in_project(workload, project) if project else workload


def _render(invocation: Invocation, workload: IntermediateWorkload, target: str) -> ConversionResult:
    if target == "flags":
        # The generated table; computing it from the declarations would take longer than the conversion.
        table = load_table(workload.kind.key)
        return to_flags.render(workload, invocation.get("program", "fairlead"), table)
    if target == "kubernetes":
        result: ConversionResult = load_module(_OBJECTS).render(workload)
        return result
    return dialects.render(workload, target)


def _read(invocation: Invocation) -> list[IntermediateWorkload]:
    if invocation.get("workload"):
        workload: IntermediateWorkload = load_module(_LIVE).read_live(invocation, invocation.get("workload"))
        return [workload]
    if invocation.parsed.trailing is not None:
        return [read_command(invocation.parsed.trailing)]
    path = invocation.names[0] if invocation.names else invocation.get("filename")
    if not path:
        raise UsageError("Nothing to convert. Name a file or a --workload, or put a command line after --.")
    text = read_text(invocation, path)
    dialect = invocation.get("from")
    if dialect in (_COMMAND, "flags") or (dialect is None and text.split()[:1] and text.split()[0] in PROGRAMS):
        return [read_command(split_line(text, path))]
    kind = find_kind(invocation.get("kind")) if invocation.get("kind") else None
    file = "standard input" if path == "-" else path
    return dialects.read_any(text, dialect or dialects.detect(text, file), kind, file)
