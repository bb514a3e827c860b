"""Reads policies in the older form, custom resources such as `TrainingPolicy`, and turns them into today's policies.

Values are read as those of a workload's document, so they mean the same. Whatever today's policies cannot say is
listed as a loss. Called by `apply` and `policy`, and for custom resources of a cluster.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from fairlead.formats.check import type_name
from fairlead.formats.losses import Loss
from fairlead.formats.plain import Plain
from fairlead.formats.policies import policy_violations
from fairlead.formats.yaml.documents import YamlWorkload, read_manifests, read_workload
from fairlead.formats.yaml.extra_fields import YamlField
from fairlead.formats.yaml.fields import ITEMS, MAP, VALUE, spellings
from fairlead.formats.yaml.keywords import API_VERSION, GLOBAL_NAMESPACE, OWN_VERSION, near
from fairlead.formats.yaml.tree import YamlIssue
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind
from fairlead.kinds.policies import POLICY_TYPE_OF_KIND, PolicyType
from fairlead.model.errors import ComplianceIssue, Invalid
from fairlead.model.records.organization import project_in

#: The older kinds of policies, with the kind of workload that each is about.
LEGACY_KINDS: dict[str, Kind] = {kind.older_policy: kind for kind in KINDS.values() if kind.older_policy}
#: The item whose attributes are defaults for all items.
_DEFAULTS = "DEFAULTS"
_WRAPPER = ("value", "rules")
_ITEM_WRAPPER = ("items", "rules", "itemRules")
_RULES = ("required", "canEdit", "min", "max", "options")
_MERGED = (
    "is the global policy, which applied only to projects without a policy of their own; "
    "now it is merged with the policies of projects"
)


class LegacyPolicy(msgspec.Struct, frozen=True, kw_only=True):
    type: PolicyType
    name: str
    #: The project's name; empty for the whole installation.
    project: str
    defaults: Plain
    rules: Plain
    losses: tuple[Loss, ...]


def is_legacy(document: object) -> bool:
    return isinstance(document, dict) and document.get("kind") in LEGACY_KINDS


def read_legacy_policy(document: Mapping[str, object]) -> LegacyPolicy:
    """The policy of a document; raises Invalid with the path of every mistake."""
    kind = LEGACY_KINDS[str(document["kind"])]
    reading = _Reading(kind)
    metadata, spec = document.get("metadata"), document.get("spec")
    if document.get("apiVersion") not in (API_VERSION, OWN_VERSION):
        reading.report("apiVersion", f"must be {API_VERSION}")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        reading.report("metadata.name", "is missing; it is required")
        metadata = {}
    if not isinstance(spec, dict):
        reading.report("spec", f"is {type_name(spec)}; an object with the fields of the policy is expected")
        spec = {}
    namespace = str(metadata.get("namespace") or GLOBAL_NAMESPACE)
    reading.read(spec)
    defaults = reading.read_values(kind.resource)
    type = POLICY_TYPE_OF_KIND[kind.key]
    if section := type.sections[0].name:
        reading.lose("spec", f"applies to the pods of the {section}s; masters have rules of their own now")
        defaults, reading.rules = {section: defaults} if defaults else {}, {section: reading.rules}
    if namespace == GLOBAL_NAMESPACE:
        reading.lose("metadata.namespace", _MERGED)
    reading.issues += policy_violations(type, defaults, reading.rules)
    if reading.issues:
        raise Invalid(issues=tuple(reading.issues))
    project = "" if namespace == GLOBAL_NAMESPACE else project_in(namespace)
    name = str(metadata["name"])
    return LegacyPolicy(
        type=type, name=name, project=project, defaults=defaults, rules=reading.rules, losses=tuple(reading.losses)
    )


class _Reading:
    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._fields = spellings(kind)
        #: The values, as a document of a workload has them.
        self._values: Plain = {}
        self.rules: Plain = {}
        self.losses: list[Loss] = []
        self.issues: list[ComplianceIssue] = []

    def report(self, path: str, details: str) -> None:
        self.issues.append(ComplianceIssue(path, details))

    def lose(self, path: str, reason: str) -> None:
        self.losses.append(Loss(path=path, reason=reason))

    def read(self, spec: Mapping[str, object]) -> None:
        for name, given in spec.items():
            path, field = f"spec.{name}", self._fields.get(name.lower())
            if field is None:
                self.report(path, f"is not a field of workload YAML{near(name, self._fields)}")
            elif not isinstance(given, dict):
                self.report(path, f"is {type_name(given)}; an object with value and rules is expected")
            elif field.form in (ITEMS, MAP):
                self._read_list(field, path, given)
            else:
                self._read_scalar(field, path, given)

    def _check_members(self, path: str, given: Mapping[str, object], known: tuple[str, ...]) -> None:
        for name in given:
            if name not in known:
                self.report(f"{path}.{name}", f"is not known here{near(str(name), known)}")

    def _read_scalar(self, field: YamlField, path: str, given: Mapping[str, object]) -> None:
        self._check_members(path, given, _WRAPPER)
        if given.get("value") is not None:
            self._values[field.name] = {"value": given["value"]}
        rules = given.get("rules")
        if isinstance(rules, dict) and rules:
            self._add_rule(field, path, rules)

    def _add_rule(self, field: YamlField, path: str, rules: Mapping[str, object]) -> None:
        self._check_members(f"{path}.rules", rules, _RULES)
        if not field.path:
            self.lose(f"{path}.rules", f"{field.name} has no field of its own in requests, so there is no rule for it")
            return
        target, reason = _target(field, rules)
        if reason:
            self.lose(f"{path}.rules", reason)
        _put(self.rules, target, dict(_rule(field, target, rules)))

    def _read_list(self, field: YamlField, path: str, given: Mapping[str, Any]) -> None:
        self._check_members(path, given, _ITEM_WRAPPER)
        items = given.get("items") or {}
        if not isinstance(items, dict):
            self.report(f"{path}.items", f"is {type_name(items)}; an object of items by name is expected")
            return
        if items:
            values = {name: one.get("value") for name, one in items.items() if isinstance(one, dict)}
            whole = {name: {"value": _with_defaults(value, values.get(_DEFAULTS))} for name, value in values.items()}
            self._values[field.name] = {"items": whole}
        instances = dict(self._instances(path, given, items))
        if instances and field.path:
            _put(self.rules, f"{field.path}.instances", instances)
        for name, rules in (given.get("itemRules") or {}).items():
            self._add_attribute(field, f"{path}.itemRules.{name}", name, rules)

    def _instances(self, path: str, given: Mapping[str, Any], items: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
        rules = given.get("rules") or {}
        self._check_members(f"{path}.rules", rules, ("canAdd", "required", "canEdit"))
        if "canAdd" in rules:
            yield "canAdd", rules["canAdd"]
        for name in ("required", "canEdit"):
            if name in rules:
                self.lose(f"{path}.rules.{name}", "lists have only canAdd and locked now")
        locked = []
        for name, one in items.items():
            own = (one.get("rules") or {}) if isinstance(one, dict) else {}
            if own.get("canRemove") is False or own.get("canEdit") is False:
                locked.append(name)
                if own.get("canRemove", True) is not own.get("canEdit", True):
                    self.lose(f"{path}.items.{name}.rules", "is locked now, which forbids both to change and to remove")
        if locked:
            yield "locked", locked

    def _add_attribute(self, field: YamlField, path: str, name: str, rules: object) -> None:
        member = next((one for one in field.members if one.name == name), None)
        if member is None or not field.path:
            self.lose(path, f"items of {field.name} have no such rule now")
        elif not isinstance(rules, dict):
            self.report(path, f"is {type_name(rules)}; an object of rules is expected")
        else:
            _put(self.rules, f"{field.path}.attributes.{member.path}", dict(_rule(member, member.path, rules)))

    def read_values(self, resource: str) -> Plain:
        """The defaults: the values as a workload's document has them, read as one."""
        workload, issues = _read_values(resource, self._values)
        for issue in issues:
            self.report(issue.path or "spec", issue.details)
        empty, _ = _read_values(resource, {})
        if workload is None or empty is None:
            return {}
        given = {self._fields[name.lower()].path for name in self._values}
        own_values = _without_own_defaults(workload.plain, empty.plain, given)
        defaults = {name: _as_default(value) for name, value in own_values.items()}
        for path, details in workload.remarks:
            field = self._fields[path.removeprefix("spec.").partition(".")[0].lower()]
            if field.form is VALUE and field.path:
                # A workload needs another member besides it; a policy presets it for workloads that have that.
                _put(defaults, field.path, self._values[field.name]["value"])
            else:
                self.lose(path, details)
        return defaults


