"""A server per test module for reads and refusals, and one per test for what needs its own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fairlead.api.application import RequestLimits
from tests.contract.api.room import Room


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    with Room(tmp_path_factory.mktemp("api")) as room:
        yield room


@pytest.fixture
def make_room(tmp_path: Path) -> Iterator[Callable[..., Room]]:
    with ExitStack() as stack:

        def make(name: str = "own", limits: RequestLimits | None = None, token_seconds: int = 86_400) -> Room:
            folder = tmp_path / name
            folder.mkdir()
            return stack.enter_context(Room(folder, limits, token_seconds))

        yield make
