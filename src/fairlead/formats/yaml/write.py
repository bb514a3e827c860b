"""Writes a REST spec as workload YAML in one canonical form, with a list of what YAML cannot express.

Called by `convert`, and by the server when it shows a workload as YAML. The declarations say where each member goes;
members without a field are lost.
"""

from msgspec import UNSET

from fairlead.formats.losses import Loss, Source
from fairlead.formats.plain import Plain
from fairlead.formats.yaml.conversions import DEFAULT_SERVICE, WRITERS, drop_authorization_type, render_variable
from fairlead.formats.yaml.fields import ITEMS, MAP, YamlField, yaml_fields
from fairlead.formats.yaml.keywords import API_VERSION, PREEMPTIBILITY_LABEL, PRIORITY_LABEL
from fairlead.formats.yaml.kind_conversions import WRITERS as WRITERS_OF_KINDS
from fairlead.formats.yaml.kind_conversions import write_serving
from fairlead.kinds.kind import Kind
from fairlead.model.records.organization import namespace_of
from fairlead.model.spec.fields import Field, fields_of

_LABELS = {"priorityClass": PRIORITY_LABEL, "preemptibility": PREEMPTIBILITY_LABEL}
_NOT_HERE = "workload YAML has no such field"
_SEPARATORS = frozenset(",; \t\r\n")


def render_document(
    kind: Kind, spec: Plain, name: str, *, is_prefix: bool = False, project: str = "", active: bool = True
) -> tuple[Plain, list[Loss]]:
    """The document as plain data, and the members of the spec that it does not contain (paths below the spec)."""
    source = Source(spec)
    fields: Plain = {}
    labels = {label: source.take(path) for path, label in _LABELS.items() if source.peek(path) is not UNSET}
    known = {name: field for name, field in yaml_fields(kind).items() if kind.letter in field.kinds}
    for names, writer in (*WRITERS_OF_KINDS, *WRITERS):
        if known.keys() >= set(names):
            writer(source, lambda name, value: fields.update({name: {"value": _shown(value)}}))
    for field in known.values():
        if field.path and not field.is_paired:
            _write_field(field, source, fields)
    write_serving(source, fields)
    if not active:
        fields["active"] = {"value": False}
    metadata: Plain = {"name": name}
    if project:
        metadata["namespace"] = namespace_of(project)
    if labels:
        metadata["labels"] = labels
    called = {"namePrefix" if is_prefix else "name": {"value": name}}
    document: Plain = {
        "apiVersion": API_VERSION,
        "kind": kind.resource,
        "metadata": metadata,
        "spec": {**called, **dict(sorted(fields.items())), "usage": "Submit"},
    }
    return document, source.losses + [_left_over(kind, path, value) for path, value in source.left.items()]


