"""Every property has a row in the field reference, and every effect that a row claims a test that has seen it."""

import ast
import importlib.util
from pathlib import Path

import pytest

from fairlead.engines.declared import EFFECTS, EXCLUDE
from fairlead.kinds import KINDS

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("generate_fields", ROOT / "scripts" / "generate_fields.py")
assert _SPEC is not None
assert _SPEC.loader is not None
generate_fields = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(generate_fields)


def functions_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, functions)}


def test_every_property_has_a_row_and_every_row_a_property() -> None:
    assert generate_fields.missing() == []


def test_the_page_is_what_the_engines_declare() -> None:
    assert generate_fields.PAGE.read_text() == generate_fields.render_page()


@pytest.mark.parametrize("path", [path for path, effect in EFFECTS.items() if effect.proof])
def test_every_proof_is_a_test_that_exists(path: str) -> None:
    file, _, name = EFFECTS[path].proof.partition("::")
    assert (ROOT / "tests" / file).exists(), f"{path}: there is no tests/{file}"
    assert name in functions_in(file), f"{path}: there is no {name} in tests/{file}"


def test_every_claim_has_a_proof(capsys: pytest.CaptureFixture[str]) -> None:
    assert [path for path, effect in EFFECTS.items() if effect.is_claimed and not effect.proof] == []
    for kind in KINDS.values():
        rows = list(generate_fields.properties(kind.spec))
        leaves = [(path, field) for path, field in rows if field.struct is None]
        proven = [path for path, field in leaves if generate_fields.effect_of(path, field).is_claimed]
        assert proven
        with capsys.disabled():
            print(f"\n{kind.title}: {len(proven)} of {len(leaves)} properties with proven effect", end=" ")
    assert EXCLUDE.proof
