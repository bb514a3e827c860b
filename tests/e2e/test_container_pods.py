"""Trainings in containers, further: variables of many lines, slow images, buckets, data volumes, mpirun. As root."""

import base64
import json
import os
import tarfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.container_server import IMAGE, ContainerServer, opened
from tests.e2e.registry import Registry
from tests.e2e.server import until
from tests.e2e.several import all_pods, delete, outputs, scale, serve, train, until_pods
from tests.s3_service import serving

pytestmark = [
    pytest.mark.debian("podman"),
    pytest.mark.debian("runc"),
    pytest.mark.debian("busybox-static"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only a server of root prepares every kind of volume for containers"),
]
AT_ONCE: dict[str, Any] = {"terminationGracePeriodSeconds": 1}
MANY_LINES = "first line\n  second 'line' with a planted-canary\n\nlast"
MACHINE, OTHER = "localhost/fairlead-machine:1", "localhost/fairlead-other:1"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with Registry(tmp_path_factory.mktemp("registry"), "reader", "let-me-in") as registry:
        yield registry


@pytest.fixture(scope="module")
def containers(tmp_path_factory: pytest.TempPathFactory, registry: Registry) -> Iterator[ContainerServer]:
    environment = {**os.environ, "CONTAINERS_REGISTRIES_CONF": str(registry.configuration)}
    with opened(tmp_path_factory.mktemp("box"), "--personal", environment=environment) as containers:
        fill_with_other(registry, containers)
        auth = base64.b64encode(b"reader:let-me-in").decode()
        auths = json.dumps({"auths": {registry.address: {"auth": auth}}})
        kept = {"name": "pull", "projectId": "1", "data": {".dockerconfigjson": auths}}
        assert containers.server.call("POST", "/api/v1/secrets", kept).status == 201
        yield containers


def fill_with_other(registry: Registry, containers: ContainerServer) -> None:
    """Give the registry an image of which this machine has no layer."""
    (containers.folder / "root" / "etc" / "mark").write_text("of the registry")
    archive = containers.folder / "other.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(containers.folder / "root", arcname=".")
    containers.podman("import", str(archive), OTHER)
    registry.fill(containers, OTHER)
    containers.podman("rmi", "--force", OTHER)


def test_environment_variables_of_many_lines(containers: ContainerServer) -> None:
    """Whole inside, in the words that it was given by a secret too, and in no list of processes."""
    kept = {"name": "text", "projectId": "1", "data": {"letter": MANY_LINES}}
    assert containers.server.call("POST", "/api/v1/secrets", kept).status == 201
    variables = [
        {"name": "MINE", "value": MANY_LINES},
        {"name": "LETTER", "secret": {"name": "text", "key": "letter"}},
        {"name": "SHORT", "value": "one"},
    ]
    script = 'echo "$MINE"; test "$MINE" = "$LETTER" && echo same $SHORT; exec sleep 600'
    workload = containers.submit("lines", script, environmentVariables=variables)
    containers.server.until_phase(workload, "Running")
    until(lambda: containers.server.logs(workload) == f"{MANY_LINES}\nsame one\n", "what it was given")
    assert not [words for words in command_lines() if "planted-canary" in words]
    containers.delete(workload)
    until(lambda: not containers.names(), "its container removed")


def command_lines() -> list[str]:
    """What everybody on this machine can read of its processes."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(entry.read_bytes().decode(errors="replace"))
        except OSError:
            continue  # it has ended
    return found


def test_variables_of_many_lines_that_a_runtime_would_heed_are_refused(containers: ContainerServer) -> None:
    variables = [{"name": "LD_PRELOAD", "value": "/tmp/mine.so\n"}]
    workload = containers.submit("heeded", "true", environmentVariables=variables, backoffLimit=0)
    assert "LD_PRELOAD" in containers.server.until_phase(workload, "Failed")["phaseMessage"]


def test_a_pod_runs_when_its_image_is_there(containers: ContainerServer, registry: Registry) -> None:
    registry.hold()
    given: dict[str, Any] = {"imagePullSecrets": [{"name": "pull"}], "imagePullPolicy": "Always"}
    workload = containers.submit(
        "slow", "cat /etc/mark; sleep 600", image=f"{registry.address}/box:1", **given, **AT_ONCE
    )
    until(partial(is_being_made, containers, workload), "its container, which is on its way")
    assert containers.server.workload(workload)["phase"] == "Initializing"
    assert "podman pulls the image" in containers.server.message(workload)
    registry.gives.set()
    containers.server.until_phase(workload, "Running")
    (pod,) = all_pods(containers.server, workload)
    assert (pod["k8sPhase"], pod.get("reason")) == ("Running", None)
    assert containers.server.history(workload).count("Running") == 1
    until(lambda: containers.server.logs(workload) == "of the registry", "what its program says")
    containers.delete(workload)
    until(lambda: not containers.names(), "the container is gone")
    containers.podman("rmi", "--force", f"{registry.address}/box:1")


def is_being_made(containers: ContainerServer, workload: str) -> bool:
    return [pod.get("reason") for pod in all_pods(containers.server, workload)] == ["ContainerCreating"]


def test_an_image_that_never_comes_can_be_given_up(containers: ContainerServer, registry: Registry) -> None:
    registry.hold()
    image = f"{registry.address}/box:1"
    given: dict[str, Any] = {"imagePullSecrets": [{"name": "pull"}], "imagePullPolicy": "Always"}
    workload = containers.submit("patience", "true", image=image, **given, **AT_ONCE)
    assert registry.is_asked.wait(60)
    assert is_being_made(containers, workload)
    containers.delete(workload)
    until(lambda: containers.server.workload(workload)["runningPods"] == 0, "its end")
    until(lambda: not [words for words in command_lines() if image in words], "the end of the runtime")
    registry.gives.set()
    assert "Running" not in containers.server.history(workload)


def test_s3(containers: ContainerServer) -> None:
    """Objects are files of the container's own user; what it changes goes back."""
    data = {"AccessKeyId": "AKIDEXAMPLE", "SecretKey": "very-secret-key"}
    assert (
        containers.server.call("POST", "/api/v1/secrets", {"name": "keys", "projectId": "1", "data": data}).status
        == 201
    )
    with serving() as service:
        service.make("shared", deep__file="from the bucket", changed="before")
        storage = {"s3": [{"bucket": "shared", "path": "/bucket", "url": service.url, "accessKeySecret": "keys"}]}
        script = "cat /bucket/deep/file; echo after > /bucket/changed; echo new > /bucket/more"
        assert containers.look("s3", script, storage=storage) == "from the bucket"
        assert service.get("shared", "changed") == "after\n"
        assert service.get("shared", "more") == "new\n"


def test_data_volume(containers: ContainerServer) -> None:
    """In the project that it comes from, and read-only in another."""
    claim = {"claimName": "corpus", "path": "/corpus", "claimInfo": {"size": "16Mi"}}
    containers.look("writes", "echo text > /corpus/book", storage={"pvc": [claim]})
    made = containers.server.call(
        "POST", "/api/v1/datavolumes", {"name": "texts", "originPvcName": "corpus", "projectId": "1"}
    )
    assert made.status == 201, made
    project = {"name": "readers", "clusterId": containers.server.credentials["clusterId"], "resources": []}
    other = str(containers.server.call("POST", "/api/v1/org-unit/projects", project).json["id"])
    share = {"add": [{"scopeId": other, "scopeType": "project"}]}
    assert containers.server.call("PATCH", f"/api/v1/datavolumes/{made.json['id']}/sharedScopes", share).status == 200
    storage = {"dataVolume": [{"id": made.json["id"], "mountPath": "/shared"}]}
    assert (
        containers.look("owns", "cat /shared/book; touch /shared/new && echo written", storage=storage)
        == "text\nwritten"
    )
    script = "cat /shared/book; touch /shared/more 2>/dev/null || echo read-only"
    assert containers.look("reads", script, project=other, storage=storage) == "text\nread-only"


#: Folders of this machine that make an image of it, with Open MPI and Python.
OF_MACHINE = ("/usr", "/etc/alternatives", "/etc/openmpi")


def make_machine_image(containers: ContainerServer, folder: Path) -> None:
    """An image whose programs are those of this machine, for folders that are mounted into it."""
    archive = folder / "machine.tar"
    with tarfile.open(archive, "w") as tar:
        for name in ("tmp", "etc", "proc", "dev", "sys", "root", "usr"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(entry)
        for name in ("bin", "sbin", "lib", "lib64"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            tar.addfile(link)
    containers.podman("import", str(archive), MACHINE)


@pytest.mark.debian("openmpi-bin")
def test_mpirun_starts_its_processes_in_the_workers_containers(containers: ContainerServer, tmp_path: Path) -> None:
    make_machine_image(containers, tmp_path)
    mounts = [{"path": path, "mountPath": path} for path in OF_MACHINE]
    spec = {
        "image": MACHINE,
        "command": "sh -c",
        "args": "'mpirun -n 4 sh -c \"hostname; test -d /home || echo contained\"'",
        "distributedFramework": "MPI",
        "numWorkers": 2,
        "slotsPerWorker": 2,
        "backoffLimit": 0,
        "terminationGracePeriodSeconds": 1,
        "storage": {"hostPath": mounts},
    }
    workload = train(containers.server, "ring", spec)
    ended = containers.server.until_phase(workload, "Completed", "Failed", patience=180)
    said = outputs(containers.server, workload)
    assert ended["phase"] == "Completed", (ended["phaseMessage"], said)
    words = [
        word for word in said["ring-launcher-0"].split() if word in ("contained", "ring-worker-0", "ring-worker-1")
    ]
    assert sorted(words) == ["contained"] * 4 + ["ring-worker-0"] * 2 + ["ring-worker-1"] * 2
    until(lambda: not containers.names(), "the containers are gone")


def test_groups_of_containers_find_their_leaders(containers: ContainerServer) -> None:
    """Two leaders on the same port at once, each reached by its own worker by name."""

    def shell(script: str) -> dict[str, Any]:
        # The first process of a container hears of its end only if it asks for it.
        words = json.dumps(f"trap 'exit 0' TERM; {script}; while true; do sleep 0.1; done")
        return {"image": IMAGE, "command": "/bin/sh -c", "args": words}

    ask = "until wget -q -O - http://$LWS_LEADER_ADDRESS:8080/name 2>/dev/null; do sleep 0.1; done"
    spec = {
        "replicas": 2,
        "workers": 1,
        "leader": shell("hostname > /tmp/name; httpd -p 8080 -h /tmp"),
        "worker": shell(ask),
        "servingPort": {"port": 8080},
    }
    workload = serve(containers.server, "pair", **spec)
    containers.server.until_phase(workload, "Running")
    for group in ("pair-0", "pair-1"):
        until(partial(has_said, containers, workload, f"{group}-1", f"{group}\n"), "the answer of its own leader")
    assert scale(containers.server, workload, 1).status == 202
    until_pods(containers.server, workload, "pair-0", "pair-0-1")
    delete(containers.server, workload)
    until(lambda: not containers.names(), "the containers are gone")


def has_said(containers: ContainerServer, workload: str, pod: str, words: str) -> bool:
    return containers.server.logs(workload, f"?pod={pod}") == words
