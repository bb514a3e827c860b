"""Checks answers against the published contract: the response schema of an operation, for OpenAPI 3.0's `nullable`."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

DATA = Path(__file__).parents[1] / "data"
CONTRACTS = (
    "workloads-2.24.contract.json",
    "kinds-2.24.contract.json",
    "neighbours-2.24.contract.json",
    "telemetry-2.24.contract.json",
)


@cache
def load_contract(name: str) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads((DATA / name).read_text())
    return decoded


def _resolved(document: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        target: Any = document
        for part in node["$ref"][2:].split("/"):
            target = target[part]
        node = target
    return node


def _as_json_schema(node: Any) -> Any:
    """`nullable: true` allows null beside whatever else is said."""
    if isinstance(node, list):
        return [_as_json_schema(part) for part in node]
    if not isinstance(node, dict):
        return node
    plain = {name: _as_json_schema(part) for name, part in node.items() if name not in ("nullable", "example")}
    return {"anyOf": [{"type": "null"}, plain]} if node.get("nullable") is True else plain


@cache
def _validator(contract: str, method: str, path: str, status: str) -> Any:
    document = load_contract(contract)
    answer = _resolved(document, document["paths"][path][method]["responses"][status])
    schema = _as_json_schema(answer["content"]["application/json"]["schema"])
    schemas = _as_json_schema(document["components"]["schemas"])
    return jsonschema_rs.validator_for({**schema, "components": {"schemas": schemas}}, validate_formats=True)


def find_disagreements(method: str, path: str, status: int, body: Any) -> list[str]:
    """What the contract has to say against this answer; an undeclared status is one thing."""
    for contract in CONTRACTS:
        operations = load_contract(contract)["paths"].get(path, {})
        if method not in operations:
            continue
        if str(status) not in operations[method]["responses"]:
            return [f"{method} {path} does not declare {status}"]
        errors = _validator(contract, method, path, str(status)).iter_errors(body)
        return [f"{'/'.join(map(str, error.instance_path))}: {error.message}" for error in errors]
    return [f"no contract has {method} {path}"]
