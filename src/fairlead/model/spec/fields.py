"""How a field of a spec is declared: its type and bounds for msgspec, and a `FieldInfo` with everything else.

The spec structs of `model/` and `kinds/` are declared with this. `formats/` and `admission/` walk the result of
`fields_of` and know no field by name. It reads declarations only, never a request.
"""

from collections.abc import Callable, Mapping
from functools import cache
from inspect import get_annotations
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, TypeGuard, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, UnsetType

from fairlead.model.records.assets import Reference
from fairlead.model.syntax import Syntax

T = TypeVar("T")
D = TypeVar("D")
S = TypeVar("S", bound=msgspec.Struct)
#: What a member is annotated with: a type, a union, `Annotated` …
Hint: TypeAlias = object
#: Plain data, as decoded from JSON: None, a bool, a number, a string, a list or a dict.
Json: TypeAlias = object
Struct: TypeAlias = type[msgspec.Struct]
#: Left out, null, or a value: these three differ.
Maybe = Union[T, None, UnsetType]  # noqa: UP007 - a generic alias; `T | None` cannot be subscripted at run time here
#: Left out or a value; the contract allows no null here.
Given = Union[T, UnsetType]  # noqa: UP007 - as above

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

Int32 = Annotated[int, Meta(ge=INT32_MIN, le=INT32_MAX, extra_json_schema={"format": "int32"})]
Int64 = Annotated[int, Meta(ge=INT64_MIN, le=INT64_MAX, extra_json_schema={"format": "int64"})]
Count32 = Annotated[int, Meta(ge=0, le=INT32_MAX, extra_json_schema={"format": "int32"})]
Positive32 = Annotated[int, Meta(ge=1, le=INT32_MAX, extra_json_schema={"format": "int32"})]
PortNumber = Annotated[int, Meta(ge=1, le=65535, extra_json_schema={"format": "int32"})]
#: A number as it was written: 2 stays 2 and 0.5 stays 0.5.
Number = (
    Annotated[int, Meta(ge=0, extra_json_schema={"type": "number", "format": "double"})] | Annotated[float, Meta(ge=0)]
)
#: Python's `$` lets a final line break pass, which the contract's does not: hence `\\Z` inside and `$` outside.
NAME_PATTERN = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
_NAME = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?\Z"
QUANTITY_PATTERN = "^([+]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_QUANTITY = r"^([+]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)\Z"

Text = Annotated[str, Meta(min_length=1)]
Text63 = Annotated[str, Meta(min_length=1, max_length=63)]
Text253 = Annotated[str, Meta(min_length=1, max_length=253)]
Text2048 = Annotated[str, Meta(min_length=1, max_length=2048)]
Text4096 = Annotated[str, Meta(min_length=1, max_length=4096)]
Text10000 = Annotated[str, Meta(min_length=1, max_length=10000)]
UpTo63 = Annotated[str, Meta(max_length=63)]
UpTo250 = Annotated[str, Meta(max_length=250)]
UpTo253 = Annotated[str, Meta(max_length=253)]
UpTo2048 = Annotated[str, Meta(max_length=2048)]
UpTo4096 = Annotated[str, Meta(max_length=4096)]
UpTo10000 = Annotated[str, Meta(max_length=10000)]
#: Beside a pattern stands its rule in words, with an example: messages never show a pattern.
NAME_RULE = "use lower-case letters, digits and hyphens, beginning and ending with a letter or digit, such as my-data"
_NAMED = {"pattern": _NAME, "extra_json_schema": {"pattern": NAME_PATTERN}, "extra": {"rule": NAME_RULE}}
ObjectName = Annotated[str, Meta(min_length=1, **_NAMED)]
ObjectName63 = Annotated[str, Meta(min_length=1, max_length=63, **_NAMED)]
ObjectName253 = Annotated[str, Meta(min_length=1, max_length=253, **_NAMED)]
QUANTITY_RULE = "give a number with an optional suffix, such as 500M, 10Gi or 1e9"


def _bytes(minimum: int, **more: int) -> Meta:
    """An amount of bytes; less than one byte is a mistake, as in 500m for 500M."""
    extra = {"quantity": 1, "least": minimum, "rule": QUANTITY_RULE, **more}
    return Meta(max_length=63, pattern=_QUANTITY, extra_json_schema={"pattern": QUANTITY_PATTERN}, extra=extra)


