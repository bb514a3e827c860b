"""Reads nodes of a YAML tree as values of the type of a field: `2`, `"2"` and `2.0` are the same number of devices.

Called by the reader of workload YAML. A value that cannot be read raises `Wrong` with what is expected.
"""

import re
from typing import NoReturn

from fairlead.formats.yaml.fields import YamlField
from fairlead.formats.yaml.keywords import near
from fairlead.formats.yaml.tree import MAPPING, SCALAR, SEQUENCE, YamlNode
from fairlead.model.quantity import BadQuantity, parse

_TRUE = frozenset({"true", "yes", "on"})
_FALSE = frozenset({"false", "no", "off"})
_INTEGER = re.compile(r"[+-]?\d+\Z")
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z")
_WORDS = re.compile(r"[,; \t\r\n]+")
#: Longer numbers are meaningless, and parsing them would take long.
_MAX_DIGITS = 40
_SHOWN = 80


class InvalidValue(Exception):
    """A node is not what its field takes; the message says what is expected."""


def read_value(field: YamlField, node: YamlNode) -> object:
    """The node as a value of the field's type."""
    reader = _READERS.get(field.type)
    if reader is not None:
        return reader(node)
    text = _text(node)
    return _choose(field.choices, field.meant.get(text.lower(), text)) if field.choices else text


def unwrap(field: YamlField, node: YamlNode) -> YamlNode:
    """The node below `value:`."""
    if field.type == "mark" and node.form is MAPPING and not node.content:
        return node
    return _below(node, "value", f"{field.name}: {{value: …}}", field.type in ("object", "mark"))


def unwrap_items(field: YamlField, node: YamlNode) -> dict[str, YamlNode]:
    """The nodes below `items:`, by key."""
    items = _below(node, "items", f"{field.name}: {{items: {{KEY: {{value: …}}}}}}", True)
    if items.form is not MAPPING:
        raise InvalidValue(f"has items that are not a mapping; write {field.name}: {{items: {{KEY: {{value: …}}}}}}")
    content: dict[str, YamlNode] = items.content
    return content


def unwrap_item(key: str, node: YamlNode, is_object: bool, *, has_value: bool = False) -> YamlNode:
    """The node below `value:` of one item; some items have a member with that name."""
    shape = f"{key}: {{value: {'{…}' if is_object else '…'}}}"
    inner = _below(node, "value", shape, is_object, has_value=has_value)
    if is_object and inner.form is not MAPPING:
        raise InvalidValue(f"is {node_type_name(inner)}; a mapping is expected below value:")
    return inner


def _below(node: YamlNode, wrapper: str, shape: str, is_object: bool, *, has_value: bool = False) -> YamlNode:
    if node.form is not MAPPING:
        if node.is_null:
            raise InvalidValue(f"is empty; write {shape}")
        raise InvalidValue(f"lacks {wrapper}: — write {shape}")
    content = node.content
    if wrapper not in content or len(content) > 1:
        _refuse_wrapper(content, wrapper, shape)
    inner: YamlNode = content[wrapper]
    if inner.is_null:
        raise InvalidValue(f"has an empty {wrapper}: — write {shape}, or remove the field")
    if not has_value and _is_doubled(inner, wrapper, is_object):
        raise InvalidValue(f"has {wrapper}: twice, one inside the other; write {shape}")
    return inner


def _is_doubled(inner: YamlNode, wrapper: str, is_object: bool) -> bool:
    if inner.form is not MAPPING or wrapper not in inner.content or (is_object and len(inner.content) > 1):
        return False
    below = inner.content[wrapper]
    # An item may have the key `items`; then there is a value below it.
    return wrapper == "value" or (below.form is MAPPING and "value" not in below.content)


def _refuse_wrapper(content: dict[str, YamlNode], wrapper: str, shape: str) -> NoReturn:
    other = "items" if wrapper == "value" else "value"
    if other in content:
        raise InvalidValue(f"is written with {other}:, but takes {wrapper}: — write {shape}")
    unknown = [name for name in content if name != wrapper]
    if wrapper not in content:
        hint = f" (found {', '.join(unknown[:3])})" if unknown else ""
        raise InvalidValue(f"has no {wrapper}:{hint}; write {shape}")
    raise InvalidValue(f"has {', '.join(unknown[:3])} beside {wrapper}: — only {wrapper}: is allowed there")


