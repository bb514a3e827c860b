"""Paths of members as the caller wrote them, for violations that are found after the request was read. Pure.

Engines see pod sets: they name an item by its name, or by its position among the items that count. Callers know its
position in the list that they sent, or its key in workload YAML. Called by `control`.
"""

from typing import Any

from fairlead.formats.yaml.spec import yaml_item_path, yaml_path
from fairlead.kinds.kind import Kind, outside_spec_names
from fairlead.model.dialect import Dialect
from fairlead.model.spec.canonical import counts
from fairlead.model.spec.fields import Spec, fields_of, is_given


def sent_path(kind: Kind, spec: Spec, path: str, dialect: Dialect) -> str:
    """`path` begins below the spec; items are in brackets, by name or position."""
    list_path, bracket, rest = path.partition("[")
    key, _, member = rest.partition("]")
    items = _items(spec, list_path) if bracket else ()
    number = _find(items, key)
    if number is not None:
        path = f"{list_path}[{number}]{member}"
    if dialect.has_yaml_names:
        name = getattr(items[number], "name", None) if number is not None else None
        shown = str(name) if is_given(name) else str(number)
        return yaml_path(kind, path) if number is None else yaml_item_path(kind, list_path, shown, member)
    return path if path.partition(".")[0] in outside_spec_names(kind) else f"spec.{path}"


def _items(spec: Spec, path: str) -> tuple[object, ...]:
    """The items of the list at that path; none if there is no such list."""
    node: Any = spec
    for name in path.split("."):
        field = next((field for field in fields_of(node.__class__) if field.rest == name), None)
        node = None if field is None else getattr(node, field.attribute)
        if not isinstance(node, Spec):
            break
    return node if isinstance(node, tuple) else ()


def _find(items: tuple[object, ...], key: str) -> int | None:
    """The position of the item with that name, or of that number among those that count."""
    counted = [number for number, item in enumerate(items) if isinstance(item, Spec) and counts(item)]
    named = [number for number in counted if getattr(items[number], "name", None) == key]
    if named:
        return named[0]
    return counted[int(key)] if key.isdecimal() and int(key) < len(counted) else None
