"""How a field of a spec is declared once: its type and bounds for msgspec, and an `About` with everything else.

The spec structs of `model/` and `kinds/` are written with this; `formats/` and `admission/` walk what `fields_of`
gives and know no field by name. It reads declarations only, never a request's bytes.
"""

from functools import cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

T = TypeVar("T")
#: Left out, null or a value: three different facts.
Maybe = Union[T, None, UnsetType]  # noqa: UP007 - a generic alias; `T | None` cannot be subscripted at run time here
#: Left out or a value; the contract has no null here.
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
ObjectName = Annotated[str, Meta(min_length=1, pattern=_NAME, extra_json_schema={"pattern": NAME_PATTERN})]
ObjectName63 = Annotated[
    str, Meta(min_length=1, max_length=63, pattern=_NAME, extra_json_schema={"pattern": NAME_PATTERN})
]
ObjectName253 = Annotated[
    str, Meta(min_length=1, max_length=253, pattern=_NAME, extra_json_schema={"pattern": NAME_PATTERN})
]
QuantityText = Annotated[
    str, Meta(max_length=63, pattern=_QUANTITY, extra_json_schema={"pattern": QUANTITY_PATTERN}, extra={"quantity": 1})
]
Uuid = Annotated[
    str,
    Meta(
        pattern=r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\Z",
        extra_json_schema={"format": "uuid", "pattern": None},
    ),
]

NO_SUCH_NAME = "nothing of that name can exist, so the workload waits for it"


