"""The types of policies: one per kind of workload, and NIM services, which have policies but no workloads here."""

import msgspec

from fairlead.kinds import KINDS, role_members
from fairlead.kinds.kind import Kind
from fairlead.model.policies.nim_service import NimServiceSpec
from fairlead.model.spec.fields import Struct, fields_of


class PolicySection(msgspec.Struct, frozen=True):
    """A part of a policy's tree, and the part of the spec that it is about. Empty names stand for the whole."""

    name: str
    struct: Struct
    member: str = ""


class PolicyType(msgspec.Struct, frozen=True, kw_only=True):
    #: Its name in answers and records: `training`.
    key: str
    #: The segment of its path: `trainings`.
    rest: str
    #: Its name in the workload types of filters.
    title: str
    #: The kind whose workloads it is for; empty if there are none.
    kind: str = ""
    #: Whether Run:ai does not have its kind.
    is_addition: bool = False
    sections: tuple[PolicySection, ...]
    #: The roles of its pods that have specs of their own; one empty name if there are none.
    roles: tuple[str, ...] = ("",)


def _sections(kind: Kind) -> tuple[PolicySection, ...]:
    """The spec itself; or, if roles stand outside of it, one section per role."""
    roles = [field for field in fields_of(kind.spec) if field.attribute in kind.outside_spec and field.about.role]
    if kind.rest_spec is None or not roles:
        return (PolicySection("", kind.spec),)
    outside = [PolicySection(field.about.role, field.struct, field.rest) for field in roles if field.struct]
    return (PolicySection("worker", kind.rest_spec), *outside)


def _roles(kind: Kind) -> tuple[str, ...]:
    sections = tuple(section.name for section in _sections(kind) if section.name)
    return sections or tuple(field.rest for field in fields_of(kind.spec) if field.rest in role_members()) or ("",)


def _key(rest: str) -> str:
    """`distributedInference` for `distributed-inferences`."""
    first, *others = rest.removesuffix("s").split("-")
    return first + "".join(word.capitalize() for word in others)


POLICY_TYPES: dict[str, PolicyType] = {
    **{
        kind.rest: PolicyType(
            key=_key(kind.rest),
            rest=kind.rest,
            title=kind.title,
            kind=kind.key,
            is_addition=kind.is_addition,
            sections=_sections(kind),
            roles=_roles(kind),
        )
        for kind in KINDS.values()
    },
    "nim-services": PolicyType(
        key="nimService", rest="nim-services", title="NimService", sections=(PolicySection("", NimServiceSpec),)
    ),
}
POLICY_TYPE_OF_KIND: dict[str, PolicyType] = {each.kind: each for each in POLICY_TYPES.values() if each.kind}
