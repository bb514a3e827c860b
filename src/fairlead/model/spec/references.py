"""The objects that a spec names, found through the declarations of its fields (`FieldInfo.refers`).

Everybody who checks, loads, copies, refreshes or deletes such objects walks this one list: `references` for a spec,
`pod_references` for a pod that a kind made from one. It does not know whether an object exists.
"""

from collections.abc import Iterable, Iterator
from functools import cache

import msgspec

from fairlead.model.pods.podset import EnvironmentVariable, PodContainer
from fairlead.model.records.assets import Reference
from fairlead.model.spec.environment import Variable
from fairlead.model.spec.fields import Field, Struct, fields_of, is_given, sources_of
from fairlead.model.spec.run_fields import RunFields


class NamedReference(msgspec.Struct, frozen=True):
    """One field of a spec that names an object."""

    reference: Reference
    name: str
    #: The field, from where the walk began. Items of a list by position in a spec, by their key in a pod.
    path: str
    #: The key in the object that is asked for; empty if the whole object is.
    key: str = ""
    #: Whether the object is created if there is none of that name.
    may_be_created: bool = False
    #: Whether running pods see its changes.
    is_live: bool = False
    #: The field that names the key, if that is another one.
    key_path: str = ""


class _Step(msgspec.Struct, frozen=True):
    """A field that names an object, or below which some field does."""

    field: Field
    below: tuple["_Step", ...]


@cache
def _steps(struct: Struct) -> tuple[_Step, ...]:
    """The fields of a struct that lead to references, in the order in which they are declared."""
    steps = []
    for field in fields_of(struct):
        below = _steps(field.struct) if field.struct is not None and field.about.refers is None else ()
        if below or field.about.refers is not None:
            steps.append(_Step(field, below))
    return tuple(steps)


@cache
def _member(struct: Struct, attribute: str) -> Field:
    return next(field for field in fields_of(struct) if field.attribute == attribute)


def references(spec: msgspec.Struct, path: str = "spec") -> Iterator[NamedReference]:
    """Everything that a spec names. Excluded items name nothing."""
    return _walk(type(spec), spec, path, by_key=False)


def pod_references(container: PodContainer) -> Iterator[NamedReference]:
    """Everything that a pod names: its variables, then its other fields."""
    for variable in container.environment:
        reference = variable_reference(variable)
        if reference is not None:
            yield reference
    yield from _walk(RunFields, container.fields, "", by_key=True)


def variable_reference(variable: EnvironmentVariable) -> NamedReference | None:
    """The object that a variable of a pod takes its value from, if it is from one."""
    for step in _steps(Variable):
        source: tuple[str, str] | None = getattr(variable, step.field.attribute)
        if source is not None and step.field.about.refers is not None:
            path = f"environmentVariables[{variable.name}].{step.field.rest}"
            return NamedReference(step.field.about.refers, source[0], path, source[1])
    return None


def _read(owner: object, field: Field) -> object:
    """A member of a spec or of a pod's fields, which have the same names; UNSET or None if it is not given."""
    return getattr(owner, field.attribute, None)


def _walk(struct: Struct, owner: object, path: str, by_key: bool) -> Iterator[NamedReference]:
    source = next((field for field in sources_of(struct) if is_given(_read(owner, field))), None)
    for step in _steps(struct):
        field, value = step.field, _read(owner, step.field)
        if not is_given(value) or (field.about.source and field is not source):
            continue
        if field.about.ignored_if and _read(owner, _member(struct, field.about.ignored_if)) is True:
            continue
        field_path = f"{path}.{field.rest}" if path else field.rest
        if field.about.refers is not None:
            yield _named(struct, owner, field, field.about.refers, field_path)
        elif field.struct is not None and isinstance(value, tuple):
            yield from _walk_items(field, field.struct, value, field_path, by_key)
        elif field.struct is not None:
            yield from _walk(field.struct, value, field_path, by_key)


def _walk_items(
    field: Field, struct: Struct, items: Iterable[object], path: str, by_key: bool
) -> Iterator[NamedReference]:
    exclude = next((member for member in fields_of(struct) if member.attribute == "exclude"), None)
    for number, item in enumerate(items):
        if item is None or (exclude is not None and _read(item, exclude) is True):
            continue
        label = _read(item, _member(struct, field.about.key)) if by_key and field.about.key else None
        yield from _walk(struct, item, f"{path}[{label or number}]", by_key)


def _named(struct: Struct, owner: object, field: Field, reference: Reference, path: str) -> NamedReference:
    about, value = field.about, _read(owner, field)
    key: object = ""
    key_path = ""
    if field.struct is not None:
        # An object and a key in it.
        name_field, key_field = _member(field.struct, "name"), _member(field.struct, "key")
        value, key = _read(value, name_field), _read(value, key_field)
    elif about.key_member and isinstance(owner, struct):
        # A pod gets the whole object, so this is asked of specs only.
        key_field = _member(struct, about.key_member)
        key, key_path = _read(owner, key_field), f"{path.rpartition('.')[0]}.{key_field.rest}"
    if about.refers_if is not None and _read(owner, _member(struct, about.refers_if[0])) is True:
        reference = about.refers_if[1]
    name = value if isinstance(value, str) else ""
    return NamedReference(
        reference,
        name.lower() if reference is Reference.DATA_VOLUME else name,
        path,
        key if isinstance(key, str) else "",
        bool(about.created_unless) and _read(owner, _member(struct, about.created_unless)) is not True,
        about.is_live,
        key_path,
    )
