"""Merges the policies of all scopes into one effective policy, field by field.

The nearest scope wins, except for rules on `compute` and `security`, where the farthest wins. So nobody can lift a
limit that a wider scope has set.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from fairlead.kinds.policies import PolicyType
from fairlead.model.policies.rules import SOURCE, RuleClass, fields_by_name, rule_class
from fairlead.model.spec.fields import Field, Struct

Tree = Mapping[str, object]
#: The sections in which the rule of the farthest scope wins.
FARTHEST_WINS = frozenset({"compute", "security"})


class RuleSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The scope that a rule comes from, in the shape of answers."""

    scope: str
    is_fallback: bool = False
    cluster_id: str | None = None
    department_id: str | None = None
    project_id: int | None = None


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Defaults, rules and imposed assets, nested as the spec is.

    For a list whose items have a key, defaults are `{instances: [item], attributes: {…}}` and rules are
    `{instances: {canAdd, locked: [key]}, attributes: {…}}`. Rules of a merged policy say where they come from.
    """

    defaults: dict[str, object] = {}
    rules: dict[str, object] = {}
    #: By role, the ids of the data sources that every workload gets; the role is empty for kinds without roles.
    imposed_assets: dict[str, tuple[str, ...]] = {}


NO_POLICY = Policy()
_Leaf = Callable[[Sequence[object]], object]


def merge_policies(type: PolicyType, policies: Sequence[Policy]) -> Policy:
    """The effective policy of these, nearest scope first."""
    if not policies:
        return NO_POLICY
    return Policy(
        defaults=_by_section(type, [each.defaults for each in policies], _merge_defaults),
        rules=_by_section(type, [each.rules for each in policies], _merge_nearest_rules),
        imposed_assets={
            role: tuple(dict.fromkeys(id for each in policies for id in each.imposed_assets.get(role, ())))
            for role in type.roles
        },
    )


def with_source(type: PolicyType, policy: Policy, source: RuleSource) -> Policy:
    """The policy with the source in each of its rules."""
    stamp: dict[str, object] = msgspec.to_builtins(source)

    def mark(struct: Struct, trees: Sequence[Tree]) -> dict[str, object]:
        return _merge_rules(struct, trees, lambda rules: {**_tree(rules[0]), SOURCE: stamp}, is_farthest=False)

    return msgspec.structs.replace(policy, rules=_by_section(type, [policy.rules], mark))


def _by_section(
    type: PolicyType, trees: Sequence[Tree], merge: Callable[[Struct, Sequence[Tree]], dict[str, object]]
) -> dict[str, object]:
    merged: dict[str, object] = {}
    for section in type.sections:
        if not section.name:
            return merge(section.struct, trees)
        part = merge(section.struct, [_tree(tree.get(section.name)) for tree in trees])
        if part:
            merged[section.name] = part
    return merged


def _tree(value: object) -> Tree:
    return value if isinstance(value, dict) else {}


def _first(values: Sequence[object]) -> object:
    return values[0]


def _merge_nearest_rules(struct: Struct, trees: Sequence[Tree]) -> dict[str, object]:
    return _merge_rules(struct, trees, _first, is_farthest=False)


def _merge_rules(struct: Struct, trees: Sequence[Tree], leaf: _Leaf, *, is_farthest: bool) -> dict[str, object]:
    merged: dict[str, object] = {}
    for name, values in _given(trees):
        field = fields_by_name(struct).get(name)
        farthest = is_farthest or name in FARTHEST_WINS
        form = RuleClass.BOOLEAN if field is None else rule_class(field)
        if form is RuleClass.SECTION and field is not None and field.struct is not None:
            merged[name] = _merge_rules(field.struct, [_tree(one) for one in values], leaf, is_farthest=farthest)
        elif form is RuleClass.ITEMS and field is not None and field.struct is not None:
            merged[name] = _merge_item_rules(field.struct, [_tree(one) for one in values], leaf, is_farthest=farthest)
        else:
            merged[name] = leaf(values[::-1] if farthest else values)
    return merged


def _merge_item_rules(struct: Struct, trees: Sequence[Tree], leaf: _Leaf, *, is_farthest: bool) -> dict[str, object]:
    merged: dict[str, object] = {}
    instances = [tree["instances"] for tree in trees if tree.get("instances") is not None]
    if instances:
        merged["instances"] = leaf(instances[::-1] if is_farthest else instances)
    attributes = _merge_rules(struct, [_tree(tree.get("attributes")) for tree in trees], leaf, is_farthest=is_farthest)
    if attributes:
        merged["attributes"] = attributes
    return merged


def _merge_defaults(struct: Struct, trees: Sequence[Tree]) -> dict[str, object]:
    merged: dict[str, object] = {}
    for name, values in _given(trees):
        field = fields_by_name(struct).get(name)
        form = RuleClass.BOOLEAN if field is None else rule_class(field)
        if form is RuleClass.SECTION and field is not None and field.struct is not None:
            merged[name] = _merge_defaults(field.struct, [_tree(one) for one in values])
        elif form is RuleClass.ITEMS and field is not None:
            merged[name] = _merge_item_defaults(field, [_tree(one) for one in values])
        else:
            merged[name] = values[0]
    return merged


def _merge_item_defaults(field: Field, trees: Sequence[Tree]) -> dict[str, object]:
    """Instances of all scopes, of the same key the nearest; attributes one by one."""
    key = field.about.key
    instances: dict[object, object] = {}
    for tree in reversed(trees):
        listed = tree.get("instances")
        given = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
        instances.update({item.get(key): item for item in given})
    merged: dict[str, object] = {"instances": list(instances.values())} if instances else {}
    attributes = [_tree(tree.get("attributes")) for tree in trees]
    if field.struct is not None and any(attributes):
        merged["attributes"] = _merge_defaults(field.struct, attributes)
    return merged


def _given(trees: Sequence[Tree]) -> list[tuple[str, list[object]]]:
    """Each name with its values that are not null, nearest first; names in a fixed order."""
    names = dict.fromkeys(name for tree in trees for name in tree)
    given = [(name, [tree[name] for tree in trees if tree.get(name) is not None]) for name in sorted(names)]
    return [(name, values) for name, values in given if values]
