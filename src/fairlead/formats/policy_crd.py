"""The custom resource definitions of policies in the older form, such as `TrainingPolicy`.

Their fields are those of workload YAML, each with a value and rules; `legacy_policies.py` reads such objects.
"""

from fairlead.formats.crd import (
    CONDITIONS,
    Schema,
    described,
    item_schema,
    render_definition,
    root_schema,
    value_schema,
)
from fairlead.formats.custom_resource import RUNAI_GROUP, api_version
from fairlead.formats.legacy_policies import LEGACY_KINDS
from fairlead.formats.plain import Plain
from fairlead.formats.yaml.fields import ITEMS, MAP, PLAIN, YamlField, yaml_fields
from fairlead.kinds.kind import Kind

_ANYTHING: Schema = {"x-kubernetes-preserve-unknown-fields": True}
_FLAG: Schema = {"type": "boolean"}
#: The rules of one value, without descriptions: each field repeats them. A bound is a number or a quantity, and no type
#: of a definition accepts both.
_RULES: Schema = {
    "type": "object",
    "properties": {
        "required": _FLAG,
        "canEdit": _FLAG,
        "min": _ANYTHING,
        "max": _ANYTHING,
        "options": {"type": "array", "items": _ANYTHING},
    },
}
_LIST_RULES: Schema = {"type": "object", "properties": dict.fromkeys(("canAdd", "required", "canEdit"), _FLAG)}
_ITEM_RULES: Schema = {"type": "object", "properties": dict.fromkeys(("canRemove", "canEdit"), _FLAG)}
_STATUS: Schema = {
    "type": "object",
    "description": "Whether the policy is in force, written by the system.",
    "properties": {
        "phase": {"type": "string", "description": "Applied or Failed."},
        "message": {"type": "string", "description": "Why it is in this phase."},
        "scope": {"type": "string", "description": "The scope for which it is in force."},
        "policyId": {"type": "string", "description": "The id of the policy that was made of it."},
        "policyVersion": {"type": "integer", "description": "The version of that policy that this object wrote."},
        "losses": {
            "type": "array",
            "items": {"type": "string"},
            "description": "What today's policies cannot express, with its path.",
        },
        "observedGeneration": {"type": "integer", "format": "int64", "description": "The spec that was last read."},
        "conditions": CONDITIONS,
    },
}
_COLUMNS: list[Schema] = [
    {"name": "Status", "type": "string", "jsonPath": ".status.phase"},
    {"name": "Scope", "type": "string", "jsonPath": ".status.scope"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {"name": "Message", "type": "string", "jsonPath": ".status.message"},
]


def policy_plural(name: str) -> str:
    """The plural of a kind of policy, as in paths."""
    return f"{name.lower().removesuffix('y')}ies"


def policy_api_version(name: str, group: str = RUNAI_GROUP) -> str:
    return api_version(LEGACY_KINDS[name], group)


def render_policy_crd(name: str, group: str = RUNAI_GROUP) -> Plain:
    """The definition of a kind of policy as plain data."""
    kind = LEGACY_KINDS[name]
    names = {"kind": name, "plural": policy_plural(name), "categories": ["runai"]}
    description = f"A policy for workloads of type {kind.title}, in the older form."
    root = root_schema(description, _spec(kind), _STATUS)
    return render_definition(names, policy_api_version(name, group), _COLUMNS, root)


def _spec(kind: Kind) -> Schema:
    properties: Schema = {}
    for field in yaml_fields(kind).values():
        if kind.letter in field.kinds and field.form != PLAIN and not field.is_system:
            for name in (field.name, *field.also):
                properties[name] = _field(field)
    return {"type": "object", "description": "Presets and rules by field.", "properties": properties}


def _field(field: YamlField) -> Schema:
    description = described(field)
    if field.form not in (ITEMS, MAP):
        value = {**value_schema(field), "description": "The default."}
        return {"type": "object", "description": description, "properties": {"value": value, "rules": _RULES}}
    # The item DEFAULTS has only the attributes that it presets.
    value = {name: part for name, part in item_schema(field).items() if name != "required"}
    item = {"type": "object", "properties": {"value": value, "rules": _ITEM_RULES}}
    return {
        "type": "object",
        "description": description,
        "properties": {
            "items": {"type": "object", "description": "Default items by key.", "additionalProperties": item},
            "rules": _LIST_RULES,
            "itemRules": {"type": "object", "description": "Rules by member of an item.", **_ANYTHING},
        },
    }
