"""Every case under this folder: a small cluster, and what one cycle must make of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.scheduling.cases import judge

FOLDER = Path(__file__).parent


def cases() -> Iterator[Any]:
    for path in sorted(FOLDER.glob("*.yaml")):
        for case in yaml.safe_load(path.read_text()):
            yield pytest.param(case, id=f"{path.stem}: {case['name']}")


@pytest.mark.parametrize("case", list(cases()))
def test_case(case: dict[str, Any]) -> None:
    assert judge(case) == []


def test_names_are_unique() -> None:
    names = [param.id for param in cases()]
    assert len(names) == len(set(names))
