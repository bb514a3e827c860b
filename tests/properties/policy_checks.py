"""Policies against a plain reference: random policies of several scopes, and random requests.

The reference knows a few fields by name and looks at one at a time; the product walks declarations and merges trees.
`python -m tests.properties.policy_checks` (part of `make soak`) checks 10,000 seeds; `test_policies.py` a few.
"""

import argparse
import math
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from fairlead.admission.policies.apply import apply_policy
from fairlead.admission.policies.merge import Policy, merge_policies
from fairlead.kinds.policies import POLICY_TYPES

TRAINING = next(type for type in POLICY_TYPES.values() if type.key == "training")
NUMBERS = {
    "backoffLimit": (0, 1, 2, 3, 5, 8),
    "compute.gpuDevicesRequest": (0, 1, 2, 4, 7, 8),
    "compute.cpuCoreRequest": (0.5, 1, 1.5, 2, 4),
    "compute.cpuCoreLimit": (0.5, 1, 2, 3, 6),
    "compute.cpuMemoryRequest": ("500M", "1G", "1Gi", "2Gi"),
    "compute.cpuMemoryLimit": ("800M", "1G", "2Gi", "4Gi"),
    "security.runAsUid": (500, 501, 1000, 1002),
}
TEXTS = {
    "image": ("a", "b", "c"),
    "workingDir": ("/a", "/b"),
    "compute.gpuRequestType": ("portion", "memory"),
    "security.uidGidSource": ("custom", "fromTheImage"),
    "security.hostIpc": (True, False),
}
FIELDS = NUMBERS | TEXTS
#: A limit that follows from its request, and by which factor.
DERIVED = {"compute.cpuCoreLimit": "compute.cpuCoreRequest", "compute.cpuMemoryLimit": "compute.cpuMemoryRequest"}
#: The list whose items have a key, and the keys.
LIST, NAMES = "environmentVariables", ("A", "B", "C", "D")
_UNITS = {"M": 10**6, "G": 10**9, "Gi": 2**30}

Flat = dict[str, Any]


class Scope(NamedTuple):
    """One policy, by path. Of the list of variables: the default instances, and the rule for instances."""

    defaults: Flat
    rules: dict[str, Flat]
    instances: dict[str, str]
    item_rule: Flat


class Case(NamedTuple):
    #: Nearest first.
    scopes: list[Scope]
    sent: Flat
    #: Variables by name; None excludes one.
    variables: dict[str, str | None] | None


def make_case(seed: int) -> Case:
    chance = random.Random(seed)
    scopes = [_scope(chance) for _ in range(chance.randint(0, 4))]
    sent = {path: chance.choice(values) for path, values in FIELDS.items() if chance.random() < 0.5}
    names = chance.sample(NAMES, chance.randint(0, 3))
    given = {name: None if chance.random() < 0.15 else chance.choice("xyz") for name in names}
    return Case(scopes, sent, given if names or chance.random() < 0.5 else None)


def _scope(chance: random.Random) -> Scope:
    rules = {path: _rule(chance, path) for path in FIELDS if chance.random() < 0.4}
    defaults = {path: chance.choice(values) for path, values in FIELDS.items() if chance.random() < 0.3}
    names = chance.sample(NAMES, chance.randint(0, 2))
    item_rule: Flat = {}
    if chance.random() < 0.5:
        locked = [name for name in names if chance.random() < 0.4]
        item_rule = {"canAdd": chance.random() < 0.6, **({"locked": locked} if locked else {})}
    return Scope(defaults, rules, {name: chance.choice("xyz") for name in names}, item_rule)


def _rule(chance: random.Random, path: str) -> Flat:
    rule: Flat = {}
    if path in DERIVED and chance.random() < 0.5:
        return {"defaultFrom": {"field": DERIVED[path].rsplit(".", 1)[-1], "factor": chance.choice((1, 1.5, 2))}}
    if chance.random() < 0.3:
        rule["required"] = True
    if chance.random() < 0.3:
        rule["canEdit"] = False
    if path in NUMBERS:
        low, high = sorted(chance.sample(range(len(NUMBERS[path])), 2))
        rule |= {"min": NUMBERS[path][low]} if chance.random() < 0.5 else {}
        rule |= {"max": NUMBERS[path][high]} if chance.random() < 0.5 else {}
        if path in ("backoffLimit", "compute.gpuDevicesRequest") and chance.random() < 0.3:
            rule["step"] = 2
    elif path in ("image", "workingDir") and chance.random() < 0.5:
        allowed = chance.sample(TEXTS[path], chance.randint(1, len(TEXTS[path])))
        rule["options"] = [{"value": value} for value in allowed]
    return rule


# The reference.


def expect(case: Case) -> tuple[Flat, dict[str, str], set[tuple[str, str]]]:
    """The values by path, the variables, and (field, rule) of every violation."""
    broken: set[tuple[str, str]] = set()
    values: Flat = {}
    for path in sorted(FIELDS, key=lambda path: path in DERIVED):
        found = [scope.defaults[path] for scope in case.scopes if path in scope.defaults]
        default = found[0] if found else None
        rules = [scope.rules[path] for scope in case.scopes if path in scope.rules]
        is_protected = path.startswith(("compute.", "security."))
        rule: Flat = (rules[-1] if is_protected else rules[0]) if rules else {}
        given = case.sent.get(path)
        value = given if given is not None else default
        if value is None and "defaultFrom" in rule:
            value = _follow(values.get(DERIVED[path]), rule["defaultFrom"]["factor"])
        if value is not None:
            values[path] = value
        broken |= {(path, name) for name in _breaks(rule, given, default, value)}
    variables, wrong = _variables(case)
    return values, variables, broken | wrong


