"""The policy that every installation has. It is the widest scope: any other policy can set its fields otherwise."""

from fairlead.admission.policies.merge import Policy, RuleSource, with_source
from fairlead.kinds import role_members
from fairlead.kinds.policies import POLICY_TYPES, PolicyType
from fairlead.model.policies.rules import fields_by_name
from fairlead.model.spec.fields import Struct

#: Longer grace periods would block others for long; Kubernetes' own default is 30 seconds.
_MAX_GRACE = {"terminationGracePeriodSeconds": {"max": 300}}
SYSTEM_SOURCE = RuleSource(scope="system", is_fallback=True)


def _rules(struct: Struct) -> dict[str, object]:
    """The rules for the fields that a spec has, also in the specs of its roles."""
    rules: dict[str, object] = {}
    for name, field in fields_by_name(struct).items():
        if name in _MAX_GRACE:
            rules[name] = _MAX_GRACE[name]
        elif name in role_members() and field.struct is not None:
            rules |= {name: inner} if (inner := _rules(field.struct)) else {}
    return rules


def _system_policy(type: PolicyType) -> Policy:
    rules_by_section = {section.name: _rules(section.struct) for section in type.sections}
    return with_source(
        type,
        Policy(rules=rules_by_section.get("") or {name: part for name, part in rules_by_section.items() if part}),
        SYSTEM_SOURCE,
    )


SYSTEM_POLICIES: dict[str, Policy] = {type.key: _system_policy(type) for type in POLICY_TYPES.values()}
