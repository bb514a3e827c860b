"""Applies the effective policy to a spec: its defaults fill in what was not given, its rules refuse violations.

It works on plain data keyed by REST names, and takes members and the keys of lists from the declarations. `admit` calls
it and reports every violation at once.
"""

import math
from collections.abc import Iterator
from typing import Any

import msgspec

from fairlead.model.errors import ComplianceIssue
from fairlead.model.quantity import BadQuantity, parse
from fairlead.model.spec.fields import Field, fields_of

Plain = dict[str, Any]


class Policy(msgspec.Struct, frozen=True):
    """Defaults and rules in the shape of the policy interface, nested as the spec is.

    For a list whose items have a key, defaults are `{instances: [item], attributes: {…}}` and rules are
    `{instances: {canAdd, locked: [key]}, attributes: {…}}`.
    """

    defaults: Plain = {}
    rules: Plain = {}


NO_POLICY = Policy()


def apply_policy(struct: Any, sent: Plain, policy: Policy) -> tuple[Plain, list[ComplianceIssue]]:
    """The effective spec as plain data, and every violation with its path inside the spec."""
    issues: list[ComplianceIssue] = []
    return _struct(struct, sent, policy.defaults, policy.rules, "", issues), issues


def _struct(struct: Any, sent: Plain, defaults: Plain, rules: Plain, path: str, issues: list[ComplianceIssue]) -> Plain:
    """Members in order, then those whose default follows from another member of the same section."""
    result: Plain = {}
    for field in fields_of(struct):
        name, here = field.rest, f"{path}.{field.rest}" if path else field.rest
        given, default, rule = sent.get(name), defaults.get(name), rules.get(name) or {}
        value: Any
        if field.is_list and field.about.key:
            value = _items(field, given, default or {}, rule, here, issues)
        elif field.struct is not None and not field.is_list:
            value = _struct(field.struct, given or {}, default or {}, rule, here, issues) or None
        else:
            value = default if given is None else given
        if value is not None:
            result[name] = value
    for field in fields_of(struct):
        rule = rules.get(field.rest)
        if rule and not (field.struct is not None and (field.about.key or not field.is_list)):
            here = f"{path}.{field.rest}" if path else field.rest
            issues += _scalar(field, sent.get(field.rest), defaults.get(field.rest), rule, result, here)
    return result


def _scalar(field: Field, given: Any, default: Any, rule: Plain, result: Plain, path: str) -> Iterator[ComplianceIssue]:
    """Fills in a default that follows from another member, then yields the violations of the rule."""
    name = field.rest
    if name not in result and "defaultFrom" in rule:
        derived = _derived(field, rule["defaultFrom"], result)
        if derived is not None:
            result[name] = derived
    if rule.get("blocked") and given is not None:
        yield ComplianceIssue(path, "must not be given", "blocked")
    if rule.get("canEdit") is False and given is not None and given != default:
        details = "must not be given" if default is None else f"must stay {_shown(default)}"
        yield ComplianceIssue(path, details, "canEdit")
    value = result.get(name)
    if value is None:
        if rule.get("required"):
            yield ComplianceIssue(path, "must be given", "required")
        return
    for which, details in _broken(field, value, rule):
        yield ComplianceIssue(path, details, which)


def _derived(field: Field, source: Plain, section: Plain) -> Any:
    """Another member of the section times a factor, in the format of this member."""
    value = section.get(source.get("field", ""))
    if value is None:
        return None
    factor = source.get("factor", 1)
    if field.is_quantity:
        return _scaled(value, factor)
    return value * factor


def _scaled(quantity: str, factor: float) -> str:
    numerator, denominator = float(factor).as_integer_ratio()
    return str(math.ceil(parse(quantity) * numerator / denominator))


def _broken(field: Field, value: Any, rule: Plain) -> Iterator[tuple[str, str]]:
    number = _number(field, value)
    low, high, step = (_number(field, rule.get(name)) for name in ("min", "max", "step"))
    if number is not None:
        if low is not None and number < low:
            yield "min", f"value must be no less than {rule['min']}"
        if high is not None and number > high:
            yield "max", f"value must be no greater than {rule['max']}"
        if step and abs((number - (low or 0)) / step - round((number - (low or 0)) / step)) > 1e-9:
            yield "step", f"value must be {rule.get('min', 0)} plus a multiple of {rule['step']}"
    options = rule.get("options")
    if options:
        allowed = [option["value"] if isinstance(option, dict) else option for option in options]
        for one in value if isinstance(value, list) else [value]:
            if one not in allowed:
                yield "options", f"{_shown(one)} is not allowed; allowed are {', '.join(map(_shown, allowed))}"


def _number(field: Field, value: Any) -> float | None:
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


def _items(
    field: Field, sent: list[Any] | None, defaults: Plain, rules: Plain, path: str, issues: list[ComplianceIssue]
) -> list[Plain] | None:
    """Default instances first, each with the request's changes, then what the request adds."""
    key = field.about.key
    attributes, attribute_rules = defaults.get("attributes") or {}, rules.get("attributes") or {}
    instances = {item.get(key): item for item in defaults.get("instances") or ()}
    allowed = rules.get("instances") or {}
    locked = set(allowed.get("locked") or ())
    given = [item for item in sent or () if item is not None]
    excluded = {item.get(key) for item in given if item.get("exclude") is True}
    chosen: list[tuple[Any, Plain, Plain]] = [
        (name, _sent_for(name, key, given), {**attributes, **item})
        for name, item in instances.items()
        if name not in excluded or name in locked
    ]
    issues.extend(
        ComplianceIssue(f"{path}.{name}", "is locked and cannot be excluded", "locked")
        for name in sorted(excluded & locked)
    )
    for item in given:
        if item.get(key) in instances or item.get("exclude") is True:
            continue
        if allowed.get("canAdd") is False:
            issues.append(ComplianceIssue(f"{path}.{item.get(key)}", "must not be added", "canAdd"))
        chosen.append((item.get(key), item, attributes))
    result = []
    for name, item, base in chosen:
        if name in locked and any(value is not None and value != base.get(part) for part, value in item.items()):
            issues.append(ComplianceIssue(f"{path}.{name}", "is locked and cannot be changed", "locked"))
        result.append(_struct(field.struct, item, base, attribute_rules, f"{path}.{name}", issues))
    return result or (None if sent is None else [])


def _sent_for(name: Any, key: str, given: list[Plain]) -> Plain:
    return next((item for item in given if item.get(key) == name and item.get("exclude") is not True), {})


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
