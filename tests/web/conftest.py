"""One server with four declared GPUs and a few workloads for the tests of a process, and a browser beside it."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import Visit, open_browser
from tests.e2e.server import Server

#: Longer than five seconds, because browser, server and pods share the machine's cores.
expect.set_options(timeout=60_000)

NODES = ("--node", "lab:cpu=8,memory=8Gi,gpus=4")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("web") / "data", "--personal", *NODES).start()
    yield server
    server.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Visit]:
    """A tab of a browser that is signed in by a link. No script may fail, and nothing may be asked of another host."""
    visit = Visit(browser, server.url)
    sign_in(visit, server)
    yield visit
    visit.close()
    assert visit.foreign == []
    assert visit.errors == []


def sign_in(visit: Visit, server: Server) -> None:
    visit.open(server.call("POST", "/api/v1/session/links").json["path"])