def _read_values(resource: str, values: Plain) -> tuple[YamlWorkload | None, Sequence[YamlIssue]]:
    document = {
        "apiVersion": API_VERSION,
        "kind": resource,
        "metadata": {"name": "policy"},
        "spec": {"name": {"value": "policy"}, **values},
    }
    manifests, issues = read_manifests(msgspec.json.encode(document))
    return read_workload(manifests[0], checks_rules=False) if manifests and not issues else (None, issues)


def _without_own_defaults(plain: Plain, empty: Plain, given: Collection[str], parent: str = "") -> Plain:
    """What the policy gives, without what every document of the kind has by itself."""
    own_values: Plain = {}
    for name, value in plain.items():
        path, own = f"{parent}{name}", empty.get(name)
        if isinstance(value, dict) and isinstance(own, dict):
            if inner := _without_own_defaults(value, own, given, f"{path}."):
                own_values[name] = inner
        elif value != own or path in given:
            own_values[name] = value
    return own_values


def _with_defaults(value: object, defaults: object) -> object:
    """The item with the attributes that all items have, before it gets those that the format has by itself."""
    return {**defaults, **value} if isinstance(value, dict) and isinstance(defaults, dict) else value


def _as_default(value: object) -> object:
    """Lists of items are `{instances, attributes}` in a policy's defaults."""
    if isinstance(value, dict):
        return {name: _as_default(inner) for name, inner in value.items()}
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return value
    attributes: Plain = {}
    for item in value:
        if item.get("name") == _DEFAULTS:
            attributes = {name: inner for name, inner in item.items() if name != "name"}
    instances = [
        {name: inner for name, inner in item.items() if name not in attributes or attributes[name] != inner}
        for item in value
        if item.get("name") != _DEFAULTS
    ]
    parts = {"instances": instances, "attributes": attributes}
    return {name: part for name, part in parts.items() if part}


