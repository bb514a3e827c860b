"""The declarations as OpenAPI 3.0 schemas, for the API's own description.

`api` joins them with its operations. They contain the rules and the descriptions of each property.
"""

from typing import Any

from msgspec import inspect

from fairlead.formats.rest.requests import ChangeRequest, object_type, request_type
from fairlead.kinds.kind import Kind
from fairlead.model.spec.fields import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, Field, fields_of

Schema = dict[str, Any]
_FORMAT_BOUNDS = {"int32": (INT32_MIN, INT32_MAX), "int64": (INT64_MIN, INT64_MAX)}


def schemas(kind: Kind) -> dict[str, Schema]:
    """The components of a kind: its creation request, its object, and every object inside them, by name."""
    components: dict[str, Schema] = {}
    components[f"{kind.title}CreationRequest"] = struct_schema(request_type(kind), False, components)
    if kind.changes is not None:
        request = ChangeRequest[kind.changes]  # type: ignore[name-defined]  # made at run time
        components[f"{kind.title}UpdateRequest"] = struct_schema(request, False, components)
    components[kind.title] = struct_schema(object_type(kind), False, components)
    return components


def struct_schema(struct: type, nullable: bool, components: dict[str, Schema]) -> Schema:
    """The schema of one object; the objects inside it are added to `components` by name."""
    fields = fields_of(struct)
    schema: Schema = {"type": "object", "properties": {field.rest: _property(field, components) for field in fields}}
    required = [field.rest for field in fields if field.required]
    if required:
        schema["required"] = required
    if inspect.type_info(struct).forbid_unknown_fields:  # type: ignore[attr-defined]  # of structs
        schema["additionalProperties"] = False
    if nullable:
        schema["nullable"] = True
    if struct.__doc__ and not struct.__doc__.startswith(f"{getattr(struct, '__name__', '')}("):
        schema["description"] = struct.__doc__.splitlines()[0]
    return schema


def _reference(struct: type, nullable: bool, components: dict[str, Schema]) -> Schema:
    """A reference to the object's component. The component itself allows null: nothing beside a reference counts."""
    name = struct.__name__.removesuffix("Spec") + ("Spec" if nullable else "SpecValue")
    if name not in components:
        components[name] = {}
        components[name] = struct_schema(struct, nullable, components)
    return {"$ref": f"#/components/schemas/{name}"}


def _property(field: Field, components: dict[str, Schema]) -> Schema:
    if field.struct is not None and not field.is_list:
        # The description wraps the reference: beside it, it would be ignored.
        return {"allOf": [_reference(field.struct, field.nullable, components)], "description": describe(field)}
    schema = _shape(field.shape, field, components)
    schema.update({key: value for key, value in field.schema.items() if key != "items"})
    if schema.get("pattern", "") is None:
        del schema["pattern"]
    if field.nullable:
        schema["nullable"] = True
    if field.about.origin == "contract":
        schema["default"] = field.about.default
    schema["description"] = describe(field)
    return schema


def describe(field: Field) -> str:
    """The meaning of a property, its unit and its default, in one text."""
    about = field.about
    sentences = [about.text]
    if about.unit:
        sentences.append(f"In {about.unit}.")
    if about.mandatory and not field.required:
        sentences.append("Required.")
    if about.default_text:
        sentences.append(f"Default: {about.default_text}.")
    elif about.default is not None:
        sentences.append(
            f"Default: {str(about.default).lower() if isinstance(about.default, bool) else about.default}."
        )
    if about.surface != "contract":
        sentences.append("From an older version of the API.")
    return " ".join(sentences)


def _shape(shape: object, field: Field, components: dict[str, Schema]) -> Schema:
    if isinstance(shape, inspect.VarTupleType):
        schema: Schema = {"type": "array", "items": _item(field, components)}
        return schema if shape.max_length is None else {**schema, "maxItems": shape.max_length}
    if isinstance(shape, inspect.BoolType):
        return {"type": "boolean"}
    if isinstance(shape, inspect.IntType):
        return {"type": "integer", **_bounds(shape, str(field.schema.get("format", "")))}
    if isinstance(shape, inspect.FloatType):
        return {"type": "number", **_bounds(shape, "")}
    if isinstance(shape, inspect.LiteralType):
        return {"type": "string", "enum": list(shape.values)}
    if isinstance(shape, inspect.EnumType):
        return {"type": "string", "enum": [member.value for member in shape.cls]}
    if isinstance(shape, inspect.StrType):
        bounds = {"minLength": shape.min_length, "maxLength": shape.max_length, "pattern": shape.pattern}
        return {"type": "string", **{key: value for key, value in bounds.items() if value is not None}}
    raise TypeError(f"{field.rest} is declared as {shape}, which has no schema")


def _item(field: Field, components: dict[str, Schema]) -> Schema:
    if field.struct is not None:
        return _reference(field.struct, field.item_nullable, components)
    schema = _shape(field.item, field, components)
    if field.item_nullable:
        schema["nullable"] = True
    return schema


def _bounds(shape: inspect.IntType | inspect.FloatType, form: str) -> Schema:
    lowest, highest = _FORMAT_BOUNDS.get(form, (None, None))
    bounds: Schema = {}
    if shape.ge is not None and shape.ge != lowest:
        bounds["minimum"] = shape.ge
    if shape.le is not None and shape.le != highest:
        bounds["maximum"] = shape.le
    return bounds
