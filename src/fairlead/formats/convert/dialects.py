"""From one dialect to another: detects the dialect of a text, reads it, and writes another.

Called by the command `convert`. Command lines are read by the command line itself, Kubernetes objects are rendered by
their engine. Nothing disappears silently: every member that does not arrive is listed.
"""

import msgspec

from fairlead.formats.convert import from_rest, from_texts, from_yaml, to_flags, to_rest, to_yaml
from fairlead.formats.intermediate import (
    DSTACK,
    FLAGS,
    JOB,
    REST,
    SBATCH,
    SKYPILOT,
    YAML,
    ConversionResult,
    IntermediateWorkload,
    Unconvertible,
    lines_of,
)
from fairlead.formats.plain import Plain
from fairlead.formats.yaml.keywords import API_VERSION, OWN_VERSION
from fairlead.formats.yaml.tree import read_tree
from fairlead.kinds.kind import Kind

_WRITERS = {REST: to_rest.render, YAML: to_yaml.render, FLAGS: to_flags.render}
_UNKNOWN_DIALECT = "The format of the text is not known; name it with --from."


class UnknownDialect(Unconvertible):
    """The dialect of the text cannot be detected, so that it has to be named where that is possible."""


def detect(text: str, file: str = "") -> str:
    """The dialect of a text; `file` is its name in messages."""
    if "#SBATCH" in text[:100_000]:
        return SBATCH
    if _is_workload_yaml(text):
        return YAML
    request = _read_object(text)
    if request is not None and "apiVersion" not in request and ("spec" in request or "projectId" in request):
        return REST
    return _detect_in_tree(text, file)


def _is_workload_yaml(text: str) -> bool:
    """Whether the first line of content is the version of workload YAML; then the text need not be read twice."""
    for line in text[:10_000].splitlines():
        if line.strip() not in ("", "---") and not line.startswith("#"):
            return line.startswith((f"apiVersion: {API_VERSION}", f"apiVersion: {OWN_VERSION}"))
    return False


def _detect_in_tree(text: str, file: str) -> str:
    """The dialect by the members of the first YAML document."""
    documents, issues = read_tree(text, file)
    if not documents:
        raise Unconvertible([str(issue) for issue in issues] or lines_of(file, ["The text is empty."]))
    content = documents[0].content
    if not isinstance(content, dict):
        raise UnknownDialect(lines_of(file, [_UNKNOWN_DIALECT]))
    version = content["apiVersion"].content if "apiVersion" in content else ""
    if version:
        return JOB if version == "batch/v1" else YAML
    if "type" in content and "spec" not in content:
        return DSTACK
    if "spec" in content or "projectId" in content:
        return REST
    if {"run", "setup", "resources"} & set(content):
        return SKYPILOT
    raise UnknownDialect(lines_of(file, [_UNKNOWN_DIALECT]))


def read_any(text: str, dialect: str, kind: Kind | None = None, file: str = "") -> list[IntermediateWorkload]:
    """The workloads of a text. `kind` is used for dialects that do not name one."""
    if dialect == YAML:
        return from_yaml.read_files([(file, text)])[0]
    request = _read_object(text) if dialect == REST else None
    if request is not None:
        return [from_rest.read_request(request, kind, file)]
    return from_texts.read(text, dialect, kind, file)


def _read_object(text: str) -> Plain | None:
    """The object in a JSON text, None for any other text. Read as JSON, strings that look like numbers stay strings."""
    if text.lstrip()[:1] != "{":
        return None
    try:
        content = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def render(workload: IntermediateWorkload, dialect: str) -> ConversionResult:
    """The workload in another dialect; losses of reading it come first."""
    return _WRITERS[dialect](workload)
