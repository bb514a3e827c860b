"""A training's image run for real, by podman: entry point, fields, limits, and nothing left behind. No registry."""

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.fields import conditions, refuse
from tests.e2e.server import Server, until

pytestmark = [pytest.mark.debian("podman"), pytest.mark.debian("runc"), pytest.mark.debian("busybox-static")]
PROGRAMS = ("sh", "echo", "cat", "id", "sleep", "env", "pwd", "touch", "grep", "tty", "true")
IMAGE = "localhost/fairlead-box:1"


class Box:
    """A server with podman as its runtime, on a store of its own."""

    def __init__(self, folder: Path, *flags: str, running: str = "") -> None:
        # Podman takes no longer path than 50 characters for what it keeps while it runs.
        self.running = running or tempfile.mkdtemp(prefix="fairlead")
        self.options = [f"--root={folder}/store", f"--runroot={self.running}"]
        given = [f"--runtime-option={option}" for option in self.options]
        self.server = Server(folder / "data", "--runtime", "podman", "--runtime", "host", *given, *flags)

    def podman(self, *words: str) -> str:
        command = ["podman", "--runtime=runc", "--cgroup-manager=cgroupfs", *self.options, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def submit(self, name: str, **spec: Any) -> str:
        body = {
            "name": name,
            "projectId": "1",
            "clusterId": self.server.credentials["clusterId"],
            "spec": {"image": IMAGE, **spec},
        }
        answer = self.server.call("POST", "/api/v1/workloads/trainings", body)
        assert answer.status == 202, answer
        return str(answer.json["workloadId"])

    def look(self, name: str, script: str = "", **spec: Any) -> str:
        words = {"command": "/bin/sh", "args": "-c " + json.dumps(script)} if script else {}
        workload = self.submit(name, **words, **spec)
        ended = self.server.until_phase(workload, "Completed", "Failed", patience=60)
        words_of_it = self.server.logs(workload)
        assert ended["phase"] == "Completed", (ended.get("phaseMessage"), words_of_it)
        return words_of_it.strip()

    def names(self) -> list[str]:
        return self.podman("ps", "--all", "--format={{.Names}}").split()


def make_archive(folder: Path) -> Path:
    """The files of a small machine: busybox under the names of its programs."""
    root = folder / "root"
    (root / "bin").mkdir(parents=True)
    for name in ("tmp", "etc", "proc", "dev", "sys"):
        (root / name).mkdir()
    shutil.copy("/bin/busybox", root / "bin" / "busybox")
    for name in PROGRAMS:
        (root / "bin" / name).symlink_to("busybox")
    (root / "etc" / "mark").write_text("this is the image\n")
    archive = folder / "root.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(root, arcname=".")
    return archive


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    folder = tmp_path_factory.mktemp("box")
    box = Box(folder, "--personal", "--retry-delay", "20")
    changes = ['--change=ENTRYPOINT ["/bin/echo", "the entry point"]', '--change=CMD ["and its arguments"]']
    box.podman("import", *changes, str(make_archive(folder)), IMAGE)
    box.podman("save", "--output", f"{folder}/box.tar", IMAGE)
    box.server.start()
    yield box
    box.server.close()
    box.podman("rm", "--all", "--force")
    subprocess.run(["umount", f"{folder}/store/overlay"], check=False, capture_output=True)
    shutil.rmtree(box.running)


@pytest.fixture
def shared(box: Box) -> Iterator[Box]:
    """A shared server on the same store of images."""
    folder = box.server.data_dir.parent
    shared = Box(folder, "--retry-delay", "20", running=box.running)
    shared.server.data_dir = folder / "shared"
    shared.server.start()
    yield shared
    shared.server.close()


def test_image(box: Box) -> None:
    workload = box.submit("entry")
    box.server.until_phase(workload, "Completed", patience=60)
    assert box.server.logs(workload) == "the entry point and its arguments\n"
    assert "image" not in conditions(box.server, workload, "NotEnforced")
    assert box.look("inside", "cat /etc/mark") == "this is the image"
    assert box.names() == []


def test_command_args_and_working_dir(box: Box) -> None:
    workload = box.submit("only-args", args="one 'two three'")
    box.server.until_phase(workload, "Completed", patience=60)
    assert box.server.logs(workload) == "the entry point one two three\n"
    assert box.look("where", "pwd", workingDir="/etc") == "/etc"


def test_environment_variables(box: Box) -> None:
    variables = [{"name": "MINE", "value": "a b = c"}]
    words = box.look("variables", "env", environmentVariables=variables)
    assert "MINE=a b = c" in words.splitlines()
    assert "RUNAI_JOB_NAME=variables" in words.splitlines()


def test_security(box: Box) -> None:
    security = {
        "uidGidSource": "custom",
        "runAsUid": 61_234,
        "runAsGid": 61_235,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
    }
    script = "id -u; id -g; touch /tmp/x 2>/dev/null && echo written; grep NoNewPrivs /proc/self/status"
    assert box.look("security", script, security=security).split() == ["61234", "61235", "NoNewPrivs:", "1"]


def test_cpu_memory_limit(box: Box) -> None:
    hungry = "x=xxxxxxxxxxxxxxxx; while true; do x=$x$x; done"
    words = {"command": "/bin/sh", "args": f"-c '{hungry}'"}
    workload = box.submit("hungry", **words, compute={"cpuMemoryLimit": "32Mi"}, backoffLimit=0)
    ended = box.server.until_phase(workload, "Failed", patience=60)
    assert "memory" in ended["phaseMessage"]


def test_image_pull_policy(box: Box) -> None:
    workload = box.submit("never", image="localhost/none:1", imagePullPolicy="Never", backoffLimit=0)
    ended = box.server.until_phase(workload, "Failed", patience=60)
    assert "125" in ended["phaseMessage"]
    assert "localhost/none" in box.server.logs(workload)


def test_image_from_an_archive(box: Box) -> None:
    folder = box.server.data_dir.parent
    workload = box.submit("archive", image=f"docker-archive:{folder}/box.tar")
    box.server.until_phase(workload, "Completed", patience=60)
    assert box.server.logs(workload).startswith("the entry point")


def test_the_runtime_is_chosen_by_annotation(box: Box) -> None:
    on_host = {"annotations": [{"name": "fairlead/runtime", "value": "host"}]}
    assert box.look("on-host", "test -e /etc/mark || echo host", **on_host) == "host"
    other = {"annotations": [{"name": "fairlead/runtime", "value": "docker"}]}
    assert "is not offered here" in refuse(box.server, "other", **other)


def test_root_in_a_container_is_nobody_on_the_machine(shared: Box) -> None:
    assert shared.look("mapped", "id -u; grep -c ' 100000 ' /proc/self/uid_map").split() == ["0", "1"]
    archive = f"docker-archive:{shared.server.data_dir.parent}/box.tar"
    assert "--allow host-path" in refuse(shared.server, "archive", image=archive)


def test_what_containers_do_not_get_is_refused(box: Box) -> None:
    storage = {"emptyDirVolume": [{"name": "a", "path": "/a"}]}
    assert "not mounted into containers yet" in refuse(box.server, "volume", image=IMAGE, storage=storage)


def test_nothing_is_left_of_a_container(box: Box) -> None:
    workload = box.submit("stopped", command="/bin/sleep", args="600", terminationGracePeriodSeconds=0)
    box.server.until_phase(workload, "Running", patience=60)
    until(box.names, "the container is there")
    box.server.call("DELETE", f"/api/v1/workloads/trainings/{workload}")
    until(lambda: not box.names(), "the container is gone")
    lost = box.submit("lost", command="/bin/sleep", args="600", backoffLimit=0)
    box.server.until_phase(lost, "Running", patience=60)
    (name,) = until(box.names, "the container is there")
    live = box.server.data_dir / "pods" / "live" / name.removeprefix("fairlead-")
    os.kill(json.loads(live.read_text().splitlines()[-1])["pid"], 9)
    until(lambda: name not in box.names(), "the container of the lost supervisor is gone")
    box.server.call("DELETE", f"/api/v1/workloads/trainings/{lost}")
    until(lambda: not box.names(), "the container of the next attempt is gone too")
