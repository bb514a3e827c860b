"""Every property has a row in the field reference, and every effect that a row claims a test that has seen it."""

import ast
import re
from pathlib import Path

import pytest

from fairlead.engines.declared import EFFECTS, Effect, find_on_cluster
from fairlead.engines.declared.kubernetes import ON_CLUSTER, beginnings
from fairlead.kinds import KINDS, role_members
from fairlead.kinds.kind import Kind
from scripts import generate_fields
from tests.field_proofs.clusters import CLUSTER_PROOFS, find_cluster_proof
from tests.field_proofs.containers import CONTAINED, find_contained
from tests.field_proofs.local import EXCLUDE_PROOF, PROOFS, find_proof
from tests.field_proofs.roles import ROLES

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


@pytest.mark.parametrize("proof", sorted({*PROOFS.values(), *CONTAINED.values(), EXCLUDE_PROOF}))
def test_every_proof_is_a_test_that_exists(proof: str) -> None:
    file, _, name = proof.partition("::")
    assert (ROOT / "tests" / file).exists(), f"there is no tests/{file}"
    assert name in functions_in(file), f"there is no {name} in tests/{file}"


def test_every_proof_is_of_a_field() -> None:
    assert PROOFS.keys() <= EFFECTS.keys()


def test_every_declaration_of_a_container_is_of_a_field() -> None:
    used = {find_contained(path) for path in EFFECTS}
    assert set(CONTAINED.values()) <= used


def leaves_of(kind: Kind) -> list[tuple[str, Effect]]:
    rows = [(path, field) for path, field in generate_fields.properties(kind.spec) if field.struct is None]
    return [(path, effect) for path, field in rows if (effect := generate_fields.effect_of(path, field)) is not None]


def is_proven(path: str, effect: Effect) -> bool:
    """Whether a test has seen it do something, in a process or in a container."""
    in_container = not effect.is_of_loop and find_contained(generate_fields.without_role(path))
    return bool((effect.host and find_proof(path, effect.is_claimed)) or in_container)


def is_stated(path: str, effect: Effect) -> bool:
    """Whether a test has seen that a workload says before its start what it does not get."""
    return not is_proven(path, effect) and bool(effect.unless and find_proof(path, effect.is_claimed))


@pytest.mark.parametrize("proof", sorted({proof for proofs in ROLES.values() for proof in proofs.values()}))
def test_every_proof_of_a_role_is_a_test_that_exists(proof: str) -> None:
    file, _, name = proof.partition("::")
    assert name in functions_in(file)


def test_every_role_has_its_proofs_and_does_what_a_whole_spec_does() -> None:
    """A new member that is the spec of a role needs no row in an engine, only tests that see it."""
    assert set(ROLES) == role_members()
    for role in role_members():
        assert find_on_cluster(f"{role}.compute.gpuPortionLimit") == find_on_cluster("compute.gpuPortionLimit")
        assert generate_fields.without_role(f"{role}.image") == "image"


def test_every_claim_has_a_proof(capsys: pytest.CaptureFixture[str]) -> None:
    assert [path for path, effect in EFFECTS.items() if effect.is_claimed and path not in PROOFS] == []
    for kind in KINDS.values():
        leaves = leaves_of(kind)
        proven = [path for path, effect in leaves if is_proven(path, effect)]
        stated = [path for path, effect in leaves if is_stated(path, effect)]
        assert proven
        with capsys.disabled():
            words = f"{len(proven)} of {len(leaves)} properties with proven effect"
            print(f"\n{kind.title}: {words}, {len(stated)} said to have none", end=" ")


def test_there_is_no_third_case() -> None:
    """A property of a training has an effect that a test has seen, or a test has seen that its lack is said."""
    leaves = leaves_of(KINDS["training"])
    assert [path for path, effect in leaves if not (is_proven(path, effect) or is_stated(path, effect))] == []


# On a cluster


def leaf_paths(kind: Kind) -> list[str]:
    return [path for path, field in generate_fields.properties(kind.spec) if field.struct is None]


@pytest.mark.parametrize("proof", sorted(set(CLUSTER_PROOFS.values())))
def test_every_proof_on_a_cluster_is_a_test_that_exists(proof: str) -> None:
    file, _, name = proof.partition("::")
    assert name in functions_in(file), f"there is no {name} in tests/{file}"


def test_every_claim_on_a_cluster_has_a_test_there(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in KINDS.values():
        paths = leaf_paths(kind)
        assert [path for path in paths if not find_cluster_proof(path)] == []
        claimed = [path for path in paths if find_on_cluster(path).is_claimed]
        for path in claimed:
            proof = find_cluster_proof(path)
            file, _, name = proof.partition("::")
            assert name in functions_in(file), f"{path}: there is no {name} in tests/{file}"
            assert proof == NAMED or is_spoken_of(path, file), f"{path}: {file} does not speak of it"
        with capsys.disabled():
            words = f"{len(claimed)} of {len(paths)} properties with an effect that a test has seen on a cluster"
            print(f"\n{kind.title}: {words}", end=" ")


NAMED = "unit/admission/test_templates.py::test_names_distinguish_items"
#: Files that tests of the cluster take their cases from.
CASES = {"kubernetes/test_fields.py": "kubernetes/field_cases.py"}


def is_spoken_of(path: str, file: str) -> bool:
    """Whether the test's file, or the one with its cases, says the last word of the path."""
    word = path.replace("[]", "").rpartition(".")[2]
    texts = [(ROOT / "tests" / one).read_text() for one in (file, CASES.get(file, file))]
    return any(word in text for text in texts)


def test_every_declaration_of_a_cluster_is_of_a_field() -> None:
    paths = [path for kind in KINDS.values() for path in leaf_paths(kind)]
    starts = {start for path in paths for start in beginnings(generate_fields.without_role(path))}
    assert ON_CLUSTER.keys() <= starts
    assert set(CLUSTER_PROOFS.values()) <= {find_cluster_proof(path) for path in paths}
