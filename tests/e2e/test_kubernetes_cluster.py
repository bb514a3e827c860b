"""The cluster that `make cluster-up` starts, seen from outside: containers, names, GPUs, groups, faults, and its end.

Part of `make test-kubernetes`.
"""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.cluster import build, cluster, control, sandbox
from deploy.cluster.errors import ClusterError
from deploy.cluster.layout import name_of
from deploy.cluster.nodes import Shape, add_nodes, remove_nodes
from tests.clusters import running_cluster, set_nodes
from tests.e2e.server import until

pytestmark = pytest.mark.kubernetes
PATIENCE = 180.0
SPACE = "cluster-tests"
Kubectl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cluster.Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as started:
        # What runs here wants a kubelet.
        set_nodes(started)
        yield started


@pytest.fixture(scope="module")
def kubectl(running: cluster.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    cache = tmp_path_factory.mktemp("cache")

    def run(*arguments: str, stdin: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [build.kubectl(), f"--kubeconfig={running.kubeconfig}", f"--cache-dir={cache}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True)
        assert not check or done.returncode == 0, done.stderr
        return done

    run("create", "namespace", SPACE)
    try:
        yield run
    finally:
        run("delete", "namespace", SPACE, "--timeout=120s")


def pod(name: str, *command: str, image: str = "busybox:1.35", **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": image, "command": list(command), **spec.pop("container", {})}
    metadata = {"name": name, "namespace": SPACE, **spec.pop("metadata", {})}
    defaults = {"schedulerName": "kai-scheduler", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**defaults, "containers": [container], **spec},
    }


def queued(**labels: str) -> dict[str, Any]:
    return {"labels": {"kai.scheduler/queue": "default-queue", **labels}}


def create(kubectl: Kubectl, *objects: dict[str, Any]) -> None:
    kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))


def observe(kubectl: Kubectl, kind: str, name: str) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(kubectl("get", kind, name, "-n", SPACE, "-o", "json").stdout)
    return decoded


def wait_for_phase(kubectl: Kubectl, name: str, *phases: str) -> dict[str, Any]:
    def reached() -> dict[str, Any] | None:
        found = observe(kubectl, "pod", name)
        return found if found["status"].get("phase") in phases else None

    found: dict[str, Any] = until(reached, f"{name} to be {' or '.join(phases)}", PATIENCE)
    return found


def test_a_pod_runs_to_its_end_and_its_output_is_kept(kubectl: Kubectl) -> None:
    create(kubectl, pod("hello", "sh", "-c", "echo hello from $(hostname); exit 3", metadata=queued()))
    workload = wait_for_phase(kubectl, "hello", "Failed")
    assert workload["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert kubectl("logs", "hello", "-n", SPACE).stdout == "hello from hello\n"


def test_commands_run_in_pods_and_claims_keep_what_they_write(kubectl: Kubectl) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "kept", "namespace": SPACE},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    }
    volumes = [{"name": "kept", "persistentVolumeClaim": {"claimName": "kept"}}]
    mounts = {"volumeMounts": [{"name": "kept", "mountPath": "/kept"}]}
    create(kubectl, claim, pod("writer", "sleep", "600", metadata=queued(), volumes=volumes, container=mounts))
    wait_for_phase(kubectl, "writer", "Running")
    kubectl("exec", "writer", "-n", SPACE, "--", "sh", "-c", "echo written > /kept/file")
    kubectl("delete", "pod", "writer", "-n", SPACE)
    create(kubectl, pod("reader", "cat", "/kept/file", metadata=queued(), volumes=volumes, container=mounts))
    wait_for_phase(kubectl, "reader", "Succeeded")
    assert kubectl("logs", "reader", "-n", SPACE).stdout == "written\n"


def test_names_and_services_lead_to_pods_and_nowhere_else(kubectl: Kubectl) -> None:
    serve = "import http.server; http.server.test(http.server.SimpleHTTPRequestHandler, port=8000)"
    labelled = queued(app="web")
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": SPACE},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8000}]},
    }
    create(kubectl, service, pod("web", "python3", "-c", serve, image="python:3.11", metadata=labelled))
    wait_for_phase(kubectl, "web", "Running")
    ask = (
        "import socket, time, urllib.request\n"
        "deadline = time.monotonic() + 120\n"
        "while True:\n"
        "    try:\n"
        f"        print(urllib.request.urlopen('http://web.{SPACE}.svc.cluster.local', timeout=5).status); break\n"
        "    except OSError as error:\n"
        "        assert time.monotonic() < deadline, error\n"
        "        time.sleep(0.2)\n"
        "try:\n"
        "    socket.create_connection(('203.0.113.1', 80), 5)\n"
        "except OSError as error:\n"
        "    print('nowhere else')\n"
    )
    create(kubectl, pod("asker", "python3", "-c", ask, image="python:3.11", metadata=queued()))
    wait_for_phase(kubectl, "asker", "Succeeded", "Failed")
    assert kubectl("logs", "asker", "-n", SPACE).stdout == "200\nnowhere else\n"


def test_memory_limits_hold(kubectl: Kubectl) -> None:
    limits = {"resources": {"limits": {"memory": "32Mi"}}}
    eat = "data = bytearray(256 * 1024 * 1024)"
    create(kubectl, pod("eater", "python3", "-c", eat, image="python:3.11", metadata=queued(), container=limits))
    workload = wait_for_phase(kubectl, "eater", "Failed")
    assert workload["status"]["containerStatuses"][0]["state"]["terminated"]["reason"] == "OOMKilled"


