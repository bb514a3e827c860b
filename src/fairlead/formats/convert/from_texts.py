"""Reads texts that are plain YAML or scripts: tasks and jobs of other systems, and REST requests written as YAML.

Called by `convert`.
"""

from fairlead.formats.convert.from_rest import read_request
from fairlead.formats.foreign.dstack import read_dstack
from fairlead.formats.foreign.kubernetes_job import read_job
from fairlead.formats.foreign.skypilot import read_skypilot
from fairlead.formats.foreign.slurm import read_sbatch
from fairlead.formats.foreign.tasks import ForeignTask
from fairlead.formats.intermediate import (
    DSTACK,
    JOB,
    REST,
    SBATCH,
    SKYPILOT,
    IntermediateWorkload,
    Unconvertible,
    lines_of,
)
from fairlead.formats.plain import Plain
from fairlead.formats.yaml.tree import read_tree
from fairlead.formats.yaml.values import read_plain
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind

_READERS = {JOB: read_job, DSTACK: read_dstack, SKYPILOT: read_skypilot}


def read(text: str, dialect: str, kind: Kind | None = None, file: str = "") -> list[IntermediateWorkload]:
    """The workloads of a text. `kind` is used for dialects that do not name one."""
    first = kind or next(iter(KINDS.values()))
    if dialect == SBATCH:
        return [_from_task(first, read_sbatch(text))]
    documents, issues = read_tree(text, file)
    if issues:
        raise Unconvertible([str(issue) for issue in issues])
    contents = [read_plain(document) for document in documents]
    plains = [content for content in contents if isinstance(content, dict)]
    if len(plains) < len(contents):
        raise Unconvertible(lines_of(file, ["The text contains something that is not an object."]))
    if dialect == REST:
        return [read_request(plain, kind, file) for plain in plains]
    return [_from_task(first, _read_foreign(plain, dialect, file)) for plain in plains]


def _read_foreign(plain: Plain, dialect: str, file: str) -> ForeignTask:
    """Read another system's description. Its shape is not checked before, so any part may have a wrong type."""
    try:
        return _READERS[dialect](plain)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        line = f"The text is not a valid {dialect} description: {error}."
        raise Unconvertible(lines_of(file, [line])) from error


def _from_task(kind: Kind, task: ForeignTask) -> IntermediateWorkload:
    return IntermediateWorkload(
        kind=task.kind or kind, name=_label(task.name), project=task.project, spec=task.spec, losses=list(task.losses)
    )


def _label(name: str) -> str:
    """A foreign name as a valid name of a workload."""
    label = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name.lower()).strip("-")
    if not label:
        return "workload"
    return (label if label[:1].isalpha() else f"w-{label}")[:63].rstrip("-")
