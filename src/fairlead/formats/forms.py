"""The declarations of a kind as the tables of a form: what the web page draws, and nothing that it would have to know.

`scripts/build_web.py` writes them into the page. Fields of the older dialect are left out, because a request has none.
"""

import re
from typing import Any

import msgspec
from msgspec import inspect

from fairlead.formats.explain import render_default
from fairlead.kinds import role_members
from fairlead.kinds.kind import Kind, noun_of, outside_spec_names
from fairlead.kinds.policies import POLICY_TYPE_OF_KIND
from fairlead.model.spec.fields import Field, fields_of

Table = dict[str, Any]
#: Longer texts get a line of their own.
_LONG = 5000
#: Parts of names that a label writes differently.
_LABEL_WORDS = {
    **{word: word.upper() for word in ("cpu", "gpu", "pvc", "nfs", "s3", "url", "uid", "gid", "id", "ssh", "ipc")},
    "urls": "URLs",
    "dir": "directory",
    "args": "arguments",
    "tty": "terminal",
    "stdin": "standard input",
    "num": "number of",
    "mpi": "MPI",
    "http": "HTTP",
    "shm": "shared memory",
    "ref": "reference",
    "attr": "attribute",
}


def render_form(kind: Kind) -> Table:
    """A kind's names, and its fields in the order of their declaration."""
    policy = POLICY_TYPE_OF_KIND[kind.key]
    return {
        "title": kind.title,
        "rest": kind.rest,
        "noun": noun_of(kind),
        "outsideSpec": list(outside_spec_names(kind)),
        "policySections": [{"name": section.name, "member": section.member} for section in policy.sections],
        "fields": render_fields(kind.spec),
    }


def render_fields(spec: type[msgspec.Struct]) -> list[Table]:
    """The fields of a spec, of a workload or of an asset."""
    return [_render_field(field) for field in fields_of(spec) if field.about.surface == "contract"]


def _render_field(field: Field) -> Table:
    about = field.about
    table: Table = {"name": field.rest, "label": label_of(field.rest), "text": about.text, "type": _type_of(field)}
    optional = {
        "unit": about.unit,
        "default": render_default(about),
        "isRequired": about.mandatory or field.required,
        "isCommon": about.is_common,
        "isSecret": about.secret,
        "refers": about.refers.value if about.refers else "",
        "key": about.key,
        "choices": _choices_of(field),
        "isRole": field.rest in role_members(),
        "isLong": isinstance(field.shape, inspect.StrType) and (field.shape.max_length or 0) > _LONG,
    }
    table.update({name: value for name, value in optional.items() if value})
    if isinstance(field.shape, inspect.IntType | inspect.FloatType):
        table.update({name: bound for name, bound in (("min", field.shape.ge), ("max", field.shape.le)) if bound})
    if field.struct is not None:
        table["members"] = render_fields(field.struct)
    return table


def _type_of(field: Field) -> str:
    if field.is_list:
        return "objects" if field.struct is not None else "strings"
    if field.is_quantity:
        return "quantity"
    return field.type_word


def _choices_of(field: Field) -> list[str]:
    shape = field.item if field.is_list else field.shape
    if isinstance(shape, inspect.LiteralType):
        return [str(value) for value in shape.values]
    if isinstance(shape, inspect.EnumType):
        return [str(member.value) for member in shape.cls]
    return []


def label_of(name: str) -> str:
    """`GPU devices request` for `gpuDevicesRequest`."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+\d?", name)
    text = " ".join(_LABEL_WORDS.get(word.lower(), word.lower()) for word in parts)
    return text[:1].upper() + text[1:]
