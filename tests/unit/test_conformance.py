"""The conformance page has a row for every field of workload YAML, and every row a test on a real cluster."""

import re

import pytest

from fairlead.formats.yaml.fields import yaml_fields
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind
from scripts.generate_conformance import render_page, rows_of
from tests.field_proofs.documents import DOCUMENT_PROOFS
from tests.unit.test_fields import NAMED, functions_in

KINDS_IN_YAML = [kind for kind in KINDS.values() if kind.letter]


def names_of(kind: Kind) -> set[str]:
    fields = [field for field in yaml_fields(kind).values() if kind.letter in field.kinds]
    return {field.name for field in fields} | {
        f"{field.name}.{member.name}" for field in fields for member in field.members
    }


@pytest.mark.parametrize("kind", KINDS_IN_YAML, ids=lambda kind: kind.resource)
def test_every_field_has_a_row_and_every_row_a_test_on_a_cluster(kind: Kind) -> None:
    rows = list(rows_of(kind))
    shown = {row.name for row in rows}
    # A list whose items consist of their members only has rows for these.
    whole = {name.partition(".")[0] for name in shown}
    assert names_of(kind) - shown - whole == set()
    assert shown <= names_of(kind)
    for row in rows:
        assert row.effect, f"{row.name} has no effect"
        assert row.proofs, f"{row.name} has no test"
        for proof in row.proofs:
            file, _, name = proof.partition("::")
            assert name in functions_in(file), f"{row.name}: there is no {name} in tests/{file}"
            assert proof == NAMED or file.startswith("kubernetes/"), f"{row.name}: {proof} runs on no cluster"


def test_the_page_shows_the_rows() -> None:
    _, *parts = render_page().split("\n## ")
    shown = {part.partition("\n")[0]: len(re.findall(r"^\| `", part, re.MULTILINE)) for part in parts}
    assert shown == {kind.resource: len(list(rows_of(kind))) for kind in KINDS_IN_YAML}


def test_fields_without_a_property_are_fields() -> None:
    assert DOCUMENT_PROOFS.keys() <= set().union(*map(names_of, KINDS_IN_YAML))
