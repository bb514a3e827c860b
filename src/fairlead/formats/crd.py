"""The custom resource definition of a kind, from the declarations that its YAML is read with.

A script writes them to `deploy/crds/`. Schemas are structural and carry no `default:`: the API server would store it,
and a stored default would win over a template; defaults are in the descriptions.
"""

from typing import Any

from msgspec import inspect

from fairlead.formats.custom_resource import RUNAI_GROUP, api_version
from fairlead.formats.explain import describe_type, render_default, render_description
from fairlead.formats.plain import Plain
from fairlead.formats.rest.openapi import struct_schema
from fairlead.formats.yaml.fields import ITEMS, MAP, PLAIN, YamlField, yaml_fields
from fairlead.kinds.kind import Kind

Schema = dict[str, Any]

_QUANTITY = r"^[+]?([0-9]+\.?[0-9]*|\.[0-9]+)(([eE][-+]?[0-9]+)|[numkKMGTPE]|[KMGTPE]i|[kKMGTP][iI]?B)?$"
_AMOUNTS = ("number", "quantity", "limit")
_INTEGER = r"^[+-]?[0-9]+$"
_ANY = "x-kubernetes-preserve-unknown-fields"
#: Members of our API's schemas that a definition cannot have.
_LEFT_OUT = ("allOf", "default", "additionalProperties")
#: The declarations refuse longer texts anyway; rules that compare need a bound.
_MAX_DIGITS = 63
_OWN = "has(self.baseWorkload)"
_NO_IMAGE = "image is required, here or in the baseWorkload"
_TEMPLATE = "(has(self.usage) && self.usage == 'Template')"


#: Rules that a schema cannot express: their fields, the rule, the message if it is violated. Of several rules with the
#: same message, the first one applies whose fields the kind has. Amounts have no type that a rule could compare.
_RULES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("name", "namePrefix"),
        f"{_TEMPLATE} || has(self.name) != has(self.namePrefix)",
        "exactly one of name and namePrefix is required",
    ),
    (
        ("image", "jupyter", "tensorboard"),
        f"{_TEMPLATE} || {_OWN} || has(self.image) || (has(self.jupyter) && self.jupyter.value) || "
        "(has(self.tensorboard) && self.tensorboard.value)",
        _NO_IMAGE,
    ),
    (("image",), f"{_TEMPLATE} || {_OWN} || has(self.image)", _NO_IMAGE),
    (
        ("parallelism", "completions"),
        f"{_OWN} || !has(self.parallelism) || "
        "int(self.parallelism.value) <= (has(self.completions) ? int(self.completions.value) : 1)",
        "parallelism is above completions",
    ),
    (
        ("gpu", "gpuMemory"),
        "!has(self.gpu) || !has(self.gpuMemory)",
        "gpu and gpuMemory both request a fraction of a device; use one of them",
    ),
    *(
        (
            (name, "podAffinity"),
            f"{_OWN} || !has(self.{name}) || (has(self.podAffinity) && self.podAffinity.value)",
            f"{name} has an effect only with podAffinity",
        )
        for name in ("podAffinitySchedulingRule", "podAffinityTopology")
    ),
    (
        ("minScale", "maxScale"),
        "!has(self.minScale) || !has(self.maxScale) || int(self.minScale.value) <= int(self.maxScale.value)",
        "minScale is above maxScale",
    ),
    (
        ("metricName", "metric"),
        f"{_OWN} || !has(self.metricName) || (has(self.metric) && self.metric.value == 'custom')",
        "metricName has an effect only with the metric custom",
    ),
    (("tty", "stdin"), f"{_OWN} || !has(self.tty) || !self.tty.value || has(self.stdin)", "tty needs stdin"),
)


def plural_of(kind: Kind) -> str:
    """The plural name in paths."""
    return f"{kind.resource.lower()}s"


def render_crd(kind: Kind, group: str = RUNAI_GROUP) -> Plain:
    """The definition as plain data."""
    names = {
        "kind": kind.resource,
        "plural": plural_of(kind),
        "shortNames": [f"{kind.letter.lower() or 'di'}wl"],
        "categories": ["runai", "workloads"],
    }
    return render_definition(names, api_version(kind, group), _columns(kind), _root(kind))


