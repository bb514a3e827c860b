"""A server per test module for reads and refusals, and one per test for what needs its own."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fairlead.api.application import RequestSettings
from fairlead.api.http.connection_limits import ConnectionLimits
from tests.contract.api.api_server import ApiServer


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with ApiServer(tmp_path_factory.mktemp("api")) as api:
        yield api


@pytest.fixture
def make_api(tmp_path: Path) -> Iterator[Callable[..., ApiServer]]:
    with ExitStack() as stack:

        def make(
            name: str = "own",
            limits: RequestSettings | None = None,
            token_seconds: int = 86_400,
            connections: ConnectionLimits | None = None,
            tls: ssl.SSLContext | None = None,
        ) -> ApiServer:
            folder = tmp_path / name
            folder.mkdir()
            return stack.enter_context(ApiServer(folder, limits, token_seconds, connections, tls))

        yield make
