"""A workload between two dialects: what every conversion hands on, and what it ends with or fails by.

The modules `convert_from_…` make it, those called `convert_to_…` write it. It stands by itself so that a conversion
loads only the two dialects that it is about.
"""

from typing import Any

import msgspec

from fairlead.formats.losses import Loss
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind, outside_spec_names

REST, YAML, FLAGS = "rest", "yaml", "flags"
SBATCH, JOB, DSTACK, SKYPILOT = "sbatch", "kubernetes", "dstack", "skypilot"
#: By which a command line names a project.
PROJECT_FLAG = "--project"
#: What texts can be in; command lines are read by the command line.
DIALECTS = (REST, YAML, SBATCH, JOB, DSTACK, SKYPILOT)


class Unconvertible(Exception):
    """The text cannot be read; every reason is a line of its own."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def lines_of(file: str, lines: list[str]) -> list[str]:
    """What is wrong with a text, behind the name of its file where it has one."""
    return [f"{file}: {line}" for line in lines] if file else lines


class PlainSecret(msgspec.Struct, kw_only=True):
    """Credentials that stand in a document in plain text, and the item that is to name a secret instead."""

    #: The item's key in the document.
    key: str
    #: The document's path of each of them.
    paths: list[str]
    values: dict[str, str]
    item: dict[str, Any] = {}
    #: Where the item names its secret.
    member: str = ""
    #: The secret's name, once it is known.
    name: str = ""


class IntermediateWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A workload between two dialects."""

    kind: Kind
    name: str
    is_prefix: bool = False
    #: The project's name, where the dialect names one.
    project: str = ""
    #: Where the project was named: a path of the text, or a flag.
    project_path: str = "metadata.namespace"
    is_active: bool = True
    #: The spec as REST has it.
    spec: dict[str, Any]
    losses: list[Loss] = []
    #: What was read otherwise than written: (path, what).
    remarks: list[tuple[str, str]] = []
    #: Credentials that stood in the text; the spec names secrets that are to hold them.
    secrets: list[PlainSecret] = []
    #: The kind of object that it was written as, and the server's template at the end of what it inherits.
    origin: str = ""
    template_id: str = ""


class ConversionResult(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    plain: Any
    losses: list[Loss]


def below_spec(kind: Kind, losses: list[Loss]) -> list[Loss]:
    """The same losses, with paths that begin at the request and not at its spec."""
    beside = outside_spec_names(kind)
    return [
        loss if loss.path.split(".")[0] in beside else msgspec.structs.replace(loss, path=f"spec.{loss.path}")
        for loss in losses
    ]


def from_stored(kind: Kind, name: str, project: str, spec: dict[str, Any], is_active: bool) -> IntermediateWorkload:
    """A workload that a server has."""
    return IntermediateWorkload(kind=kind, name=name, project=project, spec=spec, is_active=is_active)


def in_project(workload: IntermediateWorkload, project: str) -> IntermediateWorkload:
    """The same workload in another project, named by the caller; a project's id is then no loss."""
    losses = [loss for loss in workload.losses if loss.path != "projectId"]
    return msgspec.structs.replace(workload, project=project, project_path=PROJECT_FLAG, losses=losses)


def altered(workload: IntermediateWorkload, members: dict[str, Any]) -> IntermediateWorkload:
    """The same workload with other members."""
    return msgspec.structs.replace(workload, **members)


def find_kind(name: str | None) -> Kind:
    """A kind by any of its names; the first of all where none is asked for."""
    if name is None:
        return next(iter(KINDS.values()))
    for kind in KINDS.values():
        if name.lower() in {kind.key, kind.title.lower(), kind.rest, kind.resource.lower()}:
            return kind
    raise Unconvertible([f"There is no kind '{name}'; there are {', '.join(KINDS)}."])
