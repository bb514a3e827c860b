"""Which workloads a target cannot run."""

from typing import Any, cast

import pytest

from fairlead.client import Client
from fairlead.client.transfer.bundle import Bundle
from fairlead.client.transfer.report import LOST
from fairlead.client.transfer.workloads import find_unrunnable, write_workloads
from fairlead.client.transfer.writer import Writer

HOST = {"image": "fairlead.local/host"}


def workload(rest: str, request: dict[str, Any]) -> dict[str, Any]:
    return {"name": "w", "rest": rest, "request": request}


@pytest.mark.parametrize(
    ("carried", "engine", "want"),
    [
        pytest.param(workload("trainings", {"spec": HOST}), "kubernetes", ["training w"], id="files of the machine"),
        pytest.param(workload("trainings", {"spec": HOST}), "local", [], id="to another machine"),
        pytest.param(workload("trainings", {"spec": {"image": "x"}}), "kubernetes", [], id="an image"),
        pytest.param(
            workload("distributed", {"spec": {"image": "x"}, "masterSpec": HOST}),
            "kubernetes",
            ["distributed training w"],
            id="one role",
        ),
    ],
)
def test_what_cannot_run_there(carried: dict[str, Any], engine: str, want: list[str]) -> None:
    found = find_unrunnable([carried], engine)
    assert [f"{line.kind} {line.name}" for line in found] == want
    assert all("uses the files of its machine" in line.why for line in found)


class ClusterTarget:
    """A target that runs on Kubernetes, and records what is written to it."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def clusters(self) -> list[dict[str, Any]]:
        return [{"uuid": "c", "name": "c", "tenantId": 1, "engine": "kubernetes"}]

    def projects(self) -> list[dict[str, Any]]:
        return [{"id": "7", "name": "vision"}]

    def node_pools(self) -> list[dict[str, Any]]:
        return []

    departments = node_pools

    def workloads(self, **query: object) -> dict[str, Any]:
        return {"workloads": []}

    def request(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.written.append(body["name"])
        return {}


def test_they_are_left_on_the_source() -> None:
    place = {"projectName": "vision", "id": "1", "hasCallerEnvironment": False}
    stays, goes = workload("trainings", {"spec": HOST}), workload("trainings", {"spec": {"image": "x"}})
    empty: dict[str, Any] = {name: [] for name in Bundle._fields}
    carried = [{**stays, **place, "name": "stays"}, {**goes, **place, "name": "goes"}]
    target = ClusterTarget()
    writer = Writer(cast(Client, target), Bundle(**{**empty, "workloads": carried}))
    write_workloads(writer, None)
    assert target.written == ["goes"]
    assert [line.name for line in writer.report.of(LOST)] == ["stays"]