def _follow(value: Any, factor: float) -> Any:
    if value is None:
        return None
    return str(math.ceil(_size(value) * Fraction(factor))) if isinstance(value, str) else value * factor


def _size(value: Any) -> Fraction:
    if not isinstance(value, str):
        return Fraction(value)
    digits = value.rstrip("MGi")
    return Fraction(digits) * _UNITS.get(value[len(digits) :], 1)


def _breaks(rule: Flat, given: Any, default: Any, value: Any) -> Iterator[str]:
    if rule.get("canEdit") is False and given is not None and given != default:
        yield "canEdit"
    if value is None:
        if rule.get("required"):
            yield "required"
        return
    if "min" in rule and _size(value) < _size(rule["min"]):
        yield "min"
    if "max" in rule and _size(value) > _size(rule["max"]):
        yield "max"
    if "step" in rule and (_size(value) - _size(rule.get("min", 0))) % rule["step"] != 0:
        yield "step"
    if "options" in rule and value not in [option["value"] for option in rule["options"]]:
        yield "options"


def _variables(case: Case) -> tuple[dict[str, str], set[tuple[str, str]]]:
    defaults: dict[str, str] = {}
    for scope in reversed(case.scopes):
        defaults |= scope.instances
    rule = next((scope.item_rule for scope in case.scopes if scope.item_rule), {})
    locked, broken = rule.get("locked", []), set()
    result = dict(defaults)
    for name, value in (case.variables or {}).items():
        is_changed = value is None or value != defaults.get(name)
        if name in locked and (name in defaults or value is None) and is_changed:
            broken.add((f"{LIST}.{name}", "locked"))
        if value is None:
            if name not in locked:
                result.pop(name, None)
            continue
        if name not in defaults and rule.get("canAdd") is False:
            broken.add((f"{LIST}.{name}", "canAdd"))
        if name in locked and name not in defaults:
            broken.add((f"{LIST}.{name}", "locked"))
        result[name] = value
    return result, broken


# The product.


def run(case: Case, scopes: list[Policy]) -> tuple[Flat, dict[str, str], set[tuple[str, str]]]:
    sent = _nested(case.sent)
    if case.variables is not None:
        sent[LIST] = [
            {"name": name, "exclude": True} if value is None else {"name": name, "value": value}
            for name, value in case.variables.items()
        ]
    spec, issues = apply_policy(TRAINING, sent, merge_policies(TRAINING, scopes))
    values = {path: value for path in FIELDS if (value := _at(spec, path)) is not None}
    listed: Any = spec.get(LIST) or ()
    # An excluded item of which no policy speaks is left out later, when the spec is read.
    variables = {item["name"]: item["value"] for item in listed if not item.get("exclude")}
    return values, variables, {(one.field, one.rule or "") for one in issues}


def policies_of(case: Case) -> list[Policy]:
    made = []
    for scope in case.scopes:
        defaults, rules = _nested(scope.defaults), _nested(scope.rules)
        if scope.instances:
            named = [{"name": name, "value": value} for name, value in scope.instances.items()]
            defaults[LIST] = {"instances": named}
        if scope.item_rule:
            rules[LIST] = {"instances": scope.item_rule}
        made.append(Policy(defaults=defaults, rules=rules))
    return made


def _nested(flat: Flat) -> Flat:
    tree: Flat = {}
    for path, value in flat.items():
        section, _, name = path.rpartition(".")
        (tree.setdefault(section, {}) if section else tree)[name] = value
    return tree


def _at(tree: Any, path: str) -> Any:
    for name in path.split("."):
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def find_fault(seed: int) -> str:
    """Where the product differs from the reference, or which property does not hold; empty if all is well."""
    case = make_case(seed)
    policies = policies_of(case)
    got = run(case, policies)
    if got != expect(case):
        return f"seed {seed}: {got} instead of {expect(case)} for {case}"
    if len(policies) > 2:
        left = merge_policies(TRAINING, [merge_policies(TRAINING, policies[:2]), *policies[2:]])
        right = merge_policies(TRAINING, [policies[0], merge_policies(TRAINING, policies[1:])])
        if not run(case, [left]) == run(case, [right]) == got:
            return f"seed {seed}: merging is not associative"
    if case.variables is not None:
        turned = case._replace(variables=dict(reversed(case.variables.items())))
        if run(turned, policies) != got:
            return f"seed {seed}: the order of items matters"
    is_plain = None not in (case.variables or {}).values()
    derives = any("defaultFrom" in rule for scope in case.scopes for rule in scope.rules.values())
    if not got[2] and is_plain and not derives:
        again = Case(case.scopes, got[0], dict(got[1]))
        if run(again, policies) != got:
            return f"seed {seed}: what was accepted does not pass again unchanged"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description="Check random policies and requests.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=10_000)
    given, _ = parser.parse_known_args()
    for seed in range(given.seed, given.seed + given.cases):
        if fault := find_fault(seed):
            raise SystemExit(fault)
    print(f"{given.cases} random policies and requests agree with the reference")


if __name__ == "__main__":
    main()