def test_more_gpus_than_there_are_wait_and_say_why(kubectl: Kubectl) -> None:
    asked = {"resources": {"limits": {"nvidia.com/gpu": "9"}}}
    create(
        kubectl,
        pod("greedy", "true", metadata=queued(), container=asked, nodeSelector={"kubernetes.io/hostname": "worker-1"}),
    )

    def reasons() -> list[Any]:
        groups = json.loads(kubectl("get", "podgroups.scheduling.run.ai", "-n", SPACE, "-o", "json").stdout)["items"]
        owned = [one for one in groups if "greedy" in one["metadata"]["name"]]
        return [condition for one in owned for condition in one.get("status", {}).get("schedulingConditions", ())]

    found = until(reasons, "a reason on the pod group", PATIENCE)
    assert found[0]["type"] == "UnschedulableOnNodePool"
    kubectl("delete", "pod", "greedy", "-n", SPACE)


@pytest.fixture
def one_gpu(running: cluster.Cluster) -> Iterator[str]:
    """A node with a single GPU, that nobody runs."""
    add_nodes(running.api(), ["single"], Shape(gpus=1))
    yield "single"
    remove_nodes(running.api(), ["single"])


@pytest.mark.parametrize("place", ["worker-1", "single"])
def test_two_halves_share_a_gpu_and_a_third_waits(kubectl: Kubectl, one_gpu: str, place: str) -> None:
    whole = {"resources": {"limits": {"nvidia.com/gpu": "7"}}}
    here: dict[str, Any] = {"nodeSelector": {"kubernetes.io/hostname": place}}
    half = {**queued(), "annotations": {"gpu-fraction": "0.5"}}
    if place != one_gpu:
        create(kubectl, pod(f"{place}-rest", "sleep", "600", metadata=queued(), container=whole, **here))
        wait_for_phase(kubectl, f"{place}-rest", "Running")
    names = [f"{place}-half-{at}" for at in range(3)]
    create(kubectl, *(pod(name, "sleep", "600", metadata=half, **here) for name in names))

    def phases() -> list[str]:
        return sorted(observe(kubectl, "pod", name)["status"]["phase"] for name in names)

    until(lambda: phases() == ["Pending", "Running", "Running"], "two halves to run", PATIENCE)
    [waiting] = [name for name in names if observe(kubectl, "pod", name)["status"]["phase"] == "Pending"]
    [first, _] = [name for name in names if name != waiting]
    kubectl("delete", "pod", first, "-n", SPACE)
    wait_for_phase(kubectl, waiting, "Running")
    assert observe(kubectl, "pod", waiting)["spec"]["nodeName"] == place
    kubectl("delete", "pod", "-n", SPACE, "--all", "--force")


def test_groups_of_leader_and_workers_become_ready(kubectl: Kubectl) -> None:
    template = {
        "metadata": queued(),
        "spec": {
            "schedulerName": "kai-scheduler",
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "busybox:1.35", "command": ["sleep", "600"]}],
        },
    }
    create(
        kubectl,
        {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": {"name": "groups", "namespace": SPACE, **queued()},
            "spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}},
        },
    )
    until(
        lambda: observe(kubectl, "leaderworkerset", "groups").get("status", {}).get("readyReplicas") == 2,
        "both groups to be ready",
        PATIENCE,
    )
    listed = kubectl("get", "pods", "-n", SPACE, "-l", "leaderworkerset.sigs.k8s.io/name=groups", "-o", "name").stdout
    assert sorted(listed.split()) == ["pod/groups-0", "pod/groups-0-1", "pod/groups-1", "pod/groups-1-1"]
    kubectl("delete", "leaderworkerset", "groups", "-n", SPACE)


PROGRAMS = ["etcd", "kube-apiserver", "kai-scheduler", "kai-binder", "lws", "kubelet", "containerd", "stand-in"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_killed_program_comes_back_and_pods_run_again(
    running: cluster.Cluster, kubectl: Kubectl, program: str
) -> None:
    folder = running.layout.folder
    before = control.observe(folder)[program]["restarts"]
    control.kill(folder, program)
    until(lambda: control.observe(folder)[program]["restarts"] > before, f"{program} to be started again", PATIENCE)
    with running.api() as api:
        until(api.is_ready, "the API server", PATIENCE)
    until(
        lambda: (
            kubectl(
                "create", "-f", "-", stdin=json.dumps(pod(f"after-{program}", "true", metadata=queued())), check=False
            ).returncode
            == 0
        ),
        "a pod to be accepted",
        PATIENCE,
    )
    wait_for_phase(kubectl, f"after-{program}", "Succeeded")
    assert control.observe(folder)[program]["pid"]


def test_nothing_is_left_after_a_crash(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    running = cluster.up(folder, "api")
    assert Path("/sys/class/net", running.layout.name).exists()
    first = sandbox.first_process(folder)
    assert first is not None
    os.kill(first, signal.SIGKILL)
    until(lambda: not sandbox.is_open(folder), "everything to end with its first process")
    cluster.down(folder)
    assert not folder.exists()
    assert not Path("/sys/class/net", name_of(folder)).exists()
    assert not [tree for tree in sandbox.hierarchies() if (tree / name_of(folder)).exists()]
    assert str(folder) not in Path("/proc/self/mountinfo").read_text()


def test_its_end_takes_no_files_of_it(tmp_path: Path) -> None:
    """Whoever removes the folder of a running cluster leaves its programs, and they write into a new one."""
    folder = tmp_path / "cluster"
    cluster.up(folder, "api")
    shutil.rmtree(folder)
    (folder / "volume-plugins").mkdir(parents=True)
    assert sandbox.is_open(folder)
    cluster.down(folder)
    assert not sandbox.is_open(folder)
    assert not folder.exists()


def test_what_is_not_a_cluster_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(ClusterError, match="not a cluster's folder"):
        cluster.down(tmp_path)
    assert (tmp_path / "thesis.txt").exists()
