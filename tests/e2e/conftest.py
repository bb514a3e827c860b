"""A running server for tests that need one."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e import wheels
from tests.e2e.server import Server


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel and the source distribution, built once for the tests that install them."""
    return wheels.build(tmp_path_factory.mktemp("built"))


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Start servers with arguments of one's own; all are gone afterwards."""
    made: list[Server] = []

    def make(*arguments: str, name: str = "data", environment: dict[str, str] | None = None) -> Server:
        server = Server(tmp_path / name, *arguments, environment=environment)
        made.append(server)
        return server.start()

    yield make
    for server in made:
        server.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One personal server for the tests of a module."""
    server = Server(tmp_path_factory.mktemp("server") / "data", "--personal", "--retry-delay", "20").start()
    yield server
    server.close()
