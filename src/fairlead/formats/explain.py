"""What every field means, from its declaration: type, description, default, REST paths, flags, kinds, members.

The tables of the command `explain`, the reference page of workload YAML and the descriptions of the custom resources
are made from it. Names are those of workload YAML; fields that only REST has are listed by their REST paths.
"""

import msgspec

from fairlead.formats.yaml.fields import ITEMS, MAP, PLAIN, YamlField, kind_names, yaml_fields
from fairlead.formats.yaml.keywords import API_VERSION
from fairlead.formats.yaml.write import declared
from fairlead.kinds.kind import Kind
from fairlead.model.spec.fields import Field, FieldInfo, fields_of

_SPEC = "What to run, and how. Fields are written as `name: {value: X}`, lists as `name: {items: {KEY: {value: X}}}`."


class FieldExplanation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    #: Empty for fields of workload YAML; otherwise the dialect that has it.
    version: str = ""
    type: str
    description: str
    default: str = ""
    choices: tuple[str, ...] = ()
    #: Its places in a creation request: dotted paths, with `[]` after lists.
    rest: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    #: The YAML kinds that have the field.
    kinds: tuple[str, ...] = ()
    spellings: tuple[str, ...] = ()
    example: str = ""
    #: (name, type, first sentence) of its members.
    fields: tuple[tuple[str, str, str], ...] = ()


def explain_all(kind: Kind) -> dict[str, FieldExplanation]:
    """All explanations of a kind: of the kind itself (empty path), of its spec, and of each field and member by
    its path below the spec. `items`, KEY and `value` are not part of a path."""
    explanations = {"": _kind(kind), "spec": _spec(kind)}
    explanations.update(_rest_below(kind.spec, ""))
    for field in yaml_fields(kind).values():
        if kind.letter and kind.letter in field.kinds:
            explanations[field.name] = _field(kind, field)
            for member in field.members:
                explanations[f"{field.name}.{member.name}"] = _member(field, member)
    return explanations


def _kind(kind: Kind) -> FieldExplanation:
    parts = (
        ("apiVersion", "string", f"Always {API_VERSION}."),
        ("kind", "string", f"Always {kind.resource}."),
        ("metadata", "Object", "name, namespace (runai-<project>), labels (priorityClassName)."),
        ("spec", "Object", "What to run, and how."),
        ("status", "Object", "The status of the workload, written by the system."),
    )
    text = f"A workload of type {kind.title}, category {kind.category}, default priority {kind.priority}."
    return FieldExplanation(type="Object", description=text, fields=parts if kind.letter else parts[3:])


def _spec(kind: Kind) -> FieldExplanation:
    if not kind.letter:
        below = tuple(
            (field.rest, _rest_type(field), render_description(field.about)) for field in fields_of(kind.spec)
        )
        return FieldExplanation(version="REST", type="Object", description="What to run, and how.", fields=below)
    members = tuple(
        (field.name, describe_type(field), render_description(field.about))
        for field in yaml_fields(kind).values()
        if kind.letter in field.kinds
    )
    return FieldExplanation(type="Object", description=_SPEC, rest=("spec",), fields=members)


def _field(kind: Kind, field: YamlField) -> FieldExplanation:
    paths = ((field.path,) if field.path else ()) + field.sets
    abouts = [one.about for path in paths if (one := declared(kind, path.replace("[]", ""))) is not None]
    flags = [flag for about in [field.about, *abouts] for flag in _flags(about)]
    return FieldExplanation(
        type=describe_type(field),
        description=render_description(field.about),
        default=render_default(field.about),
        choices=field.choices,
        rest=tuple(f"spec.{path}" for path in paths) + field.outside_spec,
        flags=tuple(dict.fromkeys(flags)),
        kinds=tuple(kind_names(letter) for letter in field.kinds),
        spellings=(*field.also, *field.choice_aliases),
        example=render_example(field),
        fields=tuple(
            (member.name, describe_type(member, is_member=True), render_description(member.about))
            for member in field.members
        ),
    )


def _member(field: YamlField, member: YamlField) -> FieldExplanation:
    flags = tuple(
        f"{flag.name} {member.about.part}=…"
        for flag in field.about.flags
        if member.about.part and (not flag.parts or member.path in flag.parts)
    )
    return FieldExplanation(
        type=describe_type(member, is_member=True),
        description=render_description(member.about),
        default=render_default(member.about),
        choices=member.choices,
        rest=(f"spec.{field.path}[].{member.path}",),
        flags=flags,
        spellings=member.also,
    )


def _rest_below(struct: object, path: str, role: str = "") -> dict[str, FieldExplanation]:
    """The fields of REST by their own paths; flags for the pods of a role start with its name."""
    explanations: dict[str, FieldExplanation] = {}
    for field in fields_of(struct):
        here = f"{path}.{field.rest}" if path else field.rest
        below = fields_of(field.struct) if field.struct is not None else ()
        key = here.replace("[]", "")
        explanations[key] = FieldExplanation(
            version="REST",
            type=_rest_type(field),
            description=render_description(field.about),
            default=render_default(field.about),
            rest=(f"spec.{here}",),
            flags=_flags(field.about, role),
            fields=tuple((one.rest, _rest_type(one), render_description(one.about)) for one in below),
        )
        if field.struct is not None:
            explanations.update(
                _rest_below(field.struct, here + ("[]" if field.is_list else ""), field.about.role or role)
            )
    return explanations


def _flags(about: FieldInfo, role: str = "") -> tuple[str, ...]:
    if role:
        names = [(flag.name, *flag.aliases) for flag in about.flags]
        return tuple(", ".join(f"--{role}-{name.removeprefix('--')}" for name in each) for each in names)
    return tuple(", ".join(filter(None, (flag.short, flag.name, *flag.aliases))) for flag in about.flags)


def describe_type(field: YamlField, is_member: bool = False) -> str:
    """The type of the content of `value:`, for people."""
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


def _rest_type(field: Field) -> str:
    if field.is_list:
        return "[]Object" if field.struct is not None else "[]string"
    if field.struct is not None:
        return "Object"
    return "quantity" if field.is_quantity else field.type_word


def render_description(about: FieldInfo) -> str:
    sentences = [about.text]
    if about.unit:
        sentences.append(f"In {about.unit}.")
    if about.mandatory:
        sentences.append("Required.")
    return " ".join(sentences)


def render_default(about: FieldInfo) -> str:
    if about.default_text or about.default is None:
        return about.default_text
    return str(about.default).lower() if isinstance(about.default, bool) else str(about.default)


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
    """An example of the field."""
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