class Flag(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One way to give a field on the command line, in the grammar of the runai CLI v2."""

    name: str
    short: str = ""
    aliases: tuple[str, ...] = ()
    #: value: one word; list: words by comma, repeatable; pair: A=B, repeatable; item: parts by comma, repeatable;
    #: switch: no word; duration: 90s, 5m, 2h; words: what follows `--`; members: one flag for each member of the
    #: object, their names behind this one's; object: its parts by comma, the first one's value may stand alone.
    #: Empty: as the field's type says.
    form: str = ""
    #: What a switch sets; nothing for true.
    constant: Any = None
    #: Members set besides, by path inside the item (or inside the spec where the field is no list).
    preset: dict[str, Any] = {}
    #: For a pair: the paths inside the item of what stands left and right of the equals sign; a third one follows
    #: after a comma by its part's name.
    pair: tuple[str, ...] = ()
    #: The parts it takes, by path inside the item; nothing for all of them.
    parts: tuple[str, ...] = ()
    help: str = ""


class About(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a field means, besides its type."""

    text: str
    unit: str = ""
    #: What holds when it is not given, if that is one value; where that comes from: `contract` (its schema),
    #: `prose` (its text), `kubernetes`, `ours`; and in words where it is no one value.
    default: Any = None
    origin: str = ""
    default_text: str = ""
    #: Must be given, though the contract says so in prose only.
    mandatory: bool = False
    #: The member by which the items of a list are told apart when lists are merged.
    key: str = ""
    #: Its name in workload YAML, and the kinds there that have it (letters of W T D I J); other accepted spellings.
    yaml: str = ""
    yaml_kinds: str = "WTDIJ"
    yaml_also: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    #: As a member of an item on the command line: the part's name, and what the bare name sets.
    part: str = ""
    part_constant: Any = None
    #: It describes pods of another role: that role's name stands before its flags, and YAML has it nowhere.
    role: str = ""
    #: Its value is a secret: never shown, logged or indexed.
    secret: bool = False
    #: What is done instead where the older page's dialect breaks its pattern; nothing where that is refused.
    older: str = ""
    #: Which surface has it: `contract`, or `older` for what only the older page and workload YAML know.
    surface: str = "contract"


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One member of a spec struct, as the walkers see it."""

    attribute: str
    rest: str
    about: About
    required: bool
    nullable: bool
    #: The type without null: one of msgspec.inspect's types; a number is its FloatType.
    shape: msgspec.inspect.Type
    #: Its schema's own words (format, pattern as the contract writes it).
    schema: dict[str, Any] = {}
    is_quantity: bool = False
    #: For a struct, or a list of structs: which.
    struct: Any = None
    is_list: bool = False
    #: For a list: whether an item may be null, and the item's type.
    item: msgspec.inspect.Type | None = None
    item_nullable: bool = False


def _bare(kind: msgspec.inspect.Type) -> tuple[msgspec.inspect.Type, bool, dict[str, Any], bool]:
    """The type without null and metadata: (type, nullable, schema words, is a quantity)."""
    if isinstance(kind, msgspec.inspect.Metadata):
        inner, nullable, words, quantity = _bare(kind.type)
        extra = dict(kind.extra_json_schema or {})
        return inner, nullable, {**words, **extra}, quantity or bool((kind.extra or {}).get("quantity"))
    if isinstance(kind, msgspec.inspect.UnionType):
        members = [_bare(member) for member in kind.types if not isinstance(member, msgspec.inspect.NoneType)]
        nullable = len(members) < len(kind.types)
        # The only union of the declarations is that of whole and broken numbers.
        chosen = next((m for m in members if isinstance(m[0], msgspec.inspect.FloatType)), members[0])
        words = {key: value for member in members for key, value in member[2].items()}
        return chosen[0], nullable, words, any(member[3] for member in members)
    return kind, False, {}, False


def _about_of(hint: Any) -> About:
    if get_origin(hint) is Annotated:
        for part in get_args(hint)[1:]:
            if isinstance(part, About):
                return part
    return About(text="")


#: What msgspec says of structs. It says it of everything inside them too, which would be asked for again and again.
_KNOWN: dict[Any, msgspec.inspect.StructType] = {}


def _info(struct: type) -> msgspec.inspect.StructType:
    if struct not in _KNOWN:
        info = msgspec.inspect.type_info(struct)
        if not isinstance(info, msgspec.inspect.StructType):
            raise TypeError(f"{struct} is no spec struct")
        _remember(info)
        _KNOWN[struct] = info
    return _KNOWN[struct]


def _remember(kind: msgspec.inspect.Type) -> None:
    if isinstance(kind, msgspec.inspect.StructType):
        if kind.cls not in _KNOWN:
            _KNOWN[kind.cls] = kind
            for field in kind.fields:
                _remember(field.type)
    elif isinstance(kind, msgspec.inspect.Metadata):
        _remember(kind.type)
    elif isinstance(kind, msgspec.inspect.UnionType):
        for member in kind.types:
            _remember(member)
    elif isinstance(kind, msgspec.inspect.VarTupleType):
        _remember(kind.item_type)


@cache
def fields_of(struct: type) -> tuple[Field, ...]:
    """The declared members of a spec struct, in their order."""
    hints = get_type_hints(get_origin(struct) or struct, include_extras=True)
    info = _info(struct)
    return tuple(_field(member, _about_of(hints[member.name])) for member in info.fields)


def _field(member: msgspec.inspect.Field, about: About) -> Field:
    kind, nullable, words, quantity = _bare(member.type)
    item: msgspec.inspect.Type | None = None
    item_nullable = False
    if isinstance(kind, msgspec.inspect.VarTupleType):
        item, item_nullable, item_words, _ = _bare(kind.item_type)
        words = {**words, "items": item_words} if item_words else words
    inner = item or kind
    return Field(
        attribute=member.name,
        rest=member.encode_name,
        about=about,
        required=member.required,
        nullable=nullable,
        shape=kind,
        schema=words,
        is_quantity=quantity,
        struct=inner.cls if isinstance(inner, msgspec.inspect.StructType) else None,
        is_list=item is not None,
        item=item,
        item_nullable=item_nullable,
    )


def struct_members(struct: Any) -> tuple[str, ...]:
    """The REST names of a spec struct's members, where nothing else of them is asked for."""
    names: tuple[str, ...] = struct.__struct_encode_fields__
    return names


def is_given(value: Any) -> bool:
    """Whether a member carries a value: neither left out nor null."""
    return value is not UNSET and value is not None


def value_or(value: Any, default: Any) -> Any:
    """The member's value, or what holds when it was left out or null."""
    return default if value is UNSET or value is None else value


def build(struct: type, plain: dict[str, Any]) -> Any:
    """A spec from plain data without looking at bounds, for specs that were accepted with a remark.

    Members that are unknown, or of another shape than declared, are left out.
    """
    values: dict[str, Any] = {}
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


def _build_item(field: Field, item: Any) -> Any:
    return build(field.struct, item) if field.struct is not None and isinstance(item, dict) else item


class Spec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The root of all spec structs: what is not declared is refused, what was not sent stays unset."""


ExcludeItem = Annotated[
    Maybe[bool],
    About(
        text="True leaves out an item that the policy's defaults would add.",
        default=False,
        origin="contract",
        part="exclude",
    ),
]
#: As `ExcludeItem`, where the contract's schema names no default.
ExcludeItemUnset = Annotated[
    Maybe[bool],
    About(text="True leaves out an item that the policy's defaults would add.", part="exclude"),
]