def _target(field: YamlField, rules: Mapping[str, Any]) -> tuple[str, str]:
    """The field that a rule is about now. A rule on `gpu` was about portions and whole GPUs at the same time."""
    if field.name != "gpu":
        return field.path, ""
    bounds = [float(rules[name]) for name in ("min", "max") if _is_number(rules.get(name))]
    if any(bound > 1 for bound in bounds):
        return "compute.gpuDevicesRequest", "applies to whole GPUs only: portions of a GPU have a rule of their own now"
    return field.path, "applies to portions of a GPU only: whole GPUs have a rule of their own now"


def _is_number(value: object) -> bool:
    try:
        return value is not None and float(str(value)) >= 0
    except ValueError:
        return False


def _rule(field: YamlField, target: str, rules: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    is_number = field.type in ("integer", "number") or target.startswith("compute.gpu")
    for name, value in rules.items():
        if name == "options" and isinstance(value, list):
            yield name, [one if isinstance(one, dict) else {"value": one} for one in value]
        elif name in ("min", "max") and is_number and isinstance(value, str) and _is_number(value):
            number = float(value)
            yield name, int(number) if number.is_integer() else number
        else:
            yield name, value


def _put(tree: Plain, path: str, value: object) -> None:
    *parents, last = path.split(".")
    for name in parents:
        tree = tree.setdefault(name, {})
    tree[last] = value
