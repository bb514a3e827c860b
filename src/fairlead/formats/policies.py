"""Checks a policy as it is written: every default and rule must fit its field. Finds every violation with its path."""

from collections.abc import Callable, Mapping

from fairlead.formats.check import find_violations, join, type_name
from fairlead.formats.yaml.keywords import near
from fairlead.kinds.policies import PolicyType
from fairlead.model.errors import ComplianceIssue
from fairlead.model.policies.rules import (
    ATTRIBUTE_NAMES,
    INSTANCE_KEYWORDS,
    INSTANCES_ONLY,
    KEYWORDS,
    SOURCE,
    RuleClass,
    fields_by_name,
    rule_class,
)
from fairlead.model.quantity import BadQuantity, parse
from fairlead.model.spec.fields import Field, Struct

Tree = Mapping[str, object]


def policy_violations(type: PolicyType, defaults: object, rules: object) -> list[ComplianceIssue]:
    """Every violation in the trees of a policy; null stands for nothing."""
    checker = _Checker()
    for name, tree, check in (("defaults", defaults, checker.defaults), ("rules", rules, checker.rules)):
        if tree is None:
            continue
        path = f"policy.{name}"
        if not isinstance(tree, dict):
            checker.report(path, f"is {type_name(tree)}; an object is expected")
        elif type.sections[0].name:
            checker.roles(type, tree, path, check)
        else:
            check(type.sections[0].struct, tree, path)
    return checker.issues


class _Checker:
    def __init__(self) -> None:
        self.issues: list[ComplianceIssue] = []

    def report(self, path: str, details: str) -> None:
        self.issues.append(ComplianceIssue(path, details))

    def roles(self, type: PolicyType, tree: Tree, path: str, check: Callable[[Struct, Tree, str], None]) -> None:
        sections = {section.name: section.struct for section in type.sections}
        for name, part in tree.items():
            here = join(path, name)
            if name not in sections:
                self.report(here, f"is not a known role{near(name, sections)}")
            elif part is not None and self._is_object(part, here):
                check(sections[name], _as_tree(part), here)

    def _is_object(self, value: object, path: str) -> bool:
        if not isinstance(value, dict):
            self.report(path, f"is {type_name(value)}; an object is expected")
        return isinstance(value, dict)

    def _field(self, struct: Struct, name: str, path: str) -> Field | None:
        fields = fields_by_name(struct)
        if name not in fields:
            self.report(path, f"is not a known field{near(name, fields)}")
        return fields.get(name)

    def defaults(self, struct: Struct, tree: Tree, path: str) -> None:
        """The values must have their fields' types; lists with keys are `{instances, attributes}`."""
        for name, value in tree.items():
            here = join(path, name)
            field = self._field(struct, name, here)
            if field is None or value is None:
                continue
            form = rule_class(field)
            if form is RuleClass.ITEMS and field.struct is not None:
                if self._is_object(value, here):
                    self._default_items(field, _as_tree(value), here)
            elif form is RuleClass.SECTION and field.struct is not None:
                if self._is_object(value, here):
                    self.defaults(field.struct, _as_tree(value), here)
            else:
                self._values(struct, {name: value}, path)

    def _values(self, struct: Struct, plain: object, path: str) -> None:
        """Report mistyped values. That other members are missing is no violation: these are parts of objects."""
        for flaw in find_violations(struct, plain, path):
            if flaw.details != "is missing; it is required":
                self.report(flaw.path, flaw.details)

    def _default_items(self, field: Field, tree: Tree, path: str) -> None:
        for name, value in tree.items():
            here = join(path, name)
            if name == "attributes" and field.struct is not None:
                if value is not None and self._is_object(value, here):
                    self._values(field.struct, value, here)
            elif name != "instances":
                self.report(here, f"is not known here{near(name, ('instances', 'attributes'))}")
            elif isinstance(value, list) and field.struct is not None:
                for number, item in enumerate(value):
                    self._values(field.struct, item, f"{here}[{number}]")
                    if isinstance(item, dict) and not item.get(field.about.key):
                        self.report(f"{here}[{number}].{field.about.key}", "is missing; it names the item")
            elif value is not None:
                self.report(here, f"is {type_name(value)}; a list is expected")

    def rules(self, struct: Struct, tree: Tree, path: str) -> None:
        for name, rule in tree.items():
            here = join(path, name)
            field = self._field(struct, name, here)
            if field is None or rule is None or not self._is_object(rule, here):
                continue
            form = rule_class(field)
            if form is RuleClass.SECTION and field.struct is not None:
                self.rules(field.struct, _as_tree(rule), here)
            elif form is RuleClass.ITEMS:
                self._item_rules(field, _as_tree(rule), here)
            else:
                _Rule(self, struct, field, here).check(_as_tree(rule))

    def _item_rules(self, field: Field, rule: Tree, path: str) -> None:
        allowed = ("instances",) if field.rest in INSTANCES_ONLY else ("instances", "attributes")
        for name, part in rule.items():
            here = join(path, name)
            if name not in allowed:
                self.report(here, f"does not fit {field.rest}{near(name, allowed)}")
            elif part is None or not self._is_object(part, here):
                continue
            elif name == "instances":
                self._instances(_as_tree(part), here)
            elif field.struct is not None:
                self._attributes(field, field.struct, _as_tree(part), here)

    def _attributes(self, field: Field, struct: Struct, rules: Tree, path: str) -> None:
        for name, rule in rules.items():
            member = ATTRIBUTE_NAMES.get((field.rest, name))
            if member is None:
                self.rules(struct, {name: rule}, path)
            elif rule is not None and self._is_object(rule, join(path, name)):
                own = _Rule(self, struct, fields_by_name(struct)[member], join(path, name), RuleClass.BOOLEAN)
                own.check(_as_tree(rule))

    def _instances(self, rule: Tree, path: str) -> None:
        for name, value in rule.items():
            here = join(path, name)
            if name == SOURCE or value is None:
                continue
            if name not in INSTANCE_KEYWORDS:
                self.report(here, f"is not a rule for items{near(name, INSTANCE_KEYWORDS)}")
            elif name == "canAdd" and not isinstance(value, bool):
                self.report(here, f"is {type_name(value)}; true or false is expected")
            elif name == "locked" and not (isinstance(value, list) and all(isinstance(key, str) for key in value)):
                self.report(here, "must be a list of the keys of items")


