"""The examples on a cluster, each as its README says: with an image that the cluster has for the machine's own.

Not here: `sweep.json` reads its number from the name of its pod, which a cluster does not count; `retry.json` counts in
a folder of the machine; `pytorch`, `mpi` and `jupyter` need images that no registry on this machine has.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.cluster.node import run_ctr
from tests.e2e.cli_calls import Caller, surroundings
from tests.kubernetes.cluster_harness import PATIENCE, PYTHON, ClusterHarness

pytestmark = pytest.mark.kubernetes
EXAMPLES = Path(__file__).parents[2] / "examples"
HOST = "fairlead.local/host"


@pytest.fixture
def fairlead(harness: ClusterHarness) -> Caller:
    caller = Caller(harness.server.data_dir)
    caller.ok("project", "set", harness.project)
    return caller


def adapted(harness: ClusterHarness, tmp_path: Path, name: str) -> Path:
    """A copy of an example that names an image of the cluster; its own files are mounted from a config map."""
    source = EXAMPLES / name
    text = source.read_text()
    folder = source.parent
    if folder != EXAMPLES:
        files = {path.name: path.read_text() for path in folder.glob("*.py")}
        body = {"name": folder.name, "projectId": harness.project_id, "data": files}
        assert harness.server.call("POST", "/api/v1/config-maps", body).status == 201
        mounted = f"configmap-map-volume name={folder.name},path={tmp_path}"
        text = text.replace(f"--worker-image {HOST}", f"--worker-image {PYTHON} --worker-{mounted}")
        text = text.replace(f"--image {HOST}", f"--image {PYTHON} --{mounted}")
        for path in folder.glob("*.py"):
            (tmp_path / path.name).write_text(path.read_text())
    copy = tmp_path / source.name
    copy.write_text(text.replace(HOST, PYTHON).replace("runai-default", harness.namespace))
    copy.chmod(0o755)
    return copy


def run(harness: ClusterHarness, tmp_path: Path, *arguments: str) -> str:
    """An example as a process, with a `fairlead` command on its path."""
    command = tmp_path / "fairlead"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fairlead "$@"\n')
    command.chmod(0o755)
    environ = surroundings(harness.server.data_dir, PATH=f"{tmp_path}:{os.environ['PATH']}")
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE, env=environ, check=False)
    assert done.returncode == 0, done
    return done.stdout


def test_hello(harness: ClusterHarness, fairlead: Caller, tmp_path: Path) -> None:
    shown = run(harness, tmp_path, str(adapted(harness, tmp_path, "hello.sh")))
    assert re.fullmatch(rf"hello from hello-\S+ in project {harness.project}\n", shown), shown
    submitted = fairlead.ok("training", "submit", "-f", str(adapted(harness, tmp_path, "hello.json")), "--attach")
    name, line = submitted.splitlines()
    assert line == f"hello from {name}"


def test_workload_yaml(harness: ClusterHarness, fairlead: Caller, tmp_path: Path) -> None:
    run_ctr(
        harness.cluster.layout,
        "images",
        "tag",
        "--force",
        f"docker.io/library/{PYTHON}",
        "docker.io/library/python:3.12",
    )
    file = str(adapted(harness, tmp_path, "workload.yaml"))
    assert fairlead.ok("apply", "-f", file) == "python-small: template created\nhello-yaml: submitted\n"
    assert fairlead("wait", "hello-yaml", "--timeout", "120s").code == 0
    assert fairlead.ok("logs", "hello-yaml") == "hello from workload YAML\n"


@pytest.mark.parametrize(("name", "want"), [("rest.py", "hello over REST"), ("sdk.py", "hello from the SDK")])
def test_clients(harness: ClusterHarness, fairlead: Caller, tmp_path: Path, name: str, want: str) -> None:
    copy = adapted(harness, tmp_path, name)
    copy.write_text(copy.read_text().replace('"projectId": "1"', f'"projectId": "{harness.project_id}"'))
    assert want in run(harness, tmp_path, sys.executable, str(copy))


def test_a_service_that_sleeps(harness: ClusterHarness, fairlead: Caller, tmp_path: Path) -> None:
    shown = run(harness, tmp_path, str(adapted(harness, tmp_path, "inference/run.sh")))
    assert [line for line in shown.splitlines() if " " not in line] == ["glad", "neither", "sad"]


def test_groups_behind_one_url(harness: ClusterHarness, fairlead: Caller, tmp_path: Path) -> None:
    shown = run(harness, tmp_path, str(adapted(harness, tmp_path, "model-server/run.sh")))
    first, second = [line for line in shown.splitlines() if line.startswith("the ")]
    assert (len(first.split()), len(second.split())) == (10, 10)
    assert first.startswith("the wind ")


def test_the_machines_own_image_is_refused(harness: ClusterHarness) -> None:
    workload = harness.submit("training", "hosted", {"image": HOST, "command": "true"})
    failed = harness.until_phase(workload, "Failed")
    assert "is the file system of one machine" in failed["phaseMessage"]
