"""A workload between two dialects, and the result or the error of a conversion.

The modules `convert/from_…` create it, the modules `convert/to_…` write it.
"""

import msgspec

from fairlead.formats.losses import Loss
from fairlead.formats.plain import Plain
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind, outside_spec_names

REST, YAML, FLAGS = "rest", "yaml", "flags"
SBATCH, JOB, DSTACK, SKYPILOT = "sbatch", "kubernetes", "dstack", "skypilot"
#: The flag that names a project on a command line.
PROJECT_FLAG = "--project"
#: The dialects of texts; the command line itself reads command lines.
DIALECTS = (REST, YAML, SBATCH, JOB, DSTACK, SKYPILOT)


class Unconvertible(Exception):
    """The text cannot be converted; each reason is one line."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def lines_of(file: str, lines: list[str]) -> list[str]:
    """The lines, each with the name of the file before it if there is one."""
    return [f"{file}: {line}" for line in lines] if file else lines


class PlainSecret(msgspec.Struct, kw_only=True):
    """Credentials in plain text in a document, and the item that names a secret instead."""

    #: The item's key in the document.
    key: str
    #: The path of each credential in the document.
    paths: list[str]
    values: dict[str, str]
    item: Plain = {}
    #: The member of the item that names the secret.
    member: str = ""
    #: The secret's name, when it is known.
    name: str = ""


class IntermediateWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A workload between two dialects."""

    kind: Kind
    name: str
    is_prefix: bool = False
    #: The project's name, if the dialect names one.
    project: str = ""
    #: Where the project was named: a path of the text, or a flag.
    project_path: str = "metadata.namespace"
    is_active: bool = True
    #: The spec as REST has it.
    spec: Plain
    losses: list[Loss] = []
    #: What was accepted but changed while reading: (path, what).
    remarks: list[tuple[str, str]] = []
    #: Credentials in the text; the spec names the secrets that will contain them.
    secrets: list[PlainSecret] = []
    #: The kind of object that it was written as, and the id of the server's template that it inherits from.
    origin: str = ""
    template_id: str = ""


class ConversionResult(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    #: A document, a list of Kubernetes objects, or the arguments of a command line.
    plain: object
    losses: list[Loss]


def below_spec(kind: Kind, losses: list[Loss]) -> list[Loss]:
    """The same losses, with paths that start at the request instead of its spec."""
    beside = outside_spec_names(kind)
    return [
        loss if loss.path.split(".")[0] in beside else msgspec.structs.replace(loss, path=f"spec.{loss.path}")
        for loss in losses
    ]


def from_stored(kind: Kind, name: str, project: str, spec: Plain, is_active: bool) -> IntermediateWorkload:
    """A workload of the server."""
    return IntermediateWorkload(kind=kind, name=name, project=project, spec=spec, is_active=is_active)


def in_project(workload: IntermediateWorkload, project: str) -> IntermediateWorkload:
    """The same workload in another project; then the lost id of its project does not matter."""
    losses = [loss for loss in workload.losses if loss.path != "projectId"]
    return msgspec.structs.replace(workload, project=project, project_path=PROJECT_FLAG, losses=losses)


def find_kind(name: str | None) -> Kind:
    """A kind by any of its names; the first kind if there is no name."""
    if name is None:
        return next(iter(KINDS.values()))
    for kind in KINDS.values():
        if name.lower() in {kind.key, kind.title.lower(), kind.rest, kind.resource.lower()}:
            return kind
    raise Unconvertible([f"There is no kind '{name}'; the kinds are {', '.join(KINDS)}."])