def _as_tree(value: object) -> Tree:
    return value if isinstance(value, dict) else {}


class _Rule:
    """The rule of one field."""

    def __init__(
        self, checker: _Checker, struct: Struct, field: Field, path: str, form: RuleClass | None = None
    ) -> None:
        self.checker = checker
        self.struct = struct
        self.field = field
        self.form = form or rule_class(field)
        self.path = path
        self.name = path.rpartition(".")[2]

    def check(self, rule: Tree) -> None:
        for name, value in rule.items():
            here = join(self.path, name)
            if name == SOURCE or value is None:
                continue
            if name not in KEYWORDS[self.form]:
                keywords = ", ".join(KEYWORDS[self.form])
                details = f"does not fit {self.name}, which is of type {self.form}; rules that fit are {keywords}"
                self.checker.report(here, details)
            elif name in ("required", "canEdit", "blocked"):
                if not isinstance(value, bool):
                    self.checker.report(here, f"is {type_name(value)}; true or false is expected")
            elif name == "options":
                self._options(value, here)
            elif name == "defaultFrom":
                self._default_from(value, here)
            else:
                self._bound(name, value, here)
        low, high = self._number(rule.get("min")), self._number(rule.get("max"))
        if low is not None and high is not None and low > high:
            self.checker.report(join(self.path, "min"), f"is {rule['min']}, which is above max, {rule['max']}")

    def _number(self, value: object) -> float | None:
        if isinstance(value, bool):
            return None
        if self.form is RuleClass.QUANTITY:
            try:
                return float(parse(value)) if isinstance(value, str) else None
            except BadQuantity:
                return None
        if self.form is RuleClass.INTEGER:
            return value if isinstance(value, int) else None
        return value if isinstance(value, int | float) else None

    def _bound(self, name: str, value: object, path: str) -> None:
        number = self._number(value)
        if number is None:
            expected = {RuleClass.QUANTITY: "a quantity such as 20M or 1Gi", RuleClass.INTEGER: "an integer"}
            self.checker.report(path, f"is {value!r}; {expected.get(self.form, 'a number')} is expected")
        elif name == "step" and number <= 0:
            self.checker.report(path, f"is {value}; it must be above 0")

    def _options(self, value: object, path: str) -> None:
        if not isinstance(value, list) or not value:
            self.checker.report(path, "must be a list of at least one {value, displayed}")
            return
        for number, option in enumerate(value):
            here = f"{path}[{number}]"
            if not isinstance(option, dict) or option.get("value") is None:
                self.checker.report(here, "must be an object with a value")
                continue
            given = [option["value"]] if self.form is RuleClass.ARRAY else option["value"]
            for flaw in find_violations(self.struct, {self.field.rest: given}, ""):
                if flaw.path.startswith(self.field.rest):
                    self.checker.report(join(here, "value"), flaw.details)

    def _default_from(self, value: object, path: str) -> None:
        if not isinstance(value, dict):
            self.checker.report(path, f"is {type_name(value)}; an object with a field is expected")
            return
        fields = fields_by_name(self.struct)
        name = value.get("field")
        other = fields.get(name) if isinstance(name, str) else None
        if other is None:
            self.checker.report(join(path, "field"), f"is not a field of the same section{near(str(name), fields)}")
        elif (rule_class(other) is RuleClass.QUANTITY) is not (self.form is RuleClass.QUANTITY):
            self.checker.report(join(path, "field"), f"is {name}, which has another type than {self.field.rest}")
        factor = value.get("factor")
        if factor is not None and (isinstance(factor, bool) or not isinstance(factor, int | float) or factor <= 0):
            self.checker.report(join(path, "factor"), "must be a number above 0")


def explain_rules(type: PolicyType, path: str) -> str:
    """Which rules fit a field, in one line; raises KeyError with the name that is not known and what it can be."""
    sections = {section.name: section.struct for section in type.sections}
    struct, form, names = sections.get(""), RuleClass.SECTION, path.split(".")
    if struct is None:
        _check_known(names[0], sections)
        struct = sections[names.pop(0)]
    parent = ""
    for name in names:
        if struct is None:
            raise KeyError(name, "")
        if form is RuleClass.ITEMS and name == "attributes":
            continue
        renamed = ATTRIBUTE_NAMES.get((parent, name))
        _check_known(renamed or name, fields_by_name(struct))
        field = fields_by_name(struct)[renamed or name]
        struct, form, parent = field.struct, RuleClass.BOOLEAN if renamed else rule_class(field), name
    if form is RuleClass.SECTION:
        return f"{path} is a section: its members have rules of their own."
    if form is RuleClass.ITEMS:
        allowed = "instances" if parent in INSTANCES_ONLY else "instances, attributes"
        return f"{path} is a list of items: {allowed}. Rules for instances are {', '.join(INSTANCE_KEYWORDS)}."
    return f"{path} is of type {form}: {', '.join(KEYWORDS[form])}."


def _check_known(name: str, known: Mapping[str, object]) -> None:
    if name not in known:
        raise KeyError(name, near(name, known))
