"""The PostgreSQL server that all contract tests of one process share: started for the first that asks."""

from collections.abc import Iterator

import pytest

from tests.postgres import PostgresServer


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()
