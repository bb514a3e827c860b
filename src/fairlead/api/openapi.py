"""The API's description (OpenAPI 3.0), generated from the declared operations and their types; and a page to read it.

Only declared operations are served, so the description of the API is complete.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any

import msgspec
from starlette.responses import Response

from fairlead import __version__
from fairlead.api.http.errors import ADDED_STATUSES, Error
from fairlead.api.http.operation import AnyOf, Call, Inline, Operation, Parameter
from fairlead.formats.rest.openapi import schemas, struct_schema
from fairlead.kinds import KINDS

#: Plain JSON.
JsonObject = dict[str, Any]

_REFERENCE = "#/components/schemas/{name}"
_ADDITION = "An addition of Fairlead; Run:ai has no such path."
_WORDS = {
    200: "Success.",
    201: "Created.",
    202: "Accepted; it is being carried out.",
    204: "Success; there is no body.",
    207: "Partial result: metrics that are not measured here have no values.",
    400: "The request is not valid; every violation is listed.",
    401: "The request has no valid token.",
    403: "The caller may not do this.",
    404: "No record has that id.",
    405: "The path does not support this method.",
    409: "The name is taken.",
    410: "The revision is no longer kept.",
    412: "It is still in use.",
    413: "The body is too large.",
    415: "The body has an unsupported content type.",
    429: "Too many requests or open workloads; Retry-After says when to try again.",
    500: "Internal server error; the server's log has details under the request id.",
    503: "The database is unavailable or the server is stopping; try again later.",
}


def describe(operations: Sequence[Operation]) -> JsonObject:
    """The whole description as plain data."""
    components = _components(operations)
    paths: dict[str, JsonObject] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.0.3",
        "info": {
            "title": "Fairlead",
            "version": __version__,
            "description": "Submits, watches and deletes workloads. Paths, parameters and fields are those of NVIDIA "
            "Run:ai 2.24, except those marked `x-fairlead-addition`.",
            "license": {"name": "Apache-2.0"},
        },
        "security": [{"bearerAuth": []}],
        "tags": [{"name": tag} for tag in dict.fromkeys(operation.tag for operation in operations)],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearerAuth": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
            "schemas": components,
        },
    }


def _components(operations: Iterable[Operation]) -> JsonObject:
    types = {kind: None for operation in operations for kind in _types(operation)}
    _, definitions = msgspec.json.schema_components(tuple(types), ref_template=_REFERENCE)
    components: JsonObject = {name: as_openapi(schema) for name, schema in definitions.items()}
    for kind in KINDS.values():
        for name, schema in schemas(kind).items():
            components.setdefault(name, schema)
    return dict(sorted(components.items()))


def _types(operation: Operation) -> list[object]:
    shapes: list[object] = [each.struct if isinstance(each, AnyOf) else each for each in operation.answers.values()]
    if operation.body is not None:
        shapes.append(operation.body.schema)
    return [Error, *(shape for shape in shapes if shape is not None and not isinstance(shape, str | dict | Inline))]


def _schema(shape: object) -> JsonObject:
    if isinstance(shape, str):
        return {"$ref": _REFERENCE.format(name=shape)}
    if isinstance(shape, dict):
        return shape
    if isinstance(shape, AnyOf):
        return {"anyOf": [_schema(shape.name), _schema(shape.struct)]}
    if isinstance(shape, Inline):
        return _inline(shape.make())
    (schema,), _ = msgspec.json.schema_components((shape,), ref_template=_REFERENCE)
    described: JsonObject = as_openapi(schema)
    return described


def _inline(struct: type) -> JsonObject:
    """The schema of a struct without references."""
    definitions: JsonObject = {}

    def resolved(node: object) -> Any:
        if isinstance(node, list):
            return [resolved(part) for part in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return resolved(definitions[node["$ref"].rpartition("/")[2]])
        return {name: resolved(part) for name, part in node.items()}

    schema: JsonObject = resolved(struct_schema(struct, False, definitions))
    return schema


def as_openapi(schema: object) -> Any:
    """A JSON schema as OpenAPI 3.0 has it: `nullable` instead of a null type, and no constants."""
    if isinstance(schema, list):
        return [as_openapi(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    converted = {name: as_openapi(part) for name, part in schema.items()}
    if "const" in converted:
        converted["enum"] = [converted.pop("const")]
    if None in converted.get("enum", ()):
        converted["enum"] = [*(value for value in converted["enum"] if value is not None), None]
        converted |= {"type": "string", "nullable": True}
    elif "enum" in converted:
        converted["type"] = "string"
    options = converted.get("anyOf")
    if isinstance(options, list) and {"type": "null"} in options:
        rest = [option for option in options if option != {"type": "null"}]
        del converted["anyOf"]
        converted |= {"nullable": True} | (rest[0] if len(rest) == 1 and "$ref" not in rest[0] else {"anyOf": rest})
    return converted


def _operation(operation: Operation) -> JsonObject:
    described: JsonObject = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "responses": {str(status): _answer(operation, status) for status in sorted(_statuses(operation))},
    }
    if operation.is_addition:
        described["x-fairlead-addition"] = True
        described["description"] = _ADDITION
    if operation.is_deprecated:
        described["deprecated"] = True
    if operation.is_public:
        described["security"] = []
    if operation.parameters:
        described["parameters"] = [_parameter(parameter) for parameter in operation.parameters]
    if operation.body is not None:
        described["requestBody"] = {
            "required": operation.body.required,
            "content": {operation.body.content_type: {"schema": _schema(operation.body.schema)}},
        }
    return described


def _statuses(operation: Operation) -> set[int]:
    """The declared statuses, and those of requests that fail before they reach the operation."""
    added = set(ADDED_STATUSES)
    if operation.body is None:
        added -= {413, 415}
    if operation.is_public and operation.body is None:
        added -= {400, 429}
    return set(operation.answers) | added


def _answer(operation: Operation, status: int) -> JsonObject:
    shape = operation.answers.get(status, Error)
    if shape is None:
        return {"description": _WORDS[status]}
    content_type = operation.content_type if status < 300 else "application/json"
    answer: JsonObject = {
        "description": _WORDS[status],
        "content": {content_type: {"schema": _schema(shape)}},
    }
    if content_type == "text/event-stream":
        # The data of each message is such an object; the stream as a whole is text.
        answer["content"] = {content_type: {"schema": {"type": "string"}, "x-message": _schema(shape)}}
    return answer


def _parameter(parameter: Parameter) -> JsonObject:
    described: JsonObject = {"name": parameter.name, "in": parameter.place, "schema": parameter.schema}
    if parameter.description:
        described["description"] = parameter.description
    if parameter.place == "path":
        described["required"] = True
    if parameter.is_addition:
        described["x-fairlead-addition"] = True
    if parameter.schema.get("type") == "array":
        described |= {"style": "form", "explode": False}
    return described


@cache
def page() -> bytes:
    """The page that shows the description; it loads nothing from other hosts."""
    return resources.files("fairlead.api").joinpath("docs.html").read_bytes()


def description_operations(others: Sequence[Operation]) -> tuple[Operation, ...]:
    """The two operations that show the description; they are part of it."""
    rendered: list[bytes] = []

    async def get_description(call: Call) -> Response:
        if not rendered:
            described = [one for one in (*others, *own) if not one.is_page]
            rendered.append(msgspec.json.encode(describe(described)))
        return Response(rendered[0], 200, None, "application/json")

    async def get_page(call: Call) -> Response:
        policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
        headers = {"content-security-policy": policy, "x-content-type-options": "nosniff"}
        return Response(page(), 200, headers, "text/html")

    own = (
        Operation(
            method="GET",
            path="/api/openapi.json",
            id="get_description",
            tag="Operating",
            summary="Get this API description",
            run=get_description,
            answers={200: {"type": "object"}},
            is_public=True,
            is_addition=True,
        ),
        Operation(
            method="GET",
            path="/api/docs",
            id="get_page",
            tag="Operating",
            summary="Show this API description as a web page",
            run=get_page,
            answers={200: {"type": "string"}},
            content_type="text/html",
            is_public=True,
            is_addition=True,
        ),
    )
    return own
