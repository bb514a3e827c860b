"""Renders the reference pages of the REST API and the command line from what the program itself declares: the API
description and the command table. `build_docs.py` puts them into the documentation.
"""

import asyncio
import importlib
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

from fairlead.api.application import make_application
from fairlead.cli.command import Command
from fairlead.cli.help import render_command, render_exit_codes, render_overview
from fairlead.cli.nouns import NOUNS
from fairlead.client.kinds import load_kinds

METHODS = ("get", "post", "put", "patch", "delete")


def render_cli() -> str:
    kinds = load_kinds()
    lines = [
        "# Command reference",
        "",
        "Every command, as `fairlead COMMAND --help` shows it.",
        "",
        *fenced(render_overview(NOUNS, kinds)),
    ]
    for kind in kinds.values():
        commands = importlib.import_module("fairlead.cli.workloads.kinds").commands(kind)
        lines += render_noun(kind.command, f"{kind.title}s", commands)
    for name, noun in NOUNS.items():
        if noun.group:
            commands = importlib.import_module(f"fairlead.cli.{noun.module}").commands(name)
            lines += render_noun((name,), noun.summary, commands)
    lines += ["## Exit codes", "", *fenced(render_exit_codes())]
    return "\n".join(lines).rstrip() + "\n"


def render_noun(words: tuple[str, ...], summary: str, commands: tuple[Command, ...]) -> list[str]:
    lines = [f"## {' '.join(words)}", "", f"{summary.rstrip('.')}.", ""]
    for command in commands:
        called = (*words, command.verb) if command.verb else words
        if command.verb:
            lines += [f"### {' '.join(called)}", ""]
        lines += fenced(render_command(called, command))
    return lines


def fenced(text: str) -> list[str]:
    return ["```", *text.rstrip().splitlines(), "```", ""]


async def load_description() -> dict[str, Any]:
    """What the application itself answers when asked for its description; that needs neither store nor accounts."""
    nothing = cast(Any, SimpleNamespace(url_registry=None, clock=None, draining=False))
    application = make_application(nothing, nothing)
    parts: list[bytes] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        parts.append(message.get("body", b""))

    scope = {"type": "http", "method": "GET", "path": "/api/openapi.json", "headers": [], "query_string": b""}
    await application(scope, receive, send)
    document: dict[str, Any] = json.loads(b"".join(parts))
    return document


def render_rest() -> str:
    document = asyncio.run(load_description())
    lines = ["# REST reference", "", document["info"].get("description", ""), ""]
    lines += ["A running server describes itself at `/api/openapi.json`, and shows that as a page at `/api/docs`.", ""]
    lines += ["## Errors", "", "All paths share them; each says below which of them it answers.", ""]
    lines += [*render_errors(document), ""]
    for tag, operations in group_by_tag(document).items():
        lines += [f"## Paths: {tag}", ""]
        for method, path, operation in operations:
            lines += render_operation(method, path, operation)
    lines += ["## Objects", ""]
    for name, schema in sorted(document.get("components", {}).get("schemas", {}).items()):
        lines += render_schema(name, schema)
    return "\n".join(lines).rstrip() + "\n"


def group_by_tag(document: dict[str, Any]) -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    groups: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                tag = (item[method].get("tags") or ["Other"])[0]
                groups.setdefault(tag, []).append((method.upper(), path, item[method]))
    return groups


def render_operation(method: str, path: str, operation: dict[str, Any]) -> list[str]:
    lines = [
        f"### {method} `{path}`",
        "",
        one_line(operation.get("summary") or operation.get("description", "")),
        "",
    ]
    if operation.get("summary") and operation.get("description"):
        lines[-1:] = ["", one_line(operation["description"]), ""]
    if parameters := operation.get("parameters"):
        lines += ["| parameter | in | type | |", "|---|---|---|---|"]
        lines += [
            f"| `{each['name']}` | {each['in']} | {cell(render_type(each.get('schema', {})))} | "
            f"{cell(each.get('description', ''))} |"
            for each in parameters
        ]
        lines.append("")
    if body := operation.get("requestBody"):
        lines += [f"Body: {', '.join(render_type(media.get('schema', {})) for media in body['content'].values())}", ""]
    lines += ["| status | |", "|---|---|"]
    plain = [status for status, answer in operation["responses"].items() if is_plain_error(answer)]
    lines += [
        f"| {status} | {cell(', '.join(filter(None, render_answer(answer))))} |"
        for status, answer in operation["responses"].items()
        if status not in plain
    ]
    if plain:
        lines.append(f"| {', '.join(plain)} | [Error](#error) |")
    return [*lines, ""]


def is_plain_error(answer: dict[str, Any]) -> bool:
    shapes = [media.get("schema", {}).get("$ref", "") for media in answer.get("content", {}).values()]
    return bool(shapes) and all(shape.endswith("/Error") for shape in shapes)


def render_errors(document: dict[str, Any]) -> list[str]:
    found: dict[str, str] = {}
    for item in document["paths"].values():
        for operation in item.values():
            for status, answer in operation["responses"].items():
                if is_plain_error(answer):
                    found.setdefault(status, one_line(answer.get("description", "")))
    return ["| status | |", "|---|---|", *(f"| {status} | {cell(found[status])} |" for status in sorted(found))]


def render_answer(answer: dict[str, Any]) -> Iterator[str]:
    yield one_line(answer.get("description", "")).rstrip(".")
    for kind, media in answer.get("content", {}).items():
        shape = render_type(media.get("schema", {}))
        yield shape if kind == "application/json" else f"{kind} {shape}"


def render_type(schema: dict[str, Any] | bool) -> str:
    """A schema in a few words; named ones by a link to their table. `True` is the schema of anything."""
    if isinstance(schema, bool):
        return "any"
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    for word in ("oneOf", "anyOf", "allOf"):
        if word in schema:
            joint = " and " if word == "allOf" else " or "
            return joint.join(dict.fromkeys(render_type(each) for each in schema[word]))
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {render_type(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map of {render_type(schema['additionalProperties'])}"
    return str(schema.get("format") or kind)


BOUNDS = {
    "minimum": "≥ {}",
    "maximum": "≤ {}",
    "exclusiveMinimum": "> {}",
    "exclusiveMaximum": "< {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "matches `{}`",
    "default": "default `{}`",
}


def render_bounds(schema: dict[str, Any]) -> str:
    words = [text.format(schema[key]) for key, text in BOUNDS.items() if schema.get(key) is not None]
    if "enum" in schema:
        words.append("one of " + ", ".join(f"`{value}`" for value in schema["enum"]))
    if schema.get("nullable"):
        words.append("may be null")
    return "; ".join(words)


def render_schema(name: str, schema: dict[str, Any]) -> list[str]:
    lines = [f"### {name}", ""]
    if text := one_line(schema.get("description", "")):
        lines += [text, ""]
    properties = dict(collect_properties(schema))
    if not properties:
        return [*lines, " ".join(filter(None, (render_type(schema), render_bounds(schema)))), ""]
    required = set(schema.get("required", ()))
    lines += ["| member | type | allowed | |", "|---|---|---|---|"]
    for member, inner in properties.items():
        mark = "**" if member in required else ""
        row = (f"{mark}`{member}`{mark}", render_type(inner), render_bounds(inner), inner.get("description", ""))
        lines.append(f"| {' | '.join(cell(part) for part in row)} |")
    return [*lines, ""]


def collect_properties(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from schema.get("properties", {}).items()
    for part in schema.get("allOf", ()):
        yield from collect_properties(part)


def one_line(text: str) -> str:
    return " ".join(text.split())


def cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")
