"""Servers of two versions on one PostgreSQL, replaced one after another: no request fails, and work goes on."""

import contextlib
import itertools
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.e2e.next_version import write_next_version
from tests.e2e.request_load import Request, RequestLoad, send
from tests.e2e.server import PATIENCE, Server, until
from tests.postgres import PostgresServer

#: Long enough for the balancer to see that a server is not ready, on a machine that is busy otherwise.
DRAIN = ("--drain-seconds", "4")


@pytest.fixture
def next_version(tmp_path: Path) -> dict[str, str]:
    """The environment in which `python -m fairlead` is the next version, with a newer layout of the database."""
    package = write_next_version(tmp_path / "next")
    return {**os.environ, "PYTHONPATH": str(package.parent)}


class Balancer:
    """Sends every request to a server that was ready when it last looked, as a Service of Kubernetes does."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._servers: list[Server] = []
        self._ready: list[str] = []
        self._turns = itertools.count()
        self._ends = threading.Event()
        self.load = RequestLoad(self._choose, token)

    def add(self, server: Server) -> None:
        self._servers.append(server)
        url = server.url
        until(lambda: url in self._ready, "the server in the balancer")

    @contextlib.contextmanager
    def running(self, requests: list[Request]) -> Iterator[None]:
        watcher = threading.Thread(target=self._look)
        watcher.start()
        try:
            with self.load.running(requests):
                yield
        finally:
            self._ends.set()
            watcher.join()

    def _look(self) -> None:
        urls: dict[Server, str] = {}
        while not self._ends.wait(0.05):
            for server in self._servers:
                with contextlib.suppress(FileNotFoundError):
                    urls.setdefault(server, server.url)
            self._ready = [url for url in urls.values() if send(url, self._token, ("GET", "/readyz", None)) == 200]

    def _choose(self) -> str | None:
        ready = self._ready
        return ready[next(self._turns) % len(ready)] if ready else None


class Fleet:
    """One server that runs the machine, and any number that serve the API, of either version."""

    def __init__(self, folder: Path, database: str) -> None:
        self._folder = folder
        self.database = database
        self.holder = Server(folder / "holder", "--personal", "--database", database, "--proxy-port", "0").start()
        self.servers: list[Server] = []

    def start(self, environment: dict[str, str] | None = None) -> Server:
        folder = self._folder / f"api-{len(self.servers)}"
        shutil.copytree(self.holder.data_dir / "keys", folder / "keys")
        shutil.copy(self.holder.data_dir / "credentials.json", folder)
        server = Server(folder, "--api-only", "--database", self.database, *DRAIN, environment=environment)
        self.servers.append(server)
        return server.start()

    def close(self) -> None:
        for server in self.servers:
            server.stop()
        self.holder.close()


@pytest.fixture
def fleet(tmp_path: Path, postgres_server: PostgresServer) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, postgres_server.new_database())
    yield fleet
    fleet.close()


def end(*servers: Server) -> None:
    """Asked once: a second signal would end it at once."""
    for server in servers:
        assert server.process is not None
        server.process.terminate()
    for server in servers:
        assert server.process is not None
        assert server.process.wait(PATIENCE) == 0


def test_no_request_fails_while_servers_are_replaced_and_brought_back(
    fleet: Fleet, next_version: dict[str, str]
) -> None:
    holder = fleet.holder
    runs = holder.run("runs", "sleep", "86397")
    holder.until_phase(runs, "Running")
    [pod] = holder.call("GET", f"/api/v1/workloads/{runs}/pods").json["pods"]
    names = (f"w{number}" for number in itertools.count())
    cluster = holder.credentials["clusterId"]

    def submission() -> tuple[str, str, Any]:
        spec = {"image": "python:3", "command": "sleep", "args": "60", "nodeType": "none"}
        body = {"name": next(names), "projectId": "1", "clusterId": cluster, "spec": spec}
        return "POST", "/api/v1/workloads/trainings", body

    balancer = Balancer(holder.log_in())
    reads: list[Request] = [
        lambda: ("GET", "/api/v1/workloads?limit=5", None),
        lambda: ("GET", f"/api/v1/workloads/{runs}", None),
    ]
    with balancer.running([submission, *reads]):
        old = fleet.start()
        balancer.add(old)
        new = fleet.start(next_version)
        balancer.add(new)
        end(old)
        # And back: the previous version starts on the newer layout.
        again = fleet.start()
        balancer.add(again)
        end(new)
        seen = len(balancer.load.answers)
        until(lambda: len(balancer.load.answers) > seen + 10, "requests at the server that came back")
    assert [one for one in balancer.load.answers if one[1] not in (200, 202)] == []
    submitted = sum(status == 202 for _, status in balancer.load.answers)
    assert submitted
    assert again.call("GET", "/api/v1/workloads/count").json["count"] == submitted + 1
    assert holder.phase(runs) == "Running"
    assert holder.call("GET", f"/api/v1/workloads/{runs}/pods").json["pods"] == [pod]

    # When the previous version has gone, the next one fills what it left out.
    end(again)
    holder.stop()
    fleet.start(next_version)
    with psycopg.connect(fleet.database, autocommit=True, options="-c search_path=fairlead") as connection:
        left = "SELECT count(*) FROM workloads WHERE later IS NULL"
        until(lambda: connection.execute(left).fetchone() == (0,), "the new column of every workload")


def test_a_server_that_drains_is_not_ready_and_still_answers(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", "--personal", "--proxy-port", "0", "--drain-seconds", "3600").start()
    try:
        assert server.call("GET", "/readyz").status == 200
        assert server.process is not None
        server.process.terminate()
        until(lambda: server.call("GET", "/readyz").status == 503, "its readiness to go")
        answer = server.submit("late", "true")
        assert answer.status == 202
        assert answer.headers["connection"] == "close"
        assert server.call("GET", "/healthz").status == 200
        # Asked again, it stops at once.
        server.process.terminate()
        assert server.process.wait(120) == 0
    finally:
        server.kill()
        server.close()