def node_type_name(node: YamlNode) -> str:
    if node.is_null:
        return "empty"
    return {SCALAR: f"'{str(node.content)[:_SHOWN]}'", MAPPING: "a mapping", SEQUENCE: "a list"}[node.form]


def _text(node: YamlNode) -> str:
    if node.form is not SCALAR or node.is_null:
        raise InvalidValue(f"is {node_type_name(node)}; a text is expected")
    content: str = node.content
    return content


def _boolean(node: YamlNode) -> bool:
    if node.form is SCALAR:
        lowered = node.content.lower()
        if lowered in _TRUE:
            return True
        if lowered in _FALSE:
            return False
    raise InvalidValue(f"is {node_type_name(node)}; true or false is expected")


def _integer(node: YamlNode) -> int:
    text = node.content if node.form is SCALAR else ""
    if _INTEGER.match(text):
        return int(_short(text))
    if _DECIMAL.match(text):
        number = float(_short(text))
        if number.is_integer():
            return int(number)
    raise InvalidValue(f"is {node_type_name(node)}; a whole number is expected")


def _short(text: str) -> str:
    if len(text) > _MAX_DIGITS:
        raise InvalidValue(f"is a number of {len(text)} characters; at most {_MAX_DIGITS} are allowed")
    return text


def read_number(text: str) -> int | float:
    """A number as written, or a quantity such as 500m."""
    if _INTEGER.match(text):
        return int(_short(text))
    if _DECIMAL.match(text):
        number = float(_short(text))
        if number in (float("inf"), float("-inf")):
            raise InvalidValue(f"is '{text[:_SHOWN]}', which is too large")
        return number
    try:
        value = parse(_short(text))
    except BadQuantity:
        raise InvalidValue(f"is '{text[:_SHOWN]}'; a number is expected, such as 0.5 or 2") from None
    return int(value) if value.denominator == 1 else float(value)


def _number(node: YamlNode) -> int | float:
    if node.form is not SCALAR or node.is_null:
        raise InvalidValue(f"is {node_type_name(node)}; a number is expected")
    return read_number(node.content)


def _limit(node: YamlNode) -> int | float | str:
    """A number, or a text if it has a unit."""
    if node.form is not SCALAR or node.is_null:
        raise InvalidValue(f"is {node_type_name(node)}; a number or a quantity is expected")
    text: str = node.content
    if _INTEGER.match(text) or _DECIMAL.match(text):
        return read_number(text)
    try:
        parse(_short(text))
    except BadQuantity as bad:
        raise InvalidValue(str(bad)) from None
    return text


def _list(node: YamlNode) -> list[str]:
    if node.form is SEQUENCE:
        return [_text(item) for item in node.content]
    if node.form is MAPPING or node.is_null:
        raise InvalidValue(f"is {node_type_name(node)}; a list, or words separated by commas, is expected")
    return [word for word in _WORDS.split(node.content) if word]


def _choose(choices: tuple[str, ...], text: str) -> str:
    lowered = text.lower()
    for choice in choices:
        if choice.lower() == lowered:
            return choice
    hint = near(text, choices)
    allowed = "" if hint.startswith("; use one of") else f" Allowed are {', '.join(choices)}"
    raise InvalidValue(f"is '{text[:_SHOWN]}'{hint or ';'}{allowed}".rstrip(";"))


_READERS = {
    "boolean": _boolean,
    "mark": _boolean,
    "integer": _integer,
    "number": _number,
    "limit": _limit,
    "list": _list,
}


def read_plain(node: YamlNode) -> object:
    """A node without declared types: mappings, lists, texts, and the value of an unquoted scalar."""
    if node.form is MAPPING:
        return {key: read_plain(inner) for key, inner in node.content.items()}
    if node.form is SEQUENCE:
        return [read_plain(inner) for inner in node.content]
    text: str = node.content
    if not node.is_plain:
        return text
    if node.is_null:
        return None
    if text in ("true", "True", "TRUE"):
        return True
    if text in ("false", "False", "FALSE"):
        return False
    if len(text) <= _MAX_DIGITS:
        if _INTEGER.match(text):
            return int(text)
        if _DECIMAL.match(text):
            return float(text)
    return text
