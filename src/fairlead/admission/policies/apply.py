"""Applies an effective policy to a spec: defaults fill in what was not given, rules refuse violations.

It works on plain data keyed by REST names and walks the policy, not the spec, so that a small policy costs little.
Every violation is reported, with its rule and the scope that the rule comes from.
"""

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache

import msgspec

from fairlead.admission.policies.merge import Policy, Tree
from fairlead.kinds.policies import PolicyType
from fairlead.model.errors import ComplianceIssue
from fairlead.model.policies.rules import ATTRIBUTE_NAMES, SOURCE, RuleClass, fields_by_name, rule_classes
from fairlead.model.quantity import BadQuantity, parse
from fairlead.model.spec.fields import Field, Struct

Plain = dict[str, object]
_WHOLE_INSTALLATION = {"system": "the system", "tenant": "the whole installation", "cluster": "the cluster"}


def apply_policy(type: PolicyType, sent: Tree, policy: Policy) -> tuple[Plain, list[ComplianceIssue]]:
    """The effective spec as plain data, and every violation with its path inside the spec."""
    issues: list[ComplianceIssue] = []
    result = dict(sent)
    for section in type.sections:
        defaults, rules = _part(policy.defaults, section.name), _part(policy.rules, section.name)
        if not section.member:
            result = _Section(section.struct, "", issues).apply(result, defaults, rules)
        elif defaults or rules:
            _apply_to_role(section.struct, section.member, result, defaults, rules, issues)
    return result, issues


def _apply_to_role(
    struct: Struct, member: str, result: Plain, defaults: Tree, rules: Tree, issues: list[ComplianceIssue]
) -> None:
    """Apply a role's section to its own spec; or, if it has the spec of the others, check only the rules on that."""
    section = _Section(struct, member, issues)
    own = result.get(member)
    if isinstance(own, dict):
        result[member] = section.apply(own, defaults, rules)
    elif result.get(f"{member}SameAsWorker") is not False:
        section.apply(result, {}, rules)


def _part(tree: Tree, section: str) -> Tree:
    return _tree(tree.get(section)) if section else tree


def _tree(value: object) -> Tree:
    return value if isinstance(value, dict) else {}


