"""Renders the conformance page: every field of workload YAML on a real cluster, and the test that has seen it there.
`build_docs.py` puts it into the documentation.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fairlead.engines.declared import Effect
from fairlead.formats.explain import explain_all
from fairlead.formats.yaml.fields import YamlField, yaml_fields
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind
from fairlead.model.spec.fields import Field
from scripts.generate_fields import effect_of, properties, render_cluster
from tests.field_proofs.clusters import find_cluster_proof
from tests.field_proofs.documents import DOCUMENT_PROOFS

INTRODUCTION = """---
hide: [toc]
---
# Conformance on a cluster

Every field of workload YAML, what it does on a Kubernetes cluster, and the test that has seen that. The tests run on a
real API server, KAI scheduler and kubelets (`make test-kubernetes`). A field that has no effect says so in the
workload's conditions, and its test has seen that. Only the keys of lists are seen by a unit test: items are merged
before any engine gets them. A property that only REST has is among [the fields and their effects](fields.md). This page
is made from the declarations, and a test fails if a field has none.
"""


class Row(NamedTuple):
    name: str
    #: The properties that it sets, as REST paths.
    paths: tuple[str, ...]
    effect: str
    #: The tests, as file and function.
    proofs: tuple[str, ...]


def rows_of(kind: Kind) -> Iterator[Row]:
    """A row for every field of the kind's documents, and for every member of their items."""
    # A training with members of MPI becomes a distributed one.
    known = {path: field for one in (*KINDS.values(), kind) for path, field in properties(one.spec)}
    explained = explain_all(kind)
    for field in yaml_fields(kind).values():
        if kind.letter not in field.kinds:
            continue
        if field.name in DOCUMENT_PROOFS:
            yield Row(field.name, (), explained[field.name].description, (DOCUMENT_PROOFS[field.name],))
            continue
        leaves = tuple(leaf for path in _paths(field) for leaf in _leaves(known, path))
        if field.members:
            leaves = tuple(leaf for leaf in leaves if leaf in _own(field))
        if leaves:
            yield _row(known, field.name, leaves)
        for member in field.members:
            below = tuple(_leaves(known, f"{field.path}[].{member.path}"))
            if not below:
                # Of the serving port, which has fields of its own.
                below = tuple(_leaves(known, f"servingPort.{member.path}"))
            yield _row(known, f"{field.name}.{member.name}", below)


def _paths(field: YamlField) -> tuple[str, ...]:
    return tuple(path.removesuffix("[]") for path in (field.path, *field.sets) if path)


def _own(field: YamlField) -> set[str]:
    """The properties of an item that are not written as its members: the key."""
    return {f"{field.path}[].{field.key}"} if field.key else set()


def _leaves(known: Mapping[str, Field], path: str) -> Iterator[str]:
    """The properties at a path, or below it if it is an object or a list of objects."""
    for found, field in known.items():
        is_there = found in (path, f"{path}[]") or found.startswith((f"{path}.", f"{path}[]."))
        if is_there and field.struct is None and not found.endswith(".exclude"):
            yield found


def _row(known: Mapping[str, Field], name: str, leaves: tuple[str, ...]) -> Row:
    effects = (render_cluster(path, effect_of(path, known[path]) or Effect()) for path in leaves)
    proofs = (find_cluster_proof(path) for path in leaves)
    return Row(name, leaves, "; ".join(dict.fromkeys(effects)), tuple(dict.fromkeys(filter(None, proofs))))


def render_page() -> str:
    lines = [INTRODUCTION]
    for kind in KINDS.values():
        if not kind.letter:
            continue
        rows = list(rows_of(kind))
        lines += [f"## {kind.resource}", "", f"{len(rows)} fields.", ""]
        lines += ["| field | sets | on a cluster | seen by |", "|---|---|---|---|", *map(_render, rows), ""]
    return "\n".join(lines).rstrip() + "\n"


def _render(row: Row) -> str:
    sets = ", ".join(f"`{path}`" for path in row.paths)
    cells = [f"`{row.name}`", sets, row.effect, ", ".join(f"`{proof}`" for proof in row.proofs)]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
