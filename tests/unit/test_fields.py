"""Every property has a row in the field reference, and every effect that a row claims a test that has seen it."""

import ast
import re
from pathlib import Path

import pytest

from fairlead.engines.declared import CLUSTERED, EFFECTS, EXCLUDE, ROLES, Clustered, Effect, find_clustered
from fairlead.engines.declared.contained import CONTAINED, find_contained
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind
from scripts import generate_fields

ROOT = Path(__file__).parents[2]


def functions_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, functions)}


def test_every_property_has_a_row_and_every_row_a_property() -> None:
    assert generate_fields.missing() == []


def test_the_page_has_a_row_for_every_property_of_every_kind() -> None:
    _, *parts = generate_fields.render_page().split("\n## ")
    shown = {part.partition("\n")[0]: re.findall(r"^\| `([^`]+)` \|", part, re.MULTILINE) for part in parts}
    declared = {kind.title: [path for path, _ in generate_fields.properties(kind.spec)] for kind in KINDS.values()}
    assert shown == declared


PROOFS = [(path, proof) for path, effect in EFFECTS.items() for proof in (effect.proof, effect.contained) if proof]


@pytest.mark.parametrize(("path", "proof"), PROOFS)
def test_every_proof_is_a_test_that_exists(path: str, proof: str) -> None:
    file, _, name = proof.partition("::")
    assert (ROOT / "tests" / file).exists(), f"{path}: there is no tests/{file}"
    assert name in functions_in(file), f"{path}: there is no {name} in tests/{file}"


def test_every_declaration_of_a_container_is_of_a_field() -> None:
    used = {find_contained(path) for path in EFFECTS}
    assert set(CONTAINED.values()) <= used


def leaves_of(kind: Kind) -> list[tuple[str, Effect]]:
    rows = [(path, field) for path, field in generate_fields.properties(kind.spec) if field.struct is None]
    return [(path, effect) for path, field in rows if (effect := generate_fields.effect_of(path, field)) is not None]


@pytest.mark.parametrize("proof", sorted({proof for proofs in ROLES.values() for proof in proofs.values()}))
def test_every_proof_of_a_role_is_a_test_that_exists(proof: str) -> None:
    file, _, name = proof.partition("::")
    assert name in functions_in(file)


def test_every_claim_has_a_proof(capsys: pytest.CaptureFixture[str]) -> None:
    assert [path for path, effect in EFFECTS.items() if effect.is_claimed and not effect.proof] == []
    for kind in KINDS.values():
        leaves = leaves_of(kind)
        proven = [path for path, effect in leaves if effect.is_proven]
        stated = [path for path, effect in leaves if effect.is_stated]
        assert proven
        with capsys.disabled():
            words = f"{len(proven)} of {len(leaves)} properties with proven effect"
            print(f"\n{kind.title}: {words}, {len(stated)} said to have none", end=" ")
    assert EXCLUDE.proof


def test_there_is_no_third_case() -> None:
    """A property of a training has an effect that a test has seen, or a test has seen that its lack is said."""
    assert [path for path, effect in leaves_of(KINDS["training"]) if not effect.is_proven | effect.is_stated] == []


# On a cluster


def clustered_leaves(kind: Kind) -> list[tuple[str, Clustered]]:
    rows = [path for path, field in generate_fields.properties(kind.spec) if field.struct is None]
    return [(path, found) for path in rows if (found := find_clustered(path)) is not None]


@pytest.mark.parametrize("proof", sorted({row.proof for row in CLUSTERED.values()}))
def test_every_proof_on_a_cluster_is_a_test_that_exists(proof: str) -> None:
    file, _, name = proof.partition("::")
    assert name in functions_in(file), f"there is no {name} in tests/{file}"


def test_every_claim_on_a_cluster_has_a_test_there(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in KINDS.values():
        leaves = clustered_leaves(kind)
        claimed = [(path, row) for path, row in leaves if row.is_claimed]
        for path, row in claimed:
            file, _, name = row.proof.partition("::")
            assert name in functions_in(file), f"{path}: there is no {name} in tests/{file}"
            assert row.proof == NAMED or is_spoken_of(path, file), f"{path}: {file} does not speak of it"
        with capsys.disabled():
            words = f"{len(claimed)} of {len(leaves)} properties with an effect that a test has seen on a cluster"
            print(f"\n{kind.title}: {words}", end=" ")


NAMED = "unit/admission/test_templates.py::test_names_tell_items_apart"
#: Files that tests of the cluster take their cases from.
CASES = {"kubernetes/test_fields.py": "kubernetes/field_cases.py"}


def is_spoken_of(path: str, file: str) -> bool:
    """Whether the test's file, or the one with its cases, says the last word of the path."""
    word = path.replace("[]", "").rpartition(".")[2]
    texts = [(ROOT / "tests" / one).read_text() for one in (file, CASES.get(file, file))]
    return any(word in text for text in texts)


def test_every_declaration_of_a_cluster_is_of_a_field() -> None:
    paths = [path for kind in KINDS.values() for path, _ in clustered_leaves(kind)]
    rows = {row.proof for row in (find_clustered(path) for path in paths) if row is not None}
    assert {row.proof for row in CLUSTERED.values()} <= rows