class _Section:
    """One object of the spec with its declarations and path; all sections of a spec share the list of issues."""

    def __init__(self, struct: Struct, path: str, issues: list[ComplianceIssue]) -> None:
        self.struct = struct
        self.path = path
        self.issues = issues

    def apply(self, sent: Tree, defaults: Tree, rules: Tree) -> Plain:
        """Members in their declared order, then those whose default follows from another member."""
        result = dict(sent)
        if not defaults and not rules:
            return result
        for name, is_nested in _members(self.struct, tuple(defaults), tuple(rules)):
            value, default = sent.get(name), defaults.get(name)
            if is_nested:
                value = self._nested(name, value, default, rules.get(name))
            elif value is None:
                value = default
            if value is not None:
                result[name] = value
        for name, is_nested in _members(self.struct, (), tuple(rules)):
            rule = rules.get(name)
            if not is_nested and isinstance(rule, dict) and rule:
                self._check(name, sent.get(name), defaults.get(name), rule, result)
        return result

    def _nested(self, name: str, given: object, default: object, rule: object) -> object:
        form, field = rule_classes(self.struct)[name], fields_by_name(self.struct)[name]
        if form is RuleClass.ITEMS and field.struct is not None:
            items = _Items(field, self._join(name), self.issues)
            return items.apply(given if isinstance(given, list) else None, _tree(default), _tree(rule))
        if field.struct is not None:
            if given is None and field.about.role:
                # The pods of this role do not exist.
                return None
            inner = _Section(field.struct, self._join(name), self.issues)
            return inner.apply(_tree(given), _tree(default), _tree(rule)) or given
        return default if given is None else given

    def _join(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def _check(self, name: str, given: object, default: object, rule: Tree, result: Plain) -> None:
        """Fill in a default that follows from another member, then report every violation of the rule."""
        if result.get(name) is None and not rule.get("required") and not rule.get("defaultFrom"):
            return  # nothing to check: a null counts as not given
        field = fields_by_name(self.struct)[name]
        if result.get(name) is None and (source := rule.get("defaultFrom")):
            derived = _derived(field, _tree(source), result)
            if derived is not None:
                result[name] = derived
        for broken, details in _violations(field, given, default, rule, result.get(name)):
            self.issues.append(ComplianceIssue(self._join(name), details + _origin(rule), broken))


#: Classes whose rules are those of their members.
_NESTED = (RuleClass.ITEMS, RuleClass.SECTION)


@lru_cache(maxsize=1024)
def _members(struct: Struct, defaults: tuple[str, ...], rules: tuple[str, ...]) -> tuple[tuple[str, bool], ...]:
    """The members that a policy has something for, in their declared order, and whether members of them have rules."""
    given, forms = {*defaults, *rules}, rule_classes(struct)
    return tuple((name, forms[name] in _NESTED) for name in fields_by_name(struct) if name in given)


class _Items:
    """A list whose items have a key: default instances first, each with the request's changes, then what it adds."""

    def __init__(self, field: Field, path: str, issues: list[ComplianceIssue]) -> None:
        self.field = field
        self.key = field.about.key
        self.path = path
        self.issues = issues

    def apply(self, sent: list[object] | None, defaults: Tree, rules: Tree) -> list[Plain] | None:
        attributes, instances = _tree(defaults.get("attributes")), self._instances(defaults)
        rule, attribute_rules = _tree(rules.get("instances")), self._attribute_rules(rules)
        listed = rule.get("locked")
        locked = set(listed) if isinstance(listed, list) else set()
        given = [item for item in sent or () if isinstance(item, dict)]
        excluded = {item.get(self.key) for item in given if item.get("exclude") is True} if given else set()
        for name in sorted(excluded & locked, key=str):
            self._report(name, "is locked and cannot be excluded", "locked", rule)
        chosen: list[tuple[object, Plain, Plain]] = [
            (name, self._sent_for(name, given), {**attributes, **item})
            for name, item in instances.items()
            if name not in excluded or name in locked
        ]
        taken = {id(sent_for) for _, sent_for, _ in chosen}
        for item in given:
            # A second item of the same name stays, so that the rules of the kind refuse it.
            if item.get("exclude") is True or id(item) in taken:
                continue
            name = item.get(self.key)
            if rule.get("canAdd") is False and (name not in instances or name in excluded):
                self._report(name, "must not be added", "canAdd", rule)
            chosen.append((name, item, dict(attributes)))
        result = [self._merge(*each, attribute_rules, rule, locked) for each in chosen]
        return result or (None if sent is None else [])

    def _instances(self, defaults: Tree) -> dict[object, Plain]:
        listed = defaults.get("instances")
        return {item.get(self.key): item for item in listed} if isinstance(listed, list) else {}

    def _attribute_rules(self, rules: Tree) -> tuple[Plain, ...]:
        """The rules by member; then those that policies have under another name, because a member may have both."""
        given, renamed = dict(_tree(rules.get("attributes"))), {}
        for name in [name for name in given if (self.field.rest, name) in ATTRIBUTE_NAMES]:
            renamed[ATTRIBUTE_NAMES[self.field.rest, name]] = given.pop(name)
        return (given, renamed) if renamed else (given,) if given else ()

    def _sent_for(self, name: object, given: list[Plain]) -> Plain:
        if not given:
            return {}
        return next((item for item in given if item.get(self.key) == name and item.get("exclude") is not True), {})

    def _merge(
        self, name: object, sent: Plain, base: Plain, rules: tuple[Plain, ...], rule: Tree, locked: set[object]
    ) -> Plain:
        if not sent and not rules:
            return base
        if name in locked and any(value is not None and value != base.get(part) for part, value in sent.items()):
            self._report(name, "is locked and cannot be changed", "locked", rule)
        if not rules and not any(isinstance(value, dict) for value in base.values()):
            return {**sent, **{part: value for part, value in base.items() if sent.get(part) is None}}
        section = _Section(self.field.struct or msgspec.Struct, f"{self.path}.{name}", self.issues)
        merged, *_ = [section.apply(sent, base, each) for each in rules or ({},)]
        return merged

    def _report(self, name: object, details: str, broken: str, rule: Tree) -> None:
        self.issues.append(ComplianceIssue(f"{self.path}.{name}", details + _origin(rule), broken))


def _violations(field: Field, given: object, default: object, rule: Tree, value: object) -> Iterator[tuple[str, str]]:
    """(rule, details) of every violation; `value` is the effective value."""
    if rule.get("blocked") and given is not None:
        yield "blocked", "must not be given"
    if rule.get("canEdit") is False and given is not None and not _is_same(field, given, default):
        yield "canEdit", "must not be given" if default is None else f"must stay {_shown(default)}"
    if value is None:
        if rule.get("required"):
            yield "required", "must be given"
        return
    yield from _out_of_bounds(field, value, rule)
    options = rule.get("options")
    if isinstance(options, list) and options:
        allowed = [option["value"] if isinstance(option, dict) else option for option in options]
        for one in value if isinstance(value, list) else [value]:
            if not any(_is_same(field, one, each) for each in allowed):
                yield "options", f"{_shown(one)} is not allowed; allowed are {', '.join(map(_shown, allowed))}"


def _is_same(field: Field, value: object, other: object) -> bool:
    """Quantities can be written in several ways."""
    if value == other or not field.is_quantity:
        return value == other
    number = _number(field, value)
    return number is not None and number == _number(field, other)


def _out_of_bounds(field: Field, value: object, rule: Tree) -> Iterator[tuple[str, str]]:
    number = _number(field, value)
    if number is None:
        return
    low, high, step = _number(field, rule.get("min")), _number(field, rule.get("max")), _number(field, rule.get("step"))
    if low is not None and number < low:
        yield "min", f"value must be no less than {rule['min']}"
    if high is not None and number > high:
        yield "max", f"value must be no greater than {rule['max']}"
    if step:
        steps = (number - (low or 0)) / step
        if abs(steps - round(steps)) > _ROUNDING:
            yield "step", f"value must be {rule.get('min') or 0} plus a multiple of {rule['step']}"


#: Steps such as 0.1 are not exact in binary.
_ROUNDING = 1e-9


def _number(field: Field, value: object) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if field.is_quantity and isinstance(value, str):
        try:
            return float(parse(value))
        except BadQuantity:
            return None
    return None


def _derived(field: Field, source: Tree, section: Mapping[str, object]) -> object:
    """Another member of the section times a factor, in the format of this member."""
    value = section.get(str(source.get("field") or ""))
    given = source.get("factor")
    factor = given if isinstance(given, int | float) else 1
    if field.is_quantity and isinstance(value, str):
        numerator, denominator = float(factor).as_integer_ratio()
        return str(math.ceil(parse(value) * numerator / denominator))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return math.ceil(value * factor) if field.type_word == "integer" else value * factor
    return None


def _origin(rule: Tree) -> str:
    """` (policy of department 3)`; nothing for a rule without its source."""
    source = _tree(rule.get(SOURCE))
    scope = str(source.get("scope") or "")
    if not scope:
        return ""
    id = source.get(f"{scope}Id")
    where = _WHOLE_INSTALLATION.get(scope) or f"{scope} {id}"
    return f" (policy of {where})"


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
