"""The fields of workload YAML, worked out from the declarations: name, kinds, form, type, and where REST has it.

Reading, writing, explaining and the custom resources' schemas walk this. Fields that YAML has and REST has not, or has
otherwise, stand in `_EXTRAS`; what they mean is in `yaml_pairs.py`.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind
from fairlead.model.fields import About, Field, fields_of
from fairlead.model.network import ServiceType

#: What the letters of `About.yaml_kinds` stand for where no kind of ours has them.
LETTERS = {
    "W": "interactive workloads (workspaces)",
    "D": "distributed workloads",
    "I": "inference workloads",
    "J": "the legacy Job",
}
VALUE, ITEMS, MAP, PLAIN = "value", "items", "map", "plain"
#: The value of items that are no objects in REST: the member that holds it.
_ITEM_MEMBERS = {"capabilities": "capability"}


class YamlField(msgspec.Struct, frozen=True, kw_only=True):
    """One field below `spec`, or one member of an item."""

    name: str
    also: tuple[str, ...] = ()
    kinds: str = "WTDIJ"
    #: value: `name: {value: X}`; items: `name: {items: {KEY: {value: {…}}}}`; map: `{items: {KEY: {value: X}}}`;
    #: plain: `name: X`.
    form: str = VALUE
    #: boolean, integer, number, quantity, string, list or object; `limit` for what is a number or a quantity.
    type: str = "string"
    choices: tuple[str, ...] = ()
    #: Dotted REST path below the spec (or below the item); empty where REST has no such field.
    path: str = ""
    about: About
    #: Of an item: what it may hold; and the same by every accepted spelling in small letters.
    members: tuple["YamlField", ...] = ()
    spelt: dict[str, "YamlField"] = {}
    #: The member of the item that KEY is in REST; empty where REST has no place for it.
    key: str = ""
    #: For lists of plain values that are written as items: the member that holds the value.
    member: str = ""
    #: Its meaning is worked out by a pair of functions, together with others.
    is_paired: bool = False
    #: Only the system writes it.
    is_system: bool = False
    schema: dict[str, Any] = {}
    shape: Any = None


def _extra(name: str, text: str, kinds: str = "WTDIJ", **more: Any) -> YamlField:
    known = {key: more.pop(key) for key in ("default_text", "mandatory", "unit") if key in more}
    return YamlField(name=name, kinds=kinds, about=About(text=text, **known), is_paired=True, **more)


_MPI = "asks for an MPI job"
#: What REST has not as one field. `gpu` and `gpuLimit` are declared, and read together with their neighbours.
_EXTRAS = (
    _extra("active", "Whether the workload runs; false suspends it.", type="boolean", default_text="true"),
    _extra(
        "baseWorkload",
        "The name of a workload with usage Template, in the same namespace or else in namespace runai: what this one "
        "does not give comes from there, items one by one.",
        form=PLAIN,
        kinds="WTDIJ",
    ),
    _extra("name", "The workload's name. Exactly one of name and namePrefix is given."),
    _extra("namePrefix", "The beginning of the workload's name; characters are added to it."),
    _extra(
        "usage",
        "Submit runs the workload; Template only keeps it for others to name as baseWorkload.",
        form=PLAIN,
        choices=("Submit", "Template"),
        default_text="Submit",
    ),
    _extra(
        "runAsUser",
        "Runs the process as runAsUid and runAsGid, or without those as the user of the caller's identity token.",
        type="boolean",
        default_text="the image's own user",
    ),
    _extra(
        "serviceType",
        "How ports are offered that name no service type of their own.",
        choices=tuple(ServiceType.__args__),  # type: ignore[attr-defined]
        default_text="ClusterIP",
    ),
    _extra(
        "mountPropagation",
        "Whether later mounts below the node's paths appear in the container, for volumes that do not say it.",
        type="boolean",
        default_text="false",
    ),
    _extra("nodePool", "The one node pool to use. Deprecated: nodePools takes several.", "T"),
    _extra("userId", "The subject of the owner's token; the system writes it.", "T", is_system=True),
    _extra("ingressUrl", "For the system's own use.", "T", is_system=True),
    _extra("mpi", f"Together with processes {_MPI}.", "TD", type="object"),
    _extra("processes", f"The number of processes; {_MPI}.", "TD", type="integer"),
    _extra("slotsPerWorker", f"The slots of each worker; {_MPI}.", "TD", type="integer"),
)
#: Fields of kinds that are not here yet, so that a refusal can name who has them.
ELSEWHERE = {
    "preemptible": "W",
    "jupyter": "W",
    "notebookToken": "W",
    "tensorboard": "W",
    "tensorboardLogdir": "W",
    "minScale": "I",
    "maxScale": "I",
    "metric": "I",
    "target": "I",
    "metricName": "I",
    "class": "I",
    "isPrivateServiceUrl": "I",
    "jobType": "D",
    "workers": "D",
    "noMaster": "D",
    "nonPreemptible": "D",
    "mpiJob": "D",
    "pyTorchJob": "D",
    "runPolicy": "D",
}
#: Declared fields whose meaning depends on their neighbours; the second word is their type in YAML.
_PAIRED = {
    "compute.gpuPortionRequest": "number",
    "compute.gpuPortionLimit": "limit",
    "podAffinity": "boolean",
    "podAffinity.type": "string",
    "podAffinity.key": "string",
    "probes.readiness": "object",
    "security.runAsUid": "integer",
    "security.runAsGid": "integer",
}
_CHOICES = {"podAffinity.type": ("hard", "soft")}
#: What they mean here, where that is not what their REST field means.
_TEXTS = {
    "compute.gpuPortionRequest": "GPU devices: between 0 and 1 a part of one, otherwise a whole number of them. "
    "Beside a part, gpuDevices says of how many devices.",
    "compute.gpuPortionLimit": "How far the pod may go while others leave it free: a number is a part of each device, "
    "at least gpu; a quantity such as 20M is memory of each device, as gpuMemoryLimit.",
    "compute.gpuMemoryRequest": "Memory of a GPU device; not together with gpu.",
    "podAffinity": "Places the workload's pods near each other, as podAffinitySchedulingRule and podAffinityTopology "
    "say.",
    "podAffinity.type": "hard where it must hold, soft where it is preferred; only with podAffinity.",
    "podAffinity.key": "The node label whose value the workload's pods share; only with podAffinity.",
    "probes.readiness": "When the container counts as ready for traffic, written as Kubernetes' readiness probe.",
    "security.runAsUid": "The user id; it counts only with runAsUser.",
    "security.runAsGid": "The group id; it counts only with runAsUser.",
    "nodePools": "Node pools to try, the first one first, separated by spaces or commas.",
}


@cache
def yaml_fields(kind: Kind) -> dict[str, YamlField]:
    """Every field of the kind's YAML by its name, in alphabetical order; those of other letters too."""
    found = [*_walk(kind.spec, ""), *_EXTRAS]
    return {field.name: field for field in sorted(found, key=lambda field: field.name.lower())}


