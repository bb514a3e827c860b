"""After a restore: what still runs comes first, and no device is given out twice."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cli_calls import Caller
from tests.e2e.server import Server, until

NODE = ("--port", "0", "--node", "lab:cpu=4,memory=4Gi,gpus=1,gpu-memory=16Gi")
HOLDS = ("--gpu", "1", "--detach", "--", "sleep", "600")


@pytest.fixture
def fairlead(tmp_path: Path) -> Iterator[Caller]:
    folder = tmp_path / "work"
    folder.mkdir()
    caller = Caller(tmp_path / "data", folder)
    yield caller
    caller("server", "stop")
    Server(caller.data_dir).close()


def status_of(fairlead: Caller, name: str) -> str:
    rows = json.loads(fairlead.ok("list", "-o", "json"))
    return next((str(row["phase"]) for row in rows if row["name"] == name), "")


def running_pods(fairlead: Caller, name: str) -> int:
    rows = json.loads(fairlead.ok("list", "-o", "json"))
    return next((int(row["runningPods"]) for row in rows if row["name"] == name), 0)


def restore(fairlead: Caller, *flags: str) -> None:
    fairlead.ok("server", "stop")
    fairlead.ok("restore", "copy.tar.gz", "--force")
    node = () if "--node" in flags else NODE
    fairlead.ok("server", "start", "--", *node, *flags)


def test_a_pod_that_started_after_the_backup_is_adopted_with_its_workload(fairlead: Caller) -> None:
    fairlead.ok("server", "start", "--", *NODE)
    fairlead.ok("backup", "copy.tar.gz")
    fairlead.ok("run", "--name", "late", *HOLDS)
    fairlead.ok("wait", "late", "--for", "Running", "--timeout", "60s")
    restore(fairlead)
    assert status_of(fairlead, "late") == "Running"
    fairlead.ok("run", "--name", "next", *HOLDS)
    until(lambda: status_of(fairlead, "next") == "Pending", "the only GPU is held")
    assert "Adopted running pods" in fairlead.ok("describe", "late")
    fairlead.ok("training", "delete", "late")
    fairlead.ok("wait", "next", "--for", "Running", "--timeout", "60s")


def test_a_workload_that_waited_at_the_backup_and_runs_now_keeps_its_pod(fairlead: Caller) -> None:
    fairlead.ok("server", "start", "--", *NODE)
    fairlead.ok("run", "--name", "first", *HOLDS)
    fairlead.ok("wait", "first", "--for", "Running", "--timeout", "60s")
    fairlead.ok("run", "--name", "second", *HOLDS)
    until(lambda: status_of(fairlead, "second") == "Pending", "the only GPU is held")
    fairlead.ok("backup", "copy.tar.gz")
    fairlead.ok("training", "delete", "first")
    fairlead.ok("wait", "second", "--for", "Running", "--timeout", "60s")
    restore(fairlead)
    # The pod of the first is gone: it waits again for the device that the second holds.
    until(lambda: status_of(fairlead, "first") == "Degraded", "its pod is gone")
    assert "Waiting for 1 GPU" in fairlead.ok("describe", "first")
    assert status_of(fairlead, "second") == "Running"


def test_a_pod_that_is_known_stays_beside_one_that_is_adopted(fairlead: Caller) -> None:
    fairlead.ok("server", "start", "--", *NODE[:-1], NODE[-1].replace("gpus=1", "gpus=2"))
    fairlead.ok("run", "--name", "other", *HOLDS)
    fairlead.ok("wait", "other", "--for", "Running", "--timeout", "60s")
    submit = ("training", "submit", "pair", "-i", "fairlead.local/host", "--completions", "2", "--parallelism", "2")
    fairlead.ok(*submit, "--gpu-devices-request", "1", "--", "sleep", "600")
    until(lambda: running_pods(fairlead, "pair") == 1, "the GPU that is free is taken")
    fairlead.ok("backup", "copy.tar.gz")
    fairlead.ok("training", "delete", "other")
    until(lambda: running_pods(fairlead, "pair") == 2, "the second pod starts after the backup")
    restore(fairlead, "--node", "lab:cpu=4,memory=4Gi,gpus=2,gpu-memory=16Gi")
    assert running_pods(fairlead, "pair") == 2
    fairlead.ok("training", "delete", "pair")
    until(lambda: status_of(fairlead, "pair") == "", "both pods end with their workload")


def test_an_operator_may_have_unknown_pods_stopped(fairlead: Caller) -> None:
    fairlead.ok("server", "start", "--", *NODE)
    fairlead.ok("backup", "copy.tar.gz")
    fairlead.ok("run", "--name", "late", *HOLDS)
    fairlead.ok("wait", "late", "--for", "Running", "--timeout", "60s")
    restore(fairlead, "--unknown-pods", "stop")
    assert status_of(fairlead, "late") == ""
    assert fairlead.ok("run", "--name", "next", "--gpu", "1", "--", "echo", "free") == "free\n"