QuantityText = Annotated[str, _bytes(0)]
#: The size of something that cannot be empty.
SizeText = Annotated[str, _bytes(1)]
#: A size for which the contract's prose recommends units that its pattern refuses: TB, GB, MB, TIB, GIB, MIB.
ClaimSizeText = Annotated[str, _bytes(1, recommended=1)]
Uuid = Annotated[
    str,
    Meta(
        pattern=r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\Z",
        extra_json_schema={"format": "uuid", "pattern": None},
        extra={"rule": "give an id such as 3f2504e0-4f89-41d3-9a0c-0305e82c3301"},
    ),
]

NO_SUCH_NAME = "no object of that name can exist, so the workload waits for it"


class FlagDeclaration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One way to give a field on the command line, in the grammar of the runai CLI v2."""

    name: str
    short: str = ""
    aliases: tuple[str, ...] = ()
    #: Further names, which exist only behind the prefix of a role.
    role_aliases: tuple[str, ...] = ()
    #: value: one word; list: words separated by commas, repeatable; pair: A=B, repeatable; item: parts separated by
    #: commas, repeatable; switch: no word; duration: 90s, 5m, 2h; words: everything after `--`; members: one flag for
    #: each member of the object, named FLAG-MEMBER; object: parts separated by commas, the first may be a bare value.
    #: Empty: derived from the field's type.
    form: str = ""
    #: The value that a switch sets; None for true.
    constant: bool | str | None = None
    #: Further members to set, by path inside the item (or inside the spec if the field is not a list).
    preset: dict[str, Json] = {}
    #: For a pair: the paths inside the item of the left and the right side of the equals sign; a third part follows
    #: after a comma, by its name.
    pair: tuple[str, ...] = ()
    #: The parts that it accepts, by path inside the item; empty for all of them.
    parts: tuple[str, ...] = ()
    help: str = ""


class FieldInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a field means, besides its type."""

    text: str
    unit: str = ""
    #: The default, if it is a single value; its origin: `contract` (the schema), `prose` (the contract's text),
    #: `kubernetes` or `ours`; and the default in words if it is not a single value.
    default: Json = None
    origin: str = ""
    default_text: str = ""
    #: Whether it must be given, even if only the contract's prose says so.
    mandatory: bool = False
    #: The member that identifies the items of a list when lists are merged.
    key: str = ""
    #: Members that no two items of a list may have equal; several that must not be equal together are joined by `+`.
    unique: tuple[str, ...] = ()
    #: Its name in workload YAML, the kinds that have it there (letters of W T D I J), and other accepted spellings.
    yaml: str = ""
    yaml_kinds: str = "WTDIJ"
    yaml_also: tuple[str, ...] = ()
    flags: tuple[FlagDeclaration, ...] = ()
    #: For a member of an item on the command line: the part's name, and the value that the bare name sets.
    part: str = ""
    part_constant: bool | None = None
    #: For a field that describes pods of another role: the role's name, which prefixes its flags. YAML lacks it.
    role: str = ""
    #: The form of its text, if there is more to say than its type does.
    syntax: Syntax | None = None
    #: Whether its value is a secret, which is never shown, logged or indexed.
    secret: bool = False
    #: The kind of object that it names. `model/spec/references.py` walks these.
    refers: Reference | None = None
    #: The member beside it, by attribute, that names a key of the object.
    key_member: str = ""
    #: A switch beside it, by attribute, with which it names another kind of object.
    refers_if: tuple[str, Reference] | None = None
    #: The switch beside it without which the object is created if there is none of that name.
    created_unless: str = ""
    #: The switch beside it with which it has no effect.
    ignored_if: str = ""
    #: Whether running pods see changes of the object.
    is_live: bool = False
    #: For the alternative sources of one value: their order; the first one given counts. 0 for other fields.
    source: int = 0
    #: What happens if a value in the older dialect breaks its pattern; empty if that is refused.
    older: str = ""
    #: Whether forms show it first, because most workloads set it.
    is_common: bool = False
    #: `contract`, or `older` for fields that only the older dialect and workload YAML have.
    surface: str = "contract"


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One declared member of a spec struct."""

    attribute: str
    rest: str
    about: FieldInfo
    required: bool
    nullable: bool
    #: The type without null: one of msgspec.inspect's types; a number is its FloatType.
    shape: msgspec.inspect.Type
    #: Further keywords of its schema (format, pattern as the contract writes it).
    schema: dict[str, Json] = {}
    is_quantity: bool = False
    #: For an amount of bytes: 1 if it must not be 0, otherwise 0.
    min_bytes: int | None = None
    #: Whether units such as GB and MIB are accepted, and stored as a quantity.
    has_recommended_units: bool = False
    #: The rule of its pattern in words.
    pattern_rule: str = ""
    #: The struct, for a struct or a list of structs.
    struct: Struct | None = None
    is_list: bool = False
    #: For a list: whether an item may be null, and the item's type.
    item: msgspec.inspect.Type | None = None
    item_nullable: bool = False

    @property
    def type_word(self) -> str:
        """Its type in one word (for a list, the type of its items): boolean, integer, number, string or object."""
        word = _TYPE_WORDS.get(type(self.item if self.is_list else self.shape), "string")
        return "object" if self.struct is not None else word


_TYPE_WORDS: dict[type, str] = {
    msgspec.inspect.BoolType: "boolean",
    msgspec.inspect.IntType: "integer",
    msgspec.inspect.FloatType: "number",
}


def _bare(hint: Hint) -> tuple[msgspec.inspect.Type, bool, dict[str, Json], dict[str, Json]]:
    """The type without null and metadata: (type, nullable, schema keywords, what else is declared of it)."""
    origin = get_origin(hint)
    if origin is Annotated:
        annotated, *metadata = get_args(hint)
        shape, nullable, keywords, extra = _bare(annotated)
        for meta in metadata:
            if isinstance(meta, Meta):
                shape = _bounded(shape, meta)
                keywords = {**keywords, **(meta.extra_json_schema or {})}
                extra = {**extra, **(meta.extra or {})}
        return shape, nullable, keywords, extra
    if origin is Union or origin is UnionType:
        given = [member for member in get_args(hint) if member not in (NoneType, UnsetType)]
        members = [_bare(member) for member in given]
        # The only union in the declarations is int | float.
        chosen = next((m for m in members if isinstance(m[0], msgspec.inspect.FloatType)), members[0])
        keywords = {key: value for member in members for key, value in member[2].items()}
        extra = {key: value for member in members for key, value in member[3].items()}
        return chosen[0], NoneType in get_args(hint), keywords, extra
    return _shape(hint, origin), False, {}, {}


_SIMPLE: dict[Hint, Callable[[], msgspec.inspect.Type]] = {
    bool: msgspec.inspect.BoolType,
    int: msgspec.inspect.IntType,
    float: msgspec.inspect.FloatType,
    str: msgspec.inspect.StrType,
    Any: msgspec.inspect.AnyType,
}


def _shape(hint: Hint, origin: Hint) -> msgspec.inspect.Type:
    if hint in _SIMPLE:
        return _SIMPLE[hint]()
    if origin is tuple and get_args(hint)[1:] == (...,):
        # `_field` works out the type of the items.
        return msgspec.inspect.VarTupleType(msgspec.inspect.AnyType())
    plain = origin or hint
    if isinstance(plain, type) and issubclass(plain, msgspec.Struct):
        return msgspec.inspect.StructType(cast(Struct, hint), ())
    return msgspec.inspect.type_info(hint)


_BOUNDS = ("ge", "gt", "le", "lt", "pattern", "min_length", "max_length")


def _bounded(shape: msgspec.inspect.Type, meta: Meta) -> msgspec.inspect.Type:
    bounds = {name: bound for name in _BOUNDS if (bound := getattr(meta, name)) is not None}
    return msgspec.structs.replace(shape, **bounds) if bounds else shape


def _about_of(hint: Hint) -> FieldInfo:
    if get_origin(hint) is Annotated:
        for part in get_args(hint)[1:]:
            if isinstance(part, FieldInfo):
                return part
    return FieldInfo(text="")


def _hints(struct: Struct) -> dict[str, Hint]:
    """The annotations of the members. They are read as they are, because evaluating them with everything below took
    half the time of a short command."""
    plain = get_origin(struct) or struct
    hints: dict[str, Hint] = {}
    for parent in reversed(plain.__mro__):
        hints.update(get_annotations(parent))
    known: dict[Hint, Hint] = {}
    for generic in (struct, *getattr(plain, "__orig_bases__", ())):
        known.update(zip(getattr(get_origin(generic), "__parameters__", ()), get_args(generic), strict=False))
    return {name: _filled(hint, known) for name, hint in hints.items()} if known else hints


def _filled(hint: Any, known: dict[Hint, Hint]) -> Hint:
    """The hint with the type arguments of a generic struct filled in."""
    if isinstance(hint, TypeVar):
        return known.get(hint, hint)
    open_ones = getattr(hint, "__parameters__", ())
    return hint[tuple(known.get(one, one) for one in open_ones)] if open_ones else hint


@cache
def fields_of(struct: Struct) -> tuple[Field, ...]:
    """The declared members of a spec struct, in order."""
    plain = get_origin(struct) or struct
    hints = _hints(struct)
    names, defaults = plain.__struct_fields__, plain.__struct_defaults__
    given = (msgspec.NODEFAULT,) * (len(names) - len(defaults)) + defaults
    return tuple(
        _field(name, rest, hints[name], default is msgspec.NODEFAULT)
        for name, rest, default in zip(names, plain.__struct_encode_fields__, given, strict=True)
    )


def _field(name: str, rest: str, hint: Hint, required: bool) -> Field:
    kind, nullable, keywords, extra = _bare(hint)
    item: msgspec.inspect.Type | None = None
    item_nullable = False
    if isinstance(kind, msgspec.inspect.VarTupleType):
        item, item_nullable, item_keywords, item_extra = _bare(_item_of(hint))
        extra = {**extra, **item_extra}
        keywords = {**keywords, "items": item_keywords} if item_keywords else keywords
    inner = item or kind
    return Field(
        attribute=name,
        rest=rest,
        about=_about_of(hint),
        required=required,
        nullable=nullable,
        shape=kind,
        schema=keywords,
        is_quantity=bool(extra.get("quantity")) and item is None,
        min_bytes=cast(int | None, extra.get("least")) if item is None else None,
        has_recommended_units=bool(extra.get("recommended")),
        pattern_rule=str(extra.get("rule", "")),
        struct=inner.cls if isinstance(inner, msgspec.inspect.StructType) else None,
        is_list=item is not None,
        item=item,
        item_nullable=item_nullable,
    )


def _item_of(hint: Hint) -> Hint:
    """What a list holds: the first argument of the tuple inside the hint."""
    while get_origin(hint) is not tuple:
        hint = get_args(hint)[0]
    return get_args(hint)[0]


@cache
def sources_of(struct: Struct) -> tuple[Field, ...]:
    """The alternative sources of one value: of these members the first one given counts."""
    return tuple(
        sorted((field for field in fields_of(struct) if field.about.source), key=lambda field: field.about.source)
    )


def struct_members(struct: Struct) -> tuple[str, ...]:
    """The REST names of a spec struct's members, without building their declarations."""
    names: tuple[str, ...] = struct.__struct_encode_fields__
    return names


