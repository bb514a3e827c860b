"""Trainings in containers by Docker: what its engine can be handed, what is refused, and that nothing is left."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.container_box import IMAGE, make_archive
from tests.e2e.fields import conditions
from tests.e2e.server import Server, until
from tests.e2e.web import bearer, exposed, fetch

pytestmark = [
    pytest.mark.docker,
    pytest.mark.debian("busybox-static"),
    pytest.mark.skipif(shutil.which("dockerd") is None, reason="needs Docker's engine (make test-docker)"),
]


class Docker:
    """An engine on a folder of its own that leaves the machine's network alone, and a server that runs pods by it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # A socket's path is short.
        self.running = tempfile.mkdtemp(prefix="fairlead")
        self.host = f"unix://{self.running}/docker.sock"
        self.environment = {**os.environ, "DOCKER_HOST": self.host}
        words = [f"--data-root={folder}/engine", f"--exec-root={self.running}", f"--pidfile={self.running}/pid"]
        words += [f"--host={self.host}", "--iptables=false", "--bridge=none", "--storage-driver=vfs"]
        with open(folder / "engine.log", "wb") as log:
            self.engine = subprocess.Popen(["dockerd", *words], stdout=log, stderr=log)
        until(lambda: self.ask("info", "--format={{.ServerVersion}}").strip(), "Docker's engine")
        changes = ['--change=ENTRYPOINT ["/bin/echo", "the entry point"]', '--change=CMD ["and its arguments"]']
        self.ask("import", *changes, str(make_archive(folder)), IMAGE)
        words = ["--runtime", "docker", "--personal", "--retry-delay", "20"]
        self.server = Server(folder / "data", *words, environment=self.environment).start()

    def ask(self, *words: str) -> str:
        command = ["docker", *words]
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

    def look(self, name: str, script: str = "", **spec: Any) -> list[str]:
        workload = self.submit(name, script, **spec)
        ended = self.server.until_phase(workload, "Completed", "Failed")
        assert ended["phase"] == "Completed", ended["phaseMessage"]
        assert "image" not in conditions(self.server, workload, "NotEnforced")
        return self.server.logs(workload).split()

    def fail(self, name: str, script: str = "", **spec: Any) -> str:
        return str(self.server.until_phase(self.submit(name, script, **spec), "Failed")["phaseMessage"])

    def close(self) -> None:
        self.server.close()
        for name in self.names():
            self.ask("rm", "--force", name)
        self.engine.terminate()
        self.engine.wait(60)
        subprocess.run(["umount", f"{self.running}/netns/default"], check=False, capture_output=True)
        shutil.rmtree(self.running, ignore_errors=True)


@pytest.fixture(scope="module")
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Docker]:
    docker = Docker(tmp_path_factory.mktemp("docker"))
    yield docker
    docker.close()


def test_image_words_and_variables(docker: Docker) -> None:
    assert docker.look("entry") == ["the", "entry", "point", "and", "its", "arguments"]
    variables = [{"name": "MINE", "value": "a b"}]
    assert docker.look("variables", "echo $MINE; echo $(MINE)", environmentVariables=variables) == ["a", "b"] * 2
    assert "could not run the image" in docker.fail("absent", image="localhost/none:1", imagePullPolicy="Never")


def test_volumes_that_its_engine_can_be_handed(docker: Docker) -> None:
    (docker.folder / "shown").mkdir()
    (docker.folder / "shown" / "file").write_text("of-the-machine")
    storage = {
        "emptyDirVolume": [{"path": "/plain"}, {"path": "/memory", "medium": "Memory", "sizeLimit": "4Mi"}],
        "hostPath": [{"path": f"{docker.folder}/shown", "mountPath": "/shown"}],
        "pvc": [{"path": "/claim", "claimInfo": {"size": "16Mi"}}],
    }
    script = "touch /plain/a /claim/b && echo written; grep -o '/memory tmpfs' /proc/mounts; cat /shown/file"
    assert docker.look("volumes", script, storage=storage) == ["written", "/memory", "tmpfs", "of-the-machine"]
    kept = {"name": "hushed", "projectId": "1", "data": {"k": "v"}}
    assert docker.server.call("POST", "/api/v1/secrets", kept).status == 201
    secret = {"secretVolume": [{"secret": "hushed", "mountPath": "/s"}]}
    assert "docker cannot be given it here" in docker.fail("secret", "true", storage=secret)


def test_security_and_limits(docker: Docker) -> None:
    security = {"uidGidSource": "custom", "runAsUid": 61_234, "runAsGid": 61_235, "readOnlyRootFilesystem": True}
    script = "id -u; id -g; touch /tmp/x 2>/dev/null && echo written || echo read-only"
    assert docker.look("security", script, security=security) == ["61234", "61235", "read-only"]
    hungry = "x=xxxxxxxxxxxxxxxx; while true; do x=$x$x; done"
    assert "more memory than its limit" in docker.fail("hungry", hungry, compute={"cpuMemoryLimit": "32Mi"})
    until(lambda: not docker.names(), "no container is left")


def test_a_port_behind_a_url(docker: Docker) -> None:
    probe = {"readiness": {"periodSeconds": 1, "handler": {"httpGet": {"port": 18_377}}}}
    script = "echo hello > /tmp/index.html; httpd -f -p 18377 -h /tmp"
    workload = docker.submit("web", script, exposedUrls=[{"container": 18_377}], probes=probe)
    docker.server.until_phase(workload, "Running")
    assert "share this machine's network" in conditions(docker.server, workload, "NotEnforced")["exposedUrls"]
    assert fetch(exposed(docker.server, workload), "/index.html", **bearer(docker.server.token)).body == b"hello\n"
    assert docker.server.call("DELETE", f"/api/v1/workloads/trainings/{workload}").status == 202
    until(lambda: not docker.names(), "no container is left")


def test_nothing_is_left_after_a_lost_supervisor(docker: Docker) -> None:
    workload = docker.submit("lost", "sleep 600")
    docker.server.until_phase(workload, "Running")
    (name,) = until(docker.names, "its container")
    live = docker.server.data_dir / "pods" / "live" / name.removeprefix("fairlead-")
    os.kill(json.loads(live.read_text().splitlines()[-1])["pid"], signal.SIGKILL)
    until(lambda: name not in docker.names(), "the end of the container")
    assert docker.server.call("DELETE", f"/api/v1/workloads/trainings/{workload}").status == 202
    until(lambda: not docker.names(), "the end of the next attempt's")