def render_definition(names: Schema, api: str, columns: list[Schema], root: Schema) -> Plain:
    """The definition of a kind with these names in a group and version."""
    group, _, version = api.partition("/")
    kind, plural = names["kind"], names["plural"]
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": root},
    }
    names_of_kind = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower(), **names}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "labels": {"app.kubernetes.io/managed-by": "fairlead"}},
        "spec": {"group": group, "scope": "Namespaced", "names": names_of_kind, "versions": [served]},
    }


def _rest_spec(kind: Kind) -> Schema:
    """The REST spec in one schema: definitions know neither references nor closed objects."""
    components: dict[str, Schema] = {}
    schema = _inlined(struct_schema(kind.spec, False, components), components)
    active = {"type": "boolean", "description": "Whether it should run. Default: true."}
    return {**schema, "description": "What to run, and how.", "properties": {"active": active, **schema["properties"]}}


def _inlined(schema: Schema, components: dict[str, Schema]) -> Schema:
    if "$ref" in schema:
        return _inlined(components[schema["$ref"].rpartition("/")[2]], components)
    whole = {name: value for name, value in schema.items() if name not in _LEFT_OUT}
    for inner in schema.get("allOf", ()):
        whole = {**_inlined(inner, components), **whole}
    if "properties" in whole:
        whole["properties"] = {name: _inlined(one, components) for name, one in whole["properties"].items()}
    if "items" in whole:
        whole["items"] = _inlined(whole["items"], components)
    return whole


def _columns(kind: Kind) -> list[Schema]:
    columns: list[Schema] = [
        {"name": "Status", "type": "string", "jsonPath": ".status.phase"},
        {"name": "Project", "type": "string", "jsonPath": ".status.project"},
        {"name": "Workload", "type": "string", "jsonPath": ".spec.name.value", "priority": 1},
        {"name": "GPU", "type": "string", "jsonPath": ".status.requestedGpu"},
        {"name": "Image", "type": "string", "jsonPath": ".spec.image.value", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "Message", "type": "string", "jsonPath": ".status.message"},
    ]
    known = {f".spec.{name}.value" for name in yaml_fields(kind)} if kind.letter else set()
    return [column for column in columns if not column["jsonPath"].startswith(".spec.") or column["jsonPath"] in known]


def _root(kind: Kind) -> Schema:
    spec = _yaml_spec(kind) if kind.letter else _rest_spec(kind)
    return root_schema(f"A workload of type {kind.title}.", spec, _STATUS)


def root_schema(description: str, spec: Schema, status: Schema) -> Schema:
    return {
        "type": "object",
        "description": description,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    }


def _yaml_spec(kind: Kind) -> Schema:
    properties: Schema = {}
    for field in yaml_fields(kind).values():
        if kind.letter in field.kinds:
            properties[field.name] = _field(field)
            for other in field.also:
                properties[other] = {**_field(field), "description": f"Another spelling of {field.name}."}
    return {
        "type": "object",
        "description": "What to run, and how.",
        "properties": properties,
        "x-kubernetes-validations": _rules(set(properties)),
    }


def _rules(known: set[str]) -> list[Schema]:
    rules: dict[str, str] = {}
    for names, rule, message in _RULES:
        if set(names) <= known:
            rules.setdefault(message, rule)
    return [{"rule": rule, "message": message} for message, rule in rules.items()]


_CONDITION: Schema = {
    "type": "object",
    "required": ["type", "status"],
    "properties": {
        "type": {"type": "string"},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "reason": {"type": "string"},
        "message": {"type": "string"},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
    },
}
CONDITIONS: Schema = {
    "type": "array",
    "items": _CONDITION,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}
