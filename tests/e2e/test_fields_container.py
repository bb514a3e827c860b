"""Volumes, network, credentials and limits of a training in a container, seen from inside it. By podman, as root."""

import base64
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.e2e.cli_calls import Caller
from tests.e2e.container_server import IMAGE, ContainerServer, beside, opened
from tests.e2e.fields import conditions, refuse
from tests.e2e.registry import Registry
from tests.e2e.server import until
from tests.e2e.web import bearer, exposed, fetch

pytestmark = [
    pytest.mark.debian("podman"),
    pytest.mark.debian("runc"),
    pytest.mark.debian("busybox-static"),
    pytest.mark.debian("e2fsprogs"),
    pytest.mark.debian("git"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only a server of root prepares every kind of volume for containers"),
]
NODE = "here:cpu=4,memory=4Gi,gpus=4,gpu-memory=16Gi"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with Registry(tmp_path_factory.mktemp("registry"), "reader", "let-me-in") as registry:
        yield registry


@pytest.fixture(scope="module")
def containers(tmp_path_factory: pytest.TempPathFactory, registry: Registry) -> Iterator[ContainerServer]:
    folder = tmp_path_factory.mktemp("box")
    environment = {**os.environ, "CONTAINERS_REGISTRIES_CONF": str(registry.configuration)}
    with opened(
        folder, "--personal", "--node", NODE, "--allow", "git-protocol=http", environment=environment
    ) as containers:
        registry.fill(containers)
        yield containers


@pytest.fixture(scope="module")
def git_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A repository with one file, behind a web server."""
    folder = tmp_path_factory.mktemp("repository")
    me = ["-c", "user.name=me", "-c", "user.email=me@example.com", "-c", "init.defaultBranch=main"]
    (folder / "work").mkdir()
    (folder / "work" / "README").write_text("a repository\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", *me, *words], check=True, cwd=folder / "work")
    subprocess.run(["git", "clone", "-q", "--bare", folder / "work", folder / "r.git"], check=True)
    subprocess.run(["git", "update-server-info"], check=True, cwd=folder / "r.git")
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/r.git"
        server.shutdown()


@pytest.fixture(scope="module")
def shared(containers: ContainerServer) -> Iterator[ContainerServer]:
    (containers.folder / "allowed").mkdir()
    with beside(containers, "--allow", f"host-path={containers.folder}/allowed") as shared:
        yield shared


def keep(containers: ContainerServer, kind: str, name: str, values: dict[str, str]) -> str:
    answer = containers.server.call("POST", f"/api/v1/{kind}", {"name": name, "projectId": "1", "data": values})
    assert answer.status == 201, answer
    return str(answer.json["id"])


# Volumes


def test_files_of_config_maps_and_secrets(containers: ContainerServer) -> None:
    keep(containers, "config-maps", "settings", {"a.conf": "x=1\n", "b.conf": "y=2\n"})
    keep(containers, "secrets", "hushed", {"token": "planted-canary"})
    storage = {
        "configMapVolume": [
            {"configMap": "settings", "mountPath": "/conf"},
            {"configMap": "settings", "mountPath": "/etc/only.conf", "subPath": "b.conf"},
        ],
        "secretVolume": [{"secret": "hushed", "mountPath": "/hushed", "defaultMode": "0400"}],
    }
    script = (
        "cat /conf/a.conf /etc/only.conf; stat -L -c %a /hushed/token; cat /hushed/token | tr a-z A-Z; echo;"
        "touch /conf/new /hushed/new 2>/dev/null || echo read-only"
    )
    assert containers.look("files", script, storage=storage).split() == [
        "x=1",
        "y=2",
        "400",
        "PLANTED-CANARY",
        "read-only",
    ]
    found = [path for path in containers.folder.rglob("*") if path.is_file() and b"planted-canary" in path.read_bytes()]
    assert found == []


def test_files_follow_changes(shared: ContainerServer) -> None:
    """In a container that runs, and as its own user, without a restart."""
    id = keep(shared, "secrets", "followed", {"token": "first"})
    storage = {"secretVolume": [{"secret": "followed", "mountPath": "/followed", "defaultMode": "0400"}]}
    script = (
        "cat /followed/token; echo; until test -e /followed/more; do sleep 0.1; done; ls /followed; cat /followed/more"
    )
    workload = shared.submit("following", script, storage=storage)
    shared.server.until_phase(workload, "Running")
    until(lambda: "first" in shared.server.logs(workload), "what it is at first")
    answer = shared.server.call("PUT", f"/api/v1/secrets/{id}", {"data": {"more": "second"}})
    assert answer.status == 200, answer
    shared.server.until_phase(workload, "Completed")
    assert shared.server.logs(workload).split() == ["first", "more", "second"]


def test_empty_dirs(containers: ContainerServer) -> None:
    storage = {
        "emptyDirVolume": [
            {"path": "/plain"},
            {"path": "/memory", "medium": "Memory", "sizeLimit": "4Mi"},
            {"path": "/bounded", "sizeLimit": "8Mi"},
        ]
    }
    script = (
        "touch /plain/a && echo plain; grep -o '/memory tmpfs' /proc/mounts; grep -o '/bounded ext4' /proc/mounts;"
        "for place in memory bounded; do"
        " dd if=/dev/zero of=/$place/full bs=1M count=32 2>/dev/null || echo $place is full; done"
    )
    want = ["plain", "/memory tmpfs", "/bounded ext4", "memory is full", "bounded is full"]
    assert containers.look("empty", script, storage=storage).splitlines() == want


def test_a_claim_is_the_same_for_containers_and_processes(containers: ContainerServer) -> None:
    claim = {"claimName": "between", "path": "/claim"}
    made = {"pvc": [{**claim, "claimInfo": {"size": "16Mi"}}]}
    keeper = containers.submit("keeper", "echo from a container > /claim/note; sleep 600", storage=made)
    containers.server.until_phase(keeper, "Running")
    on_host = {"annotations": [{"name": "fairlead/runtime", "value": "host"}]}
    there = {"pvc": [{**claim, "existingPvc": True}]}
    script = "until test -s /claim/note; do sleep 0.1; done; cat /claim/note"
    assert containers.look("process", script, storage=there, **on_host) == "from a container"
    only = {"pvc": [{**claim, "existingPvc": True, "readOnly": True}]}
    assert (
        containers.look("reader", "touch /claim/x 2>/dev/null || cat /claim/note", storage=only) == "from a container"
    )
    containers.delete(keeper)
    until(lambda: not containers.names(), "the container is gone")


def test_host_path(shared: ContainerServer) -> None:
    allowed = shared.folder / "allowed"
    (allowed / "file").write_text("of the machine\n")
    (allowed / "way-out").symlink_to("/etc")
    storage = {"hostPath": [{"path": str(allowed), "mountPath": "/machine"}]}
    script = "cat /machine/file; touch /machine/new 2>/dev/null || echo read-only"
    assert shared.look("host-path", script, storage=storage).splitlines() == ["of the machine", "read-only"]
    outside = {"hostPath": [{"path": f"{allowed}/way-out", "mountPath": "/machine"}]}
    escaped = shared.submit("escaped", "cat /machine/passwd", storage=outside, backoffLimit=0)
    assert shared.server.until_phase(escaped, "Failed")["phaseMessage"]
    assert "root:" not in shared.server.logs(escaped)
    other = {"hostPath": [{"path": "/etc", "mountPath": "/machine"}]}
    assert "allowed" in refuse(shared.server, "other", image=IMAGE, storage=other)


def test_git(containers: ContainerServer, git_url: str) -> None:
    storage = {"git": [{"repository": git_url, "path": "/code"}]}
    assert containers.look("git", "cat /code/README", storage=storage) == "a repository"
    broken = {"git": [{"repository": f"{git_url}-not-there", "path": "/code"}]}
    workload = containers.submit("no-git", "true", storage=broken, backoffLimit=0)
    assert "git" in containers.server.until_phase(workload, "Failed")["phaseMessage"]


def test_volumes_belong_to_the_containers_own_user(shared: ContainerServer) -> None:
    keep(shared, "secrets", "mine", {"token": "for-its-user"})
    storage = {
        "secretVolume": [{"secret": "mine", "mountPath": "/mine", "defaultMode": "0400"}],
        "emptyDirVolume": [{"path": "/scratch", "sizeLimit": "8Mi"}],
    }
    script = "id -u; cat /mine/token; echo; touch /scratch/new && echo written"
    assert shared.look("as-root", script, storage=storage).split() == ["0", "for-its-user", "written"]
    security = {"uidGidSource": "custom", "runAsUid": 4_321, "runAsGid": 4_321}
    arguments = shared.look("as-other", script, storage=storage, security=security).split()
    assert arguments == ["4321", "for-its-user", "written"]


def test_create_home_dir(containers: ContainerServer) -> None:
    script = "echo $HOME; touch $HOME/mine && stat -c %a $HOME"
    assert containers.look("home", script, createHomeDir=True).split() == ["/home/runai-home", "700"]


# Network

SERVE = "echo hello > /tmp/index.html; httpd -f -p 8080 -h /tmp"


def test_a_plain_container_of_a_shared_server_has_its_own_network(shared: ContainerServer) -> None:
    """So do commands beside it, although the runtime takes its network for the machine's."""
    script = "hostname; cat /proc/net/dev; sleep 600"
    workload = shared.submit("alone", script, terminationGracePeriodSeconds=0)
    shared.server.until_phase(workload, "Running")
    inside = Caller(shared.server.data_dir).ok("training", "exec", "alone", "--", "cat", "/proc/net/dev")
    until(lambda: "eth0" in shared.server.logs(workload), "what it says")
    for said in (shared.server.logs(workload), inside):
        assert {line.split(":")[0].strip() for line in said.splitlines() if ":" in line} == {"lo", "eth0"}
    assert shared.server.logs(workload).startswith("alone-0-0\n")
    assert "a network of its own" in conditions(shared.server, workload, "Isolation")["Container"]
    shared.delete(workload)


def test_ports_urls_and_probes(containers: ContainerServer) -> None:
    """Two containers listen on the same port, are ready when their probes pass, and are reached by URL and port."""
    probe = {"readiness": {"periodSeconds": 1, "handler": {"httpGet": {"port": 8080, "path": "/ready"}}}}
    spec: dict[str, Any] = {
        "exposedUrls": [{"container": 8080}],
        "ports": [{"container": 8080, "serviceType": "NodePort"}],
        "probes": probe,
    }
    twins = [containers.submit(name, f"hostname > /tmp/name; {SERVE}", **spec) for name in ("twin-one", "twin-two")]
    for twin in twins:
        until(partial(is_unready, containers, twin), "its probe, which does not pass yet")
    for twin in twins:
        name = f"fairlead-{pod_id(containers, twin)}.1"
        until(partial(is_there, containers, name), "its container")
        containers.podman("exec", name, "/bin/touch", "/tmp/ready")
        containers.server.until_phase(twin, "Running")
        answer = fetch(exposed(containers.server, twin), "/name", **bearer(containers.server.token))
        assert (answer.status, answer.body.decode()[:5]) == (200, "twin-")
        connections = containers.server.workload(twin)["externalConnections"]
        assert any(each["connectionType"] == "NodePort" for each in connections)
        containers.delete(twin)
    until(lambda: not containers.names(), "the containers are gone")


def is_unready(containers: ContainerServer, workload: str) -> bool:
    return "readiness" in containers.server.message(workload)


def is_there(containers: ContainerServer, name: str) -> bool:
    return name in containers.podman("ps", "--format={{.Names}}").split()


def pod_id(containers: ContainerServer, workload: str) -> str:
    (pod,) = containers.server.call("GET", f"/api/v1/workloads/{workload}/pods").json["pods"]
    return str(pod["id"])


# Credentials


def test_image_pull_secrets_name(containers: ContainerServer, registry: Registry) -> None:
    image = f"{registry.address}/box:1"
    denied = containers.submit("denied", image=image, imagePullPolicy="Always", backoffLimit=0)
    assert "could not run the image" in containers.server.until_phase(denied, "Failed")["phaseMessage"]
    auth = base64.b64encode(b"reader:let-me-in").decode()
    configuration = json.dumps({"auths": {registry.address: {"auth": auth}}})
    keep(containers, "secrets", "registry", {".dockerconfigjson": configuration})
    given: dict[str, Any] = {"imagePullSecrets": [{"name": "registry"}], "imagePullPolicy": "Always"}
    assert containers.look("let-in", image=image, **given) == "the entry point and its arguments"
    found = [path for path in containers.folder.rglob("*") if path.is_file() and auth.encode() in path.read_bytes()]
    assert found == []


def test_image_pull_secrets_user_credential(containers: ContainerServer, registry: Registry) -> None:
    auth = base64.b64encode(b"reader:let-me-in").decode()
    data = {".dockerconfigjson": json.dumps({"auths": {registry.address: {"auth": auth}}})}
    answer = containers.server.call("POST", "/api/v1/user-credentials", {"name": "my-registry", "data": data})
    assert answer.status == 201, answer
    given: dict[str, Any] = {
        "imagePullSecrets": [{"name": "my-registry", "userCredential": True}],
        "imagePullPolicy": "Always",
    }
    assert containers.look("own", image=f"{registry.address}/box:1", **given) == "the entry point and its arguments"


# Compute


def test_gpu_environment(containers: ContainerServer) -> None:
    compute = {"gpuDevicesRequest": 2}
    script = "echo $CUDA_VISIBLE_DEVICES/$NVIDIA_VISIBLE_DEVICES/$RUNAI_NUM_OF_GPUS"
    visible, names, number = containers.look("devices", script, compute=compute).split("/")
    assert (visible, number) == (names, "2")
    assert len(set(visible.split(","))) == 2


def test_limits(containers: ContainerServer) -> None:
    """The runtime's own groups hold what is asked; the script reads them in whichever layout there is."""
    script = (
        "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null"
        " || cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/memory.max"
    )
    arguments = containers.look("limits", script, compute={"cpuCoreLimit": 0.5, "cpuMemoryLimit": "64Mi"}).split()
    assert arguments[0] == "50000"
    assert arguments[-1] == str(64 << 20)


def test_large_shm_request(containers: ContainerServer) -> None:
    script = "dd if=/dev/zero of=/dev/shm/much bs=1M count=80 2>/dev/null && echo room || echo full"
    assert containers.look("small", script) == "full"
    assert containers.look("large", script, compute={"largeShmRequest": True}) == "room"
