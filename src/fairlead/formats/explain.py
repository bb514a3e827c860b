"""What a field means, from its declaration: type, description, default, REST path, flags, kinds, members.

`fairlead explain` prints it, and the reference page of workload YAML is made of it. Names are those of workload YAML;
REST paths are understood too, so that fields which YAML lacks can be asked for.
"""

from typing import Any

import msgspec
from msgspec import inspect

from fairlead.formats.yaml_fields import ITEMS, MAP, PLAIN, YamlField, spellings, told_kinds, yaml_fields
from fairlead.formats.yaml_names import API_VERSION, near
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind
from fairlead.model.fields import About, Field, fields_of

_SPEC = (
    "What is to run, and how. Fields are written as `name: {value: X}`, lists as `name: {items: {KEY: {value: X}}}`."
)
_WIDTH = 80


class Unknown(Exception):
    """There is no such kind or field; the words name what is near."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    kind: str
    version: str = API_VERSION
    #: The path below the kind, as asked.
    field: str
    type: str
    description: str
    default: str = ""
    choices: tuple[str, ...] = ()
    #: The dotted path in a creation request; empty where REST has no such field.
    rest: str = ""
    flags: tuple[str, ...] = ()
    #: Kinds of YAML that have the field.
    kinds: tuple[str, ...] = ()
    spellings: tuple[str, ...] = ()
    example: str = ""
    #: (name, type, first words) of what is below.
    fields: tuple[tuple[str, str, str], ...] = ()


def explain(asked: str) -> Explanation:
    """The explanation of `KIND`, `KIND.spec`, `KIND.spec.FIELD` or further down; `spec` may be left out."""
    name, *path = asked.strip(".").split(".")
    kind = _find_kind(name)
    if path[:1] == ["spec"]:
        path = path[1:]
        if not path:
            return _explain_spec(kind)
    elif not path:
        return _explain_kind(kind)
    field = spellings(kind).get(path[0].lower())
    if field is not None and kind.letter in field.kinds and not _is_rest_only(kind, path):
        return _explain_yaml(kind, field, path)
    return _explain_rest(kind, path)


def _is_rest_only(kind: Kind, path: list[str]) -> bool:
    """Whether the words go below an object of REST that YAML has flat, as in podAffinity.type."""
    below = next((field for field in fields_of(kind.spec) if field.rest == path[0]), None)
    return len(path) > 1 and path[1] not in ("items", "value") and below is not None and not below.is_list


def _find_kind(name: str) -> Kind:
    wanted = name.lower().replace("-", "")
    for kind in KINDS.values():
        words = {kind.resource, f"{kind.resource}s", kind.key, kind.title, kind.rest, "".join(kind.command)}
        if wanted in {word.lower().replace("-", "") for word in words}:
            return kind
    known = [kind.resource.lower() for kind in KINDS.values()]
    raise Unknown(f"There is no kind '{name}'{near(name, known)}")


def _explain_kind(kind: Kind) -> Explanation:
    parts = (
        ("apiVersion", "string", f"Always {API_VERSION}."),
        ("kind", "string", f"Always {kind.resource}."),
        ("metadata", "Object", "name, namespace (runai-<project>), labels (priorityClassName)."),
        ("spec", "Object", "What is to run, and how."),
        ("status", "Object", "How far it has come; the system writes it."),
    )
    text = f"A workload of type {kind.title}, category {kind.category}, priority {kind.priority} unless told otherwise."
    return Explanation(kind=kind.resource, field="", type="Object", description=text, fields=parts)


def _explain_spec(kind: Kind) -> Explanation:
    found = tuple(
        (field.name, told_type(field), render_description(field.about))
        for field in yaml_fields(kind).values()
        if kind.letter in field.kinds
    )
    return Explanation(kind=kind.resource, field="spec", type="Object", description=_SPEC, rest="spec", fields=found)


def _explain_yaml(kind: Kind, field: YamlField, path: list[str]) -> Explanation:
    """A field, or with further words a member of its items; `items`, KEY and `value` may stand between."""
    rest = f"spec.{field.path}" if field.path else ""
    words = [word for word in path[1:] if word not in ("items", "value")]
    if not words or not field.members:
        return _explanation(kind, field, ".".join(["spec", *path]), rest)
    member = field.spelt.get(words[-1].lower())
    if member is None:
        known = [other.name for other in field.members]
        raise Unknown(f"{field.name} has no member '{words[-1]}'{near(words[-1], known)}")
    flags = tuple(
        f"{flag.name} {member.about.part}=…"
        for flag in field.about.flags
        if member.about.part and (not flag.parts or member.path in flag.parts)
    )
    return Explanation(
        kind=kind.resource,
        field=".".join(["spec", *path]),
        type=told_type(member, is_member=True),
        description=render_description(member.about),
        default=render_default(member.about),
        choices=member.choices,
        rest=f"{rest}[].{member.path}",
        flags=flags,
        spellings=member.also,
    )


def _explanation(kind: Kind, field: YamlField, asked: str, rest: str) -> Explanation:
    members = tuple(
        (member.name, told_type(member, is_member=True), render_description(member.about)) for member in field.members
    )
    return Explanation(
        kind=kind.resource,
        field=asked,
        type=told_type(field),
        description=render_description(field.about),
        default=render_default(field.about),
        choices=field.choices,
        rest=rest,
        flags=_flags(field.about),
        kinds=tuple(told_kinds(letter) for letter in field.kinds),
        spellings=field.also,
        example=render_example(field),
        fields=members,
    )


def _explain_rest(kind: Kind, path: list[str]) -> Explanation:
    struct: Any = kind.spec
    found: Field | None = None
    for step in path:
        fields = {field.rest: field for field in fields_of(struct)} if struct is not None else {}
        if step not in fields:
            known = [*fields, *(yaml_fields(kind) if struct is kind.spec else ())]
            raise Unknown(
                f"There is no field '{step}' in {'.'.join([kind.resource, 'spec', *path])}{near(step, known)}"
            )
        found = fields[step]
        struct = found.struct
    if found is None:
        raise Unknown(f"There is no such field in {kind.resource}")
    below = tuple(
        (field.rest, _rest_type(field), render_description(field.about))
        for field in (fields_of(struct) if struct else ())
    )
    return Explanation(
        kind=kind.resource,
        version="REST",
        field=".".join(["spec", *path]),
        type=_rest_type(found),
        description=render_description(found.about),
        default=render_default(found.about),
        rest=".".join(["spec", *path]),
        flags=_flags(found.about),
        fields=below,
    )


def _flags(about: About) -> tuple[str, ...]:
    return tuple(", ".join(filter(None, (flag.short, flag.name, *flag.aliases))) for flag in about.flags)


def told_type(field: YamlField, is_member: bool = False) -> str:
    """The type as people say it: what stands below `value:`."""
    if field.form is PLAIN:
        return "string"
    if field.form is ITEMS:
        return "items"
    if field.form is MAP:
        return "map"
    names = {
        "limit": "number or quantity",
        "list": "list of strings" if is_member else "string",
        "object": "Object",
        "mark": "boolean",
    }
    return names.get(field.type, field.type)


_REST_TYPES: dict[type, str] = {
    inspect.BoolType: "boolean",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.StrType: "string",
    inspect.LiteralType: "string",
}


def _rest_type(field: Field) -> str:
    if field.is_list:
        return "[]Object" if field.struct is not None else "[]string"
    if field.struct is not None:
        return "Object"
    if field.is_quantity:
        return "quantity"
    return _REST_TYPES[type(field.shape)]


def render_description(about: About) -> str:
    words = [about.text]
    if about.unit:
        words.append(f"In {about.unit}.")
    if about.mandatory:
        words.append("Must be given.")
    return " ".join(words)


def render_default(about: About) -> str:
    if about.default is not None:
        return str(about.default).lower() if isinstance(about.default, bool) else str(about.default)
    return about.default_text


_SAMPLES = {
    "boolean": "true",
    "mark": "true",
    "integer": "2",
    "number": '"0.5"',
    "quantity": "1Gi",
    "limit": '"0.5"',
    "object": "{…}",
}


def render_example(field: YamlField) -> str:
    """One way to write the field."""
    if field.form is PLAIN:
        return f"{field.name}: {_sample(field)}"
    if field.form is MAP:
        return f"{field.name}: {{items: {{KEY: {{value: …}}}}}}"
    if field.form is ITEMS:
        inner = f"{field.member}: {_sample(field)}" if field.member else ", ".join(_given_members(field))
        return f"{field.name}: {{items: {{KEY: {{value: {{{inner}}}}}}}}}"
    return f"{field.name}: {{value: {_sample(field)}}}"


def _given_members(field: YamlField) -> list[str]:
    chosen = [member for member in field.members if member.about.mandatory] or list(field.members[:1])
    return [f"{member.name}: {_sample(member)}" for member in chosen]


def _sample(field: YamlField) -> str:
    return field.choices[0] if field.choices else _SAMPLES.get(field.type, "…")


def render_text(found: Explanation) -> str:
    """The explanation as kubectl lays it out, and below it what kubectl does not know."""
    lines = [f"KIND:       {found.kind}", f"VERSION:    {found.version}", ""]
    if found.field:
        lines += [f"FIELD: {found.field} <{found.type}>", ""]
    lines += ["DESCRIPTION:", *_wrapped(found.description, 4), ""]
    for title, value in (
        ("DEFAULT", found.default),
        ("ONE OF", ", ".join(found.choices)),
        ("REST", found.rest),
        ("FLAG", "; ".join(found.flags)),
        ("ALSO", ", ".join(found.spellings)),
        ("KINDS", ", ".join(found.kinds)),
        ("EXAMPLE", found.example),
    ):
        if value:
            lines.append(f"{title + ':':<11} {value}")
    if found.fields:
        lines += ["", "FIELDS:"] if lines[-1] else ["FIELDS:"]
        for name, kind, description in found.fields:
            lines += [f"  {name}\t<{kind}>", *_wrapped(description, 4), ""]
    return "\n".join(lines).rstrip() + "\n"


def _wrapped(text: str, indent: int) -> list[str]:
    lines: list[str] = []
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > _WIDTH - indent:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [" " * indent + part for part in (*lines, line) if part]
