"""The fields of a container beside those that specs declare: none is missing, and their defaults are the same."""

from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest

from fairlead.kinds import KINDS
from fairlead.kinds.pods import SPELT_OUT
from fairlead.model.pods.container_fields import ContainerFields, ContainerSecurity, NodeExpression, given
from fairlead.model.spec.fields import fields_of
from fairlead.model.spec.pod_fields import PodFields
from tests.builders import container_fields

#: Members with a default that is not filled in where the object around them is missing.
ABSENCE_COUNTS = {(ContainerSecurity, "uidGidSource")}


def struct_in(kind: Any) -> type[msgspec.Struct] | None:
    """The struct that an annotation holds, directly or in a tuple or union."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind
    return next((found for inner in get_args(kind) if (found := struct_in(inner))), None)


def declared(spec: type, struct: type[msgspec.Struct]) -> Iterator[tuple[str, Any, msgspec.structs.FieldInfo | None]]:
    """(path, what the spec declares, what the container has) of every member that both levels share."""
    members = {member.encode_name: member for member in msgspec.structs.fields(struct)}
    for field in fields_of(spec):
        if field.attribute in SPELT_OUT | {"exclude"}:
            continue
        member = members.get(field.rest)
        yield f"{struct.__name__}.{field.rest}", field, member
        inner = struct_in(member.type) if member is not None else None
        if field.struct is not None and inner is not None:
            yield from declared(field.struct, inner)


def role_specs() -> list[type]:
    """What pods are described by: the specs of kinds, and of roles within them."""
    found: list[type | None] = [kind.spec for kind in KINDS.values() if issubclass(kind.spec, PodFields)]
    found += [field.struct for kind in KINDS.values() for field in fields_of(kind.spec) if field.about.role]
    return [spec for spec in found if spec is not None]


@pytest.mark.parametrize("spec", role_specs(), ids=lambda spec: spec.__name__)
def test_every_declared_field_is_there_with_its_default(spec: type) -> None:
    top = {member.encode_name for member in msgspec.structs.fields(ContainerFields)}
    for path, field, member in declared(spec, ContainerFields):
        if path.startswith("ContainerFields.") and field.rest not in top:
            continue  # concerns the workload around the pod
        assert member is not None, path
        struct = next(one for one in [*_structs()] if one.__name__ == path.partition(".")[0])
        if field.about.default is not None and (struct, field.rest) not in ABSENCE_COUNTS:
            assert member.default == field.about.default, path


def _structs() -> Iterator[type[msgspec.Struct]]:
    waiting: list[type[msgspec.Struct]] = [ContainerFields]
    for struct in waiting:
        yield struct
        waiting += [inner for member in msgspec.structs.fields(struct) if (inner := struct_in(member.type))]


def test_what_is_given_are_the_fields_that_somebody_wrote_and_their_defaults() -> None:
    written = {
        "storage": {"hostPath": [{"path": "/a", "mountPath": "/b"}]},
        "labels": [{"name": "team"}],
        "security": {"hostIpc": True},
    }
    assert given(container_fields(written)) == {
        "storage": {"hostPath": [{"path": "/a", "mountPath": "/b", "readOnly": True, "mountPropagation": "None"}]},
        "labels": [{"name": "team"}],
        "security": {
            "hostIpc": True,
            "hostNetwork": False,
            "runAsNonRoot": False,
            "readOnlyRootFilesystem": False,
        },
    }
    assert given(ContainerFields()) == {}


def test_an_empty_list_that_was_written_stays() -> None:
    """The values of an expression stand in pod templates, whose content decides whether objects are applied again."""
    assert given(NodeExpression(key="gpu", operator="Exists", values=())) == {
        "key": "gpu",
        "operator": "Exists",
        "values": [],
    }
    assert given(NodeExpression(key="gpu", operator="Exists")) == {"key": "gpu", "operator": "Exists"}


def test_a_member_that_is_not_known_is_an_error() -> None:
    with pytest.raises(msgspec.ValidationError, match="aNewMember"):
        container_fields({"security": {"aNewMember": True}})
