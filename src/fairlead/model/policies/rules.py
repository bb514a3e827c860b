"""Which rules of a policy fit which field. It follows from the field's declaration.

`formats/policies.py` refuses other rules when a policy is written; `admission/policies` applies them.
"""

from enum import StrEnum
from functools import cache

from fairlead.model.spec.fields import Field, Struct, fields_of


class RuleClass(StrEnum):
    """The types of fields that policies tell apart."""

    BOOLEAN = "boolean"
    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    QUANTITY = "quantity"
    ARRAY = "array"
    #: A tree that only a whole value can replace.
    ARBITRARY = "arbitrary"
    #: A list whose items have a key: rules for its instances, and for the attributes of each.
    ITEMS = "items"
    #: An object whose members have rules of their own.
    SECTION = "section"


#: The keywords that every rule of a single value may have.
_COMMON = ("required", "canEdit", "blocked")
_NUMERIC = (*_COMMON, "min", "max", "defaultFrom")
KEYWORDS: dict[RuleClass, tuple[str, ...]] = {
    RuleClass.BOOLEAN: _COMMON,
    RuleClass.ARBITRARY: _COMMON,
    RuleClass.TEXT: (*_COMMON, "options"),
    RuleClass.ARRAY: (*_COMMON, "options"),
    RuleClass.QUANTITY: (*_NUMERIC, "options"),
    RuleClass.INTEGER: (*_NUMERIC, "step"),
    RuleClass.NUMBER: (*_NUMERIC, "step"),
}
#: The keywords of the rule for a list's instances.
INSTANCE_KEYWORDS = ("canAdd", "locked")
#: Where a rule of an effective policy comes from. It is ignored when it is sent back.
SOURCE = "sourceOfRule"
#: Lists whose items have no rules for attributes.
INSTANCES_ONLY = frozenset({"annotations", "labels", "environmentVariables"})
#: Attributes that policies have under another name: (list, name in policies) → the member of its items. All have the
#: rules of a boolean: the first two ask whether the user chooses a value themselves.
ATTRIBUTE_NAMES = {
    ("exposedUrls", "customUrl"): "url",
    ("ports", "customExternalPort"): "external",
    ("imagePullSecrets", "userCredentials"): "userCredential",
}

_CLASSES = {"boolean": RuleClass.BOOLEAN, "integer": RuleClass.INTEGER, "number": RuleClass.NUMBER}


def rule_class(field: Field) -> RuleClass:
    if field.is_list:
        return RuleClass.ITEMS if field.about.key else RuleClass.ARRAY
    if field.struct is not None:
        members = fields_of(field.struct)
        is_tree = all(member.is_list and not member.about.key for member in members)
        return RuleClass.ARBITRARY if is_tree else RuleClass.SECTION
    if field.is_quantity:
        return RuleClass.QUANTITY
    return _CLASSES.get(field.type_word, RuleClass.TEXT)


@cache
def rule_classes(struct: Struct) -> dict[str, RuleClass]:
    """By the name of each field; in the order of declaration."""
    return {field.rest: rule_class(field) for field in fields_of(struct)}


@cache
def fields_by_name(struct: Struct) -> dict[str, Field]:
    return {field.rest: field for field in fields_of(struct)}
