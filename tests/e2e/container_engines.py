"""Engines that run containers for whoever asks them (Docker's, containerd), each on a folder and a socket of its own.

Started by tests that are run by `make test-docker` and `make test-containerd`; the machine's own are left alone.
"""

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from tests.e2e.container_server import IMAGE, make_archive
from tests.e2e.fields import conditions
from tests.e2e.server import Server, until

_CONTAINERD = """
version = 2
root = "{folder}/root"
state = "{running}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "{running}/sock"
[ttrpc]
  address = "{running}/sock.ttrpc"
"""


class ContainerEngine(ABC):
    """An engine that leaves the machine's network alone, and a server that runs pods by it."""

    name: str
    program: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # A socket's path is short.
        self.running = tempfile.mkdtemp(prefix="fairlead")
        self.environment = dict(os.environ)
        self.options: list[str] = []
        with open(folder / "engine.log", "wb") as log:
            self.engine = subprocess.Popen(self.start(), stdout=log, stderr=log)
        try:
            until(lambda: self.ask("info", "--format={{.ServerVersion}}").strip(), "the engine")
            self.archive = make_image_archive(folder)
            self.ask("load", f"--input={self.archive}")
            self.server = self._serve()
        except BaseException:
            self._end_engine()
            raise

    def _serve(self) -> Server:
        given = [f"--runtime-option={option}" for option in self.options]
        words = ["--runtime", f"{self.name}={shutil.which(self.program)}", "--personal", "--retry-delay", "20", *given]
        return Server(self.folder / "data", *words, environment=self.environment).start()

    @abstractmethod
    def start(self) -> list[str]:
        """The command that is the engine."""

    @abstractmethod
    def clean(self) -> None:
        """Remove what the engine leaves when it ends."""

    def ask(self, *arguments: str) -> str:
        command = [self.program, *self.options, *arguments]
        return subprocess.run(command, env=self.environment, check=False, capture_output=True, text=True).stdout

    def names(self) -> list[str]:
        return self.ask("ps", "--all", "--format={{.Names}}").split()

    def submit(self, name: str, script: str = "", **spec: Any) -> str:
        words = {"command": "/bin/sh", "args": "-c " + json.dumps(script)} if script else {}
        fixed = {"backoffLimit": 0, "terminationGracePeriodSeconds": 1}
        body = {
            "name": name,
            "projectId": "1",
            "clusterId": self.server.credentials["clusterId"],
            "spec": {"image": IMAGE, **fixed, **words, **spec},
        }
        answer = self.server.call("POST", "/api/v1/workloads/trainings", body)
        assert answer.status == 202, answer
        return str(answer.json["workloadId"])

    def look(self, name: str, script: str = "", **spec: Any) -> str:
        workload = self.submit(name, script, **spec)
        ended = self.server.until_phase(workload, "Completed", "Failed")
        assert ended["phase"] == "Completed", (ended["phaseMessage"], self.server.logs(workload))
        assert "image" not in conditions(self.server, workload, "NotEnforced")
        # nerdctl has words of its own about what ends at once.
        lines = self.server.logs(workload).splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith('time="'))

    def fail(self, name: str, script: str = "", **spec: Any) -> str:
        return str(self.server.until_phase(self.submit(name, script, **spec), "Failed")["phaseMessage"])

    def delete(self, workload: str) -> None:
        assert self.server.call("DELETE", f"/api/v1/workloads/trainings/{workload}").status == 202
        until(lambda: not self.names(), "no container is left")

    def close(self) -> None:
        self.server.close()
        for name in self.names():
            self.ask("rm", "--force", name)
        self._end_engine()

    def _end_engine(self) -> None:
        self.engine.terminate()
        self.engine.wait(60)
        self.clean()
        shutil.rmtree(self.running, ignore_errors=True)


class Docker(ContainerEngine):
    name = program = "docker"

    def start(self) -> list[str]:
        host = f"unix://{self.running}/docker.sock"
        self.environment["DOCKER_HOST"] = host
        words = [f"--data-root={self.folder}/engine", f"--exec-root={self.running}", f"--pidfile={self.running}/pid"]
        return ["dockerd", *words, f"--host={host}", "--iptables=false", "--bridge=none", "--storage-driver=vfs"]

    def clean(self) -> None:
        subprocess.run(["umount", f"{self.running}/netns/default"], check=False, capture_output=True)


class Containerd(ContainerEngine):
    name, program = "containerd", "nerdctl"

    def start(self) -> list[str]:
        configuration = self.folder / "containerd.toml"
        configuration.write_text(_CONTAINERD.format(folder=self.folder, running=self.running))
        self.options = [f"--address={self.running}/sock", f"--data-root={self.folder}/nerdctl"]
        return ["containerd", f"--config={configuration}"]

    def clean(self) -> None:
        """It leaves nothing."""


def make_image_archive(folder: Path) -> Path:
    """One small image as runtimes save it to a file, made without any of them."""
    layer = make_archive(folder).read_bytes()
    identity = hashlib.sha256(layer).hexdigest()
    run = {"Entrypoint": ["/bin/echo", "the entry point"], "Cmd": ["and its arguments"], "Env": ["PATH=/bin"]}
    layers = {"type": "layers", "diff_ids": [f"sha256:{identity}"]}
    about = json.dumps({"architecture": "amd64", "os": "linux", "config": run, "rootfs": layers}).encode()
    named = [{"Config": "about.json", "RepoTags": [IMAGE], "Layers": [f"{identity}/layer.tar"]}]
    files = {"about.json": about, f"{identity}/layer.tar": layer, "manifest.json": json.dumps(named).encode()}
    archive = folder / "image.tar"
    with tarfile.open(archive, "w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return archive
