"""Trainings in containers by Docker and by containerd: what an engine can be handed, what is refused, and that nothing
is left."""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.cli_calls import Caller
from tests.e2e.container_engines import Containerd, ContainerEngine, Docker
from tests.e2e.fields import conditions
from tests.e2e.server import until
from tests.e2e.web import bearer, exposed, fetch

pytestmark = pytest.mark.debian("busybox-static")
ENGINES = [
    pytest.param(
        Docker,
        id="docker",
        marks=[
            pytest.mark.docker,
            pytest.mark.skipif(shutil.which("dockerd") is None, reason="needs Docker's engine (make test-docker)"),
        ],
    ),
    pytest.param(
        Containerd,
        id="containerd",
        marks=[
            pytest.mark.containerd,
            pytest.mark.skipif(shutil.which("nerdctl") is None, reason="needs nerdctl (make test-containerd)"),
        ],
    ),
]


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerEngine]:
    engine = request.param(tmp_path_factory.mktemp("engine"))
    yield engine
    engine.close()


def test_image_arguments_and_variables(engine: ContainerEngine) -> None:
    assert engine.look("entry") == "the entry point and its arguments\n"
    variables = [{"name": "MINE", "value": "a b"}, {"name": "LINES", "value": "one\n two\n"}]
    script = 'echo $MINE; echo $(MINE); echo "$LINES"'
    assert engine.look("variables", script, environmentVariables=variables) == "a b\na b\none\n two\n\n"
    assert "could not run the image" in engine.fail("absent", image="localhost/none:1", imagePullPolicy="Never")


def test_an_archive_of_an_image(engine: ContainerEngine) -> None:
    image = f"docker-archive:{engine.archive}"
    assert "the entry point and its arguments\n" in engine.look("archive", image=image)
    assert "could not load the image" in engine.fail("no-archive", image="docker-archive:/nowhere.tar")
    assert "loads archives only" in engine.fail("no-folder", image=f"dir:{engine.folder}")


def test_volumes_that_an_engine_can_be_handed(engine: ContainerEngine) -> None:
    (engine.folder / "shown").mkdir()
    (engine.folder / "shown" / "file").write_text("of-the-machine")
    storage = {
        "emptyDirVolume": [{"path": "/plain"}, {"path": "/memory", "medium": "Memory", "sizeLimit": "4Mi"}],
        "hostPath": [{"path": f"{engine.folder}/shown", "mountPath": "/shown"}],
        "pvc": [{"path": "/claim", "claimInfo": {"size": "16Mi"}}],
    }
    script = "touch /plain/a /claim/b && echo written; grep -o '/memory tmpfs' /proc/mounts; cat /shown/file"
    assert engine.look("volumes", script, storage=storage).split() == ["written", "/memory", "tmpfs", "of-the-machine"]
    kept = {"name": "hushed", "projectId": "1", "data": {"k": "v"}}
    assert engine.server.call("POST", "/api/v1/secrets", kept).status == 201
    secret = {"secretVolume": [{"secret": "hushed", "mountPath": "/s"}]}
    assert f"{engine.name} cannot mount it here" in engine.fail("secret", "true", storage=secret)


def test_security_and_limits(engine: ContainerEngine) -> None:
    security = {"uidGidSource": "custom", "runAsUid": 61_234, "runAsGid": 61_235, "readOnlyRootFilesystem": True}
    script = "id -u; id -g; touch /tmp/x 2>/dev/null && echo written || echo read-only"
    assert engine.look("security", script, security=security).split() == ["61234", "61235", "read-only"]
    hungry = "x=xxxxxxxxxxxxxxxx; while true; do x=$x$x; done"
    message = engine.fail("hungry", hungry, compute={"cpuMemoryLimit": "32Mi"})
    # Docker tells that it was for its memory; containerd tells that it was killed.
    assert "memory" in message
    assert "limit" in message
    until(lambda: not engine.names(), "no container is left")


def test_a_command_beside_it(engine: ContainerEngine) -> None:
    workload = engine.submit("beside", "sleep 600")
    engine.server.until_phase(workload, "Running")
    called = Caller(engine.server.data_dir)(
        "training", "exec", "beside", "--", "/bin/sh", "-c", "cat /etc/mark; exit 7"
    )
    # What nerdctl runs beside a container fails with 1, whatever it failed with.
    assert (called.out, called.code) == ("this is the image\n", 1 if engine.program == "nerdctl" else 7)
    engine.delete(workload)


def test_a_port_behind_a_url(engine: ContainerEngine) -> None:
    probe = {"readiness": {"periodSeconds": 1, "handler": {"httpGet": {"port": 18_377}}}}
    script = "echo hello > /tmp/index.html; httpd -f -p 18377 -h /tmp"
    workload = engine.submit("web", script, exposedUrls=[{"container": 18_377}], probes=probe)
    engine.server.until_phase(workload, "Running")
    assert "share this machine's network" in conditions(engine.server, workload, "NotEnforced")["exposedUrls"]
    assert fetch(exposed(engine.server, workload), "/index.html", **bearer(engine.server.token)).body == b"hello\n"
    engine.delete(workload)


def test_what_starts_programs_in_other_pods_is_refused(engine: ContainerEngine) -> None:
    spec: dict[str, Any] = {"image": "x", "command": "true", "distributedFramework": "MPI", "numWorkers": 1}
    body = {"name": "ring", "projectId": "1", "clusterId": engine.server.credentials["clusterId"], "spec": spec}
    answer = engine.server.call("POST", "/api/v1/workloads/distributed", body)
    assert answer.status == 202, answer
    assert "podman" in engine.server.until_phase(answer.json["workloadId"], "Failed")["phaseMessage"]


def test_nothing_is_left_after_a_lost_supervisor(engine: ContainerEngine) -> None:
    workload = engine.submit("lost", "sleep 600")
    engine.server.until_phase(workload, "Running")
    (name,) = until(engine.names, "its container")
    live = engine.server.data_dir / "pods" / "live" / name.removeprefix("fairlead-")
    os.kill(json.loads(live.read_text().splitlines()[-1])["pid"], signal.SIGKILL)
    assert until(lambda: name not in engine.names(), "the end of the container")
    engine.delete(workload)
    assert until(lambda: engine.names() == [], "the end of the next attempt's")
