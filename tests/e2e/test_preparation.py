"""A server that is killed while it prepares a pod: the pod still runs once, and nothing of the preparation stays."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.server import IDLE_PROCESSES, Server, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts volumes and makes networks for pods")

#: From before anything was done to after the process began, on a machine of any speed.
MOMENTS = (0, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 200)
CLAIM = {"path": "/claim", "claimInfo": {"size": "20Mi"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("preparation") / "data").start()
    kept = {"name": "hushed", "projectId": "1", "data": {"token": "x"}}
    assert server.call("POST", "/api/v1/secrets", kept).status == 201
    yield server
    server.close()


def mounted(folder: Path) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if str(folder) in line]


@pytest.mark.parametrize("millis", MOMENTS)
def test_a_server_killed_while_it_prepares(server: Server, millis: int) -> None:
    storage = {
        "pvc": [CLAIM],
        "emptyDirVolume": [{"path": "/bounded", "sizeLimit": "16Mi"}],
        "secretVolume": [{"secret": "hushed", "mountPath": "/hushed"}],
    }
    ports = [{"container": 8700, "serviceType": "ClusterIP"}]
    script = "echo began >> /claim/runs; cat /hushed/token /claim/runs"
    name = f"killed-{millis}"
    workload = server.run(name, "/bin/sh", f"-c '{script}'", storage=storage, ports=ports, backoffLimit=0)
    server.kill(after=millis / 1000)
    server.start()
    server.until_phase(workload, "Completed")
    assert server.logs(workload) == "xbegan\n"
    assert server.call("DELETE", f"/api/v1/workloads/trainings/{workload}").status == 202
    until(lambda: server.workload(workload).get("deletedAt"), "its end")
    until(lambda: len(server.leftovers()) <= IDLE_PROCESSES, "the end of its processes")
    until(lambda: not list((server.data_dir / "claims").iterdir()), "the end of its claim")
    until(lambda: not mounted(server.data_dir), "the end of its mounts")
