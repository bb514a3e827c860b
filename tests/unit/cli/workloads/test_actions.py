"""How the workloads of an action are chosen."""

from pathlib import Path

import pytest

from fairlead.cli.exit_codes import USAGE
from fairlead.cli.workloads.actions import read_selector
from tests.unit.cli.calling import call

LABELS = {"team": "vision", "tier": "dev"}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", True),
        ("team=vision", True),
        ("team==vision, tier=dev", True),
        ("team=vision,tier!=dev", False),
        ("team!=speech", True),
        ("team", True),
        ("!team", False),
        ("!owner", True),
        ("owner=", False),
    ],
)
def test_selector(text: str, want: bool) -> None:
    assert read_selector(text)(LABELS) is want


@pytest.mark.parametrize("verb", ["delete", "suspend", "resume"])
def test_something_must_be_chosen(tmp_path: Path, verb: str) -> None:
    called = call(verb, home=tmp_path)
    assert called.code == USAGE
    assert "Pass names, --selector or --all." in called.err
