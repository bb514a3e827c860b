"""A server whose trainings run in containers: podman on a store of its own, with one small image made on the spot."""

import contextlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.e2e.server import Server

PROGRAMS = (
    *("sh", "echo", "cat", "id", "sleep", "env", "pwd", "touch", "grep", "tty", "true", "stat", "ls", "wget", "httpd"),
    *("df", "dd", "mkdir", "hostname", "sha256sum", "test", "tr", "readlink", "cut"),
)
IMAGE = "localhost/fairlead-box:1"
PODMAN = ["podman", "--runtime=runc", "--cgroup-manager=cgroupfs"]


class ContainerServer:
    """A server with podman as its runtime, on a store of its own."""

    def __init__(self, folder: Path, *flags: str, running: str = "", environment: dict[str, str] | None = None) -> None:
        # Podman takes no longer path than 50 characters for what it keeps while it runs.
        self.running = running or tempfile.mkdtemp(prefix="fairlead")
        self.folder = folder
        self.options = [f"--root={folder}/store", f"--runroot={self.running}"]
        given = [f"--runtime-option={option}" for option in self.options]
        words = ("--runtime", "podman", "--runtime", "host", "--retry-delay", "20", *given, *flags)
        self.server = Server(folder / "data", *words, environment=environment)

    def podman(self, *arguments: str) -> str:
        ended = subprocess.run([*PODMAN, *self.options, *arguments], check=False, capture_output=True, text=True)
        assert ended.returncode == 0, (arguments, ended.stderr)
        return ended.stdout

    def submit(self, name: str, script: str = "", project: str = "1", **spec: Any) -> str:
        words = {"command": "/bin/sh", "args": "-c " + json.dumps(script)} if script else {}
        body = {
            "name": name,
            "projectId": project,
            "clusterId": self.server.credentials["clusterId"],
            "spec": {"image": IMAGE, **words, **spec},
        }
        answer = self.server.call("POST", "/api/v1/workloads/trainings", body)
        assert answer.status == 202, answer
        return str(answer.json["workloadId"])

    def look(self, name: str, script: str = "", **spec: Any) -> str:
        """What a script in a container with these fields wrote; it must end well."""
        workload = self.submit(name, script, **spec)
        ended = self.server.until_phase(workload, "Completed", "Failed")
        words_of_it = self.server.logs(workload)
        assert ended["phase"] == "Completed", (ended.get("phaseMessage"), words_of_it)
        return words_of_it.strip()

    def delete(self, workload: str) -> None:
        assert self.server.call("DELETE", f"/api/v1/workloads/trainings/{workload}").status == 202

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
    (root / "kept" / "by" / "image").mkdir(parents=True)
    (root / "kept" / "by" / "image" / "hello").write_text("words\n")
    archive = folder / "root.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(root, arcname=".")
    return archive


@contextlib.contextmanager
def opened(folder: Path, *flags: str, environment: dict[str, str] | None = None) -> Iterator[ContainerServer]:
    """A containers with its image, serving; nothing of it is left afterwards."""
    containers = ContainerServer(folder, *flags, environment=environment)
    changes = ['--change=ENTRYPOINT ["/bin/echo", "the entry point"]', '--change=CMD ["and its arguments"]']
    containers.podman("import", *changes, str(make_archive(folder)), IMAGE)
    containers.podman("save", "--output", f"{folder}/box.tar", IMAGE)
    containers.server.start()
    try:
        yield containers
    finally:
        containers.server.close()
        try:
            containers.podman("rm", "--all", "--force")
        finally:
            subprocess.run(["umount", f"{folder}/store/overlay"], check=False, capture_output=True)
            shutil.rmtree(containers.running)


@contextlib.contextmanager
def beside(containers: ContainerServer, *flags: str) -> Iterator[ContainerServer]:
    """A shared server on the same store of images."""
    shared = ContainerServer(containers.folder, *flags, running=containers.running)
    shared.server.data_dir = containers.folder / "shared"
    shared.server.start()
    try:
        yield shared
    finally:
        shared.server.close()