def _shown(value: object) -> object:
    """A number with a fraction is written as text, as in the custom resources."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return value


def _write_field(field: YamlField, source: Source, fields: Plain) -> None:
    if field.form is MAP:
        items = _map_items(field, source)
    elif field.form is ITEMS and not field.member:
        items = _items(field, source)
    elif field.form is ITEMS:
        values = source.peek(field.path)
        if not values:
            return
        source.take(field.path)
        items = {f"{field.member}-{number}": {"value": {field.member: value}} for number, value in enumerate(values, 1)}
    else:
        _write_value(field, source, fields)
        return
    if items:
        fields[field.name] = {"items": items}


def _write_value(field: YamlField, source: Source, fields: Plain) -> None:
    value = source.peek(field.path)
    if value is UNSET:
        return
    if field.type == "list":
        if not value or any(not word or _SEPARATORS & set(word) for word in value):
            source.lose(field.path, "is a list of words; they cannot be empty or contain separators")
            return
        value = " ".join(value)
    source.take(field.path)
    fields[field.name] = {"value": _shown(value)}


def _map_items(field: YamlField, source: Source) -> Plain:
    items: Plain = {}
    for number, item in source.items(field.path):
        key, here = item.get(field.key), f"{field.path}[{number}]"
        if not isinstance(key, str):
            continue
        if key in items:
            source.lose(f"{here}.{field.key}", "is there a second time; only one of them can be written")
            continue
        if field.path == "environmentVariables":
            rendered = render_variable(item)
            if rendered is None:
                continue
            text, used_paths = rendered
        else:
            text, used_paths = item.get("value") or "", ("value",)
            if item.get("value") is None:
                source.lose(f"{here}.value", "is an empty text by default", "")
        items[key] = {"value": text}
        source.take(f"{here}.{field.key}")
        for path in used_paths:
            source.take(f"{here}.{path}")
    return items


def _items(field: YamlField, source: Source) -> Plain:
    items: Plain = {}
    for number, item in source.items(field.path):
        here = f"{field.path}[{number}]"
        if field.path == "exposedUrls" and not drop_authorization_type(source, here):
            continue
        key = item.get(field.key) if field.key else None
        members = _members(field, source, here)
        if isinstance(key, str) and key not in items and not key.isdecimal():
            source.take(f"{here}.{field.key}")
        elif members:
            key = str(len(items) + 1)
        else:
            continue
        if field.path == "ports" and "serviceType" not in members:
            # Written out, because a port of an inference workload without a service type would be its serving port.
            members["serviceType"] = DEFAULT_SERVICE
            source.lose(f"{here}.serviceType", f"is {DEFAULT_SERVICE} by default", DEFAULT_SERVICE)
        items[key] = {"value": members}
    return items


def _members(field: YamlField, source: Source, here: str) -> Plain:
    members: Plain = {}
    opened = _opened(field, source, here, members)
    for member in field.members:
        path = f"{here}.{member.path}"
        value = source.peek(path)
        if value is UNSET or (member.name in _CREDENTIALS and not opened):
            continue
        members[member.name] = _shown(source.take(path))
    return members


_CREDENTIALS = frozenset({"username", "password", "key", "secret"})


def _opened(field: YamlField, source: Source, here: str, members: Plain) -> bool:
    """Whether a secret is named: without it, its keys would be read as credentials. The older member is renamed."""
    secret_member = next((member for member in field.members if member.name == "secretName"), None)
    if secret_member is None:
        return True
    if source.peek(f"{here}.{secret_member.path}") is not UNSET:
        return True
    older = source.peek(f"{here}.passwordSecret")
    if older is UNSET:
        return False
    reason = "is written as secretName, which reads back as secretRef"
    for old, new, name in (
        ("passwordSecret", "name", "secretName"),
        ("secretKeyOfUser", "secretKeyOfUser", "username"),
        ("secretKeyOfPassword", "secretKeyOfPassword", "password"),
    ):
        value = source.peek(f"{here}.{old}")
        if value is not UNSET:
            members[name] = value
            source.lose(f"{here}.{old}", reason)
            source.lose(f"{here}.secretRef.{new}", f"comes from {old}", value)
    return False


def _left_over(kind: Kind, path: str, value: object) -> Loss:
    field = declared(kind, path)
    if value is None:
        reason = "null is the same as not given in workload YAML"
    elif path.endswith(".exclude"):
        reason = "items of workload YAML cannot be excluded" + ("; the item is omitted" if value else "")
    elif value in ({}, []):
        reason = "is empty, which is the same as not given in workload YAML"
    elif field is not None and field.about.default == value:
        reason = "is the default, and workload YAML has no such field"
    else:
        reason = _NOT_HERE
    return Loss(path=path, reason=reason, value=value)


def declared(kind: Kind, path: str) -> Field | None:
    """The declaration of a member of the spec, by its REST path."""
    struct: object = kind.spec
    declaration: Field | None = None
    for step in path.split("."):
        name = step.split("[")[0]
        declaration = next((field for field in fields_of(struct) if field.rest == name), None) if struct else None
        if declaration is None:
            return None
        struct = declaration.struct
    return declaration