_STATUS: Schema = {
    "type": "object",
    "description": "The status of the workload, written by the system.",
    "x-kubernetes-preserve-unknown-fields": True,
    "properties": {
        "phase": {"type": "string", "description": "The phase of the workload."},
        "message": {"type": "string", "description": "Why it is in this phase."},
        "workloadId": {"type": "string", "description": "The workload's id."},
        "project": {"type": "string", "description": "The workload's project."},
        "runningPods": {"type": "integer", "description": "The number of running pods."},
        "requestedGpu": {"type": "string", "description": "The number of GPUs that all its pods request."},
        "allocatedGpu": {"type": "string", "description": "The number of GPUs that it uses."},
        "observedGeneration": {"type": "integer", "format": "int64", "description": "The spec that was last read."},
        "conditions": CONDITIONS,
    },
}


def described(field: YamlField) -> str:
    sentences = [render_description(field.about)]
    if field.type in _AMOUNTS:
        # `kubectl explain` has no type to show.
        sentences.append(f"Type: {describe_type(field)}, as a number or as text.")
    default = render_default(field.about)
    if default:
        sentences.append(f"Default: {default}.")
    if field.is_system:
        sentences.append("Set by the system; users must not set it.")
    return " ".join(sentences)


def _field(field: YamlField) -> Schema:
    """The complete field with its wrapper."""
    description = described(field)
    if field.form is PLAIN:
        return {**value_schema(field), "description": description}
    if field.form is ITEMS or field.form is MAP:
        item = {"type": "object", "required": ["value"], "properties": {"value": item_schema(field)}}
        items = {"type": "object", "description": "Items by key.", "additionalProperties": item}
        return {"type": "object", "description": description, "required": ["items"], "properties": {"items": items}}
    value = {**value_schema(field), "description": description}
    return {"type": "object", "description": description, "required": ["value"], "properties": {"value": value}}


def item_schema(field: YamlField) -> Schema:
    if field.form is MAP:
        return {"x-kubernetes-int-or-string": True, "description": "The text that belongs to the key."}
    if field.member:
        inner = {"type": "string", "enum": list(field.choices)} if field.choices else {"type": "string"}
        return {"type": "object", "required": [field.member], "properties": {field.member: inner}}
    properties: Schema = {}
    for member in field.members:
        for name in (member.name, *member.also):
            properties[name] = {**value_schema(member, is_member=True), "description": described(member)}
    # The member may be given in another spelling.
    required = [member.name for member in field.members if member.about.mandatory and not member.also]
    schema: Schema = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def value_schema(field: YamlField, is_member: bool = False) -> Schema:
    if field.type in ("boolean", "mark"):
        return {"type": "boolean"}
    if field.type == "integer":
        return {"x-kubernetes-int-or-string": True, "pattern": _INTEGER, "maxLength": 20, **_bounds(field.shape)}
    if field.type in _AMOUNTS:
        # No type of a definition accepts both 0.5 and "0.5"; a pattern counts for texts, a minimum for numbers.
        return {_ANY: True, "pattern": _QUANTITY, "maxLength": _MAX_DIGITS, "minimum": 0}
    if field.type == "object":
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if field.type == "list" and is_member:
        return {"type": "array", "items": {"type": "string"}}
    if field.choices:
        return {"type": "string", "enum": [*field.choices, *_small(field.choices), *field.choice_aliases]}
    return {"type": "string", **_lengths(field.shape)}


def _small(choices: tuple[str, ...]) -> list[str]:
    """Other spellings that are accepted too: a lower-case first letter, all lower case, all upper case."""
    spelled = (text for choice in choices for text in (choice[:1].lower() + choice[1:], choice.lower(), choice.upper()))
    return [text for text in dict.fromkeys(spelled) if text not in choices]


def _bounds(shape: object) -> Schema:
    if not isinstance(shape, inspect.IntType):
        return {}
    bounds = {"minimum": shape.ge, "maximum": shape.le}
    return {name: bound for name, bound in bounds.items() if bound is not None and abs(bound) < 2**63 - 1}


def _lengths(shape: object) -> Schema:
    if not isinstance(shape, inspect.StrType):
        return {}
    bounds = {"minLength": shape.min_length, "maxLength": shape.max_length}
    return {name: length for name, length in bounds.items() if length is not None}