def is_given(value: T | UnsetType | None) -> TypeGuard[T]:
    """Whether a member has a value: it is neither left out nor null."""
    return value is not UNSET and value is not None


def value_or(value: T | UnsetType | None, default: D) -> T | D:
    """The member's value, or the default if it was left out or null."""
    return default if value is UNSET or value is None else value


def build(struct: type[S], plain: Mapping[str, Json]) -> S:
    """A spec from plain data without checking bounds, for specs that were accepted with a remark.

    Unknown members, and members of another type than declared, are left out.
    """
    values: dict[str, object] = {}
    for field in fields_of(struct):
        if field.rest not in plain:
            if field.required:
                values[field.attribute] = ""
            continue
        value = plain[field.rest]
        if value is None:
            values[field.attribute] = None
        elif field.is_list:
            if isinstance(value, list):
                values[field.attribute] = tuple(_build_item(field, item) for item in value)
        elif field.struct is not None:
            if isinstance(value, dict):
                values[field.attribute] = build(field.struct, value)
        else:
            values[field.attribute] = value
    return struct(**values)


def _build_item(field: Field, item: Json) -> object:
    return build(field.struct, item) if field.struct is not None and isinstance(item, dict) else item


class Spec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The base of all spec structs: undeclared members are refused, members that were not sent stay unset."""


ExcludeItem = Annotated[
    Maybe[bool],
    FieldInfo(
        text="True leaves out an item that the defaults of the policy would add.",
        default=False,
        origin="contract",
        part="exclude",
    ),
]
#: As `ExcludeItem`, where the contract's schema names no default.
ExcludeItemUnset = Annotated[
    Maybe[bool],
    FieldInfo(text="True leaves out an item that the defaults of the policy would add.", part="exclude"),
]