@cache
def spellings(kind: Kind) -> dict[str, YamlField]:
    """Every accepted spelling in small letters; people write `hostipc` and `Parallelism` too."""
    return _spellings(yaml_fields(kind).values())


def _spellings(fields: Iterable[YamlField]) -> dict[str, YamlField]:
    return {name.lower(): field for field in fields for name in (field.name, *field.also)}


@cache
def resources() -> dict[str, tuple[Kind, str]]:
    """Every kind of custom resource that is read, with the kind it means and its letter."""
    found = {kind.resource: (kind, kind.letter) for kind in KINDS.values() if kind.letter}
    for kind in KINDS.values():
        found.update({name: (kind, letter) for name, letter in kind.resources_before})
    return found


def told_kinds(letters: str) -> str:
    """The kinds that the letters mean, in words: those that are here by their resource's name."""
    here = {kind.letter: kind.resource for kind in KINDS.values()}
    return ", ".join(here.get(letter) or LETTERS[letter] for letter in letters)


def _walk(struct: Any, path: str) -> list[YamlField]:
    found = []
    for field in fields_of(struct):
        here = f"{path}.{field.rest}" if path else field.rest
        if field.about.yaml:
            found.append(_field(field, here))
        if field.struct is not None and not field.is_list and here != "probes.readiness" and not field.about.role:
            found += _walk(field.struct, here)
    return found


def _field(field: Field, path: str) -> YamlField:
    about = field.about
    if path in _TEXTS:
        about = msgspec.structs.replace(about, text=_TEXTS[path], mandatory=False, unit="")
    shape = field.item if field.is_list else field.shape
    members: tuple[YamlField, ...] = ()
    form = VALUE
    key = ""
    if field.is_list and field.struct is not None:
        members = tuple(_walk(field.struct, ""))
        form = ITEMS if members else MAP
        named = {member.path for member in members}
        key = about.key if about.key not in named else ""
    elif about.yaml in _ITEM_MEMBERS:
        form = ITEMS
    return YamlField(
        name=about.yaml,
        also=about.yaml_also,
        kinds=about.yaml_kinds,
        form=form,
        type=_PAIRED.get(path) or _type(field, shape),
        choices=_CHOICES.get(path) or (tuple(map(str, shape.values)) if isinstance(shape, inspect.LiteralType) else ()),
        path=path,
        about=about,
        members=members,
        spelt=_spellings(members),
        key=key,
        member=_ITEM_MEMBERS.get(about.yaml, ""),
        is_paired=path in _PAIRED,
        schema=field.schema,
        shape=shape,
    )


def _type(field: Field, shape: Any) -> str:
    if field.is_list:
        return "list"
    if field.is_quantity:
        return "quantity"
    if isinstance(shape, inspect.BoolType):
        return "boolean"
    if isinstance(shape, inspect.IntType):
        return "integer"
    if isinstance(shape, inspect.FloatType):
        return "number"
    return "object" if field.struct is not None else "string"
