"""How pods of a cluster get their image, how they end and start again, and what of the node they may see."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness
from tests.kubernetes.field_cases import STAYS

pytestmark = pytest.mark.kubernetes


def run(harness: ClusterHarness, name: str, script: str, kind: str = "training", **spec: Any) -> str:
    return harness.submit(kind, name, harness.real(script) | spec)


# Images


@pytest.fixture
def registry(harness: ClusterHarness) -> Iterator["Registry"]:
    """On this machine, and told to the node's runtime as one that speaks plain HTTP."""
    registry = Registry(harness.cluster.layout.machine)
    told = harness.cluster.layout.path("registries", registry.address)
    told.mkdir(parents=True)
    host = f'[host."http://{registry.address}"]\n  capabilities = ["pull", "resolve"]\n'
    (told / "hosts.toml").write_text(f'server = "http://{registry.address}"\n{host}')
    yield registry
    registry.close()
    (told / "hosts.toml").unlink()
    told.rmdir()


class Registry:
    """Answers those who know the password with an image of nothing, and notes who came."""

    def __init__(self, machine: str) -> None:
        self.callers: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                given = self.headers.get("Authorization", "")
                outer.callers.append(base64.b64decode(given.removeprefix("Basic ")).decode())
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="images"')
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_HEAD = do_GET

            def log_message(self, format: str, *arguments: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer((machine, 0), Handler)
        self.address = f"{machine}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def test_images_and_who_may_have_them(harness: ClusterHarness, registry: Registry) -> None:
    """`imagePullPolicy` Never asks nobody; `imagePullSecrets` by `name`, or a `userCredential`, are what a registry is
    shown."""
    never = run(harness, "never", "true", image="nowhere.invalid/nothing:1", imagePullPolicy="Never")
    for path, name, who in (("secrets", "shared", "ada"), ("user-credentials", "own", "bob")):
        entry = {"auth": base64.b64encode(f"{who}:word".encode()).decode()}
        values = {".dockerconfigjson": json.dumps({"auths": {registry.address: entry}})}
        body = {"name": name, "data": values} | ({"projectId": harness.project_id} if path == "secrets" else {})
        assert harness.server.call("POST", f"/api/v1/{path}", body).status == 201
    image = f"{registry.address}/box:1"
    run(harness, "by-secret", "true", image=image, imagePullSecrets=[{"name": "shared"}])
    run(harness, "by-credential", "true", image=image, imagePullSecrets=[{"name": "own", "userCredential": True}])
    until(lambda: {"ada:word", "bob:word"} <= set(registry.callers), "both at the registry", PATIENCE)
    until(lambda: "pull policy of Never" in harness.server.message(never), "the runtime's words", PATIENCE)


# Restarts and ends


def test_restarts_in_place_and_by_new_pods(harness: ClusterHarness) -> None:
    """`restartPolicy`: OnFailure and Always start the container again in its pod, Never makes another pod."""
    scratch: dict[str, Any] = {"storage": {"emptyDirVolume": [{"path": "/mark"}]}}
    once = "[ -e /mark/x ] && exit 0; touch /mark/x; exit 3"
    again = run(harness, "again", once, restartPolicy="OnFailure", **scratch)
    always = run(
        harness,
        "always",
        f"echo start; [ -e /mark/x ] && {{ {STAYS}; }}; touch /mark/x",
        restartPolicy="Always",
        **scratch,
    )
    fresh = run(harness, "fresh", once, restartPolicy="Never", backoffLimit=1, **scratch)
    harness.until_phase(again, "Completed")
    assert len(harness.pods(again)) == 1
    until(lambda: restarts(harness, "always") == 1, "the next start", PATIENCE)
    harness.until_phase(always, "Running")
    assert "2 pods failed" in harness.until_phase(fresh, "Failed")["phaseMessage"]
    assert len(harness.pods(fresh)) == 2


def restarts(harness: ClusterHarness, name: str) -> int:
    found = [pod for pod in harness.objects("pods") if pod["metadata"]["name"].startswith(name)]
    return sum(status["restartCount"] for pod in found for status in pod["status"].get("containerStatuses", ()))


def test_the_grace_is_given_and_then_ended(harness: ClusterHarness) -> None:
    """`terminationGracePeriodSeconds`: TERM first, and KILL after so long."""
    claim: dict[str, Any] = {"storage": {"pvc": [{"path": "/kept", "name": "k", "claimInfo": {"size": "1Mi"}}]}}
    deaf = "touch /kept/up; trap 'date +%s > /kept/asked' TERM; while :; do date +%s > /kept/last; sleep 0.2; done"
    workload = run(harness, "deaf", deaf, terminationGracePeriodSeconds=3, **claim)
    harness.until_phase(workload, "Running")
    harness.act("suspend", workload)
    harness.until_phase(workload, "Stopped")
    read = {"path": "/kept", "existingPvc": True, "claimName": "deaf-k"}
    reader = run(harness, "reads", "cat /kept/asked /kept/last", storage={"pvc": [read]})
    harness.until_phase(reader, "Completed")
    asked, last = map(int, harness.server.logs(reader).split())
    assert 2 <= last - asked <= 20


def test_without_a_grace_nothing_runs_on_after_its_end(harness: ClusterHarness) -> None:
    """`terminationGracePeriodSeconds: 0`: it is killed, and Stopped only when it is dead."""
    claim: dict[str, Any] = {"storage": {"pvc": [{"path": "/kept", "name": "k", "claimInfo": {"size": "1Mi"}}]}}
    deaf = "trap '' TERM; while :; do date +%s > /kept/last; sleep 0.1; done"
    workload = run(harness, "stubborn", deaf, terminationGracePeriodSeconds=0, **claim)
    harness.until_phase(workload, "Running")
    asked = time.time()
    harness.act("suspend", workload)
    harness.until_phase(workload, "Stopped")
    stopped = time.time()
    read = {"path": "/kept", "existingPvc": True, "claimName": "stubborn-k"}
    reader = run(harness, "looks", "cat /kept/last", storage={"pvc": [read]})
    harness.until_phase(reader, "Completed")
    last = int(harness.server.logs(reader))
    assert int(asked) <= last <= stopped


def test_a_finished_workload_deletes_itself(harness: ClusterHarness) -> None:
    """`autoDeletionTimeAfterCompletionSeconds`."""
    workload = run(harness, "brief", "true", autoDeletionTimeAfterCompletionSeconds=1)
    until(lambda: harness.server.workload(workload).get("deletedAt"), "its deletion", PATIENCE)
    assert until(lambda: harness.names("jobs,pods") == [], "an empty namespace", PATIENCE)


# The node


def test_namespaces_of_the_node(harness: ClusterHarness) -> None:
    """`hostNetwork`, `hostIpc` and `mountPropagation`; without them a pod has its own."""
    look = "ip -4 -o addr; readlink /proc/self/ns/ipc; grep /of-node /proc/self/mountinfo"
    folder = {"path": "/usr/share", "mountPath": "/of-node"}
    shared = run(
        harness,
        "shared",
        look,
        security={"hostNetwork": True, "hostIpc": True},
        storage={"hostPath": [{**folder, "mountPropagation": "HostToContainer"}]},
    )
    apart = run(
        harness,
        "apart",
        look,
        storage={"hostPath": [folder]},
    )
    for workload in (shared, apart):
        harness.until_phase(workload, "Completed")
    of_node, own = harness.server.logs(shared), harness.server.logs(apart)
    address = f" {harness.cluster.layout.address}/"
    assert (address in of_node, address in own) == (True, False)
    assert find(of_node, "ipc:") != find(own, "ipc:")
    assert ("master:" in find(of_node, "/of-node"), "master:" in find(own, "/of-node")) == (True, False)


def find(text: str, word: str) -> str:
    return next(line for line in text.splitlines() if word in line)


def test_root_is_refused_where_it_is_not_wanted(harness: ClusterHarness) -> None:
    """`runAsNonRoot` with an image whose user is root."""
    workload = run(harness, "rootless", "true", security={"runAsNonRoot": True})
    until(lambda: "runAsNonRoot" in harness.server.message(workload), "the runtime's words", PATIENCE)
    [pod] = harness.pods(workload)
    assert pod["k8sPhase"] == "Pending"


# Words


def test_messages_for_people_come_back(harness: ClusterHarness) -> None:
    """`category`, `username` and the `description` of a variable are kept and shown."""
    variable = {"name": "A", "value": "x", "description": "for people"}
    workload = run(harness, "told", "true", category="Train", username="ada", environmentVariables=[variable])
    shown = harness.server.call("GET", f"/api/v1/workloads/trainings/{workload}").json["spec"]
    assert (shown["category"], shown["username"]) == ("Train", "ada")
    assert shown["environmentVariables"] == [variable]
    assert harness.server.workload(workload)["category"] == "Train"


# Gangs


def test_elastic_pods_and_gangs_without_a_master(harness: ClusterHarness) -> None:
    """`minReplicas` and `maxReplicas` of a gang that starts with what fits; `masterSpecSameAsWorker` false."""
    elastic = harness.spec(gpus=4, numWorkers=4, minReplicas=2, maxReplicas=4, distributedFramework="PyTorch")
    workload = harness.submit("distributed", "elastic", elastic)
    harness.until_phase(workload, "Running")
    [group] = [one for one in harness.objects("podgroups") if one["metadata"]["name"] == "elastic"]
    least = {one["name"]: one["minMember"] for one in group["spec"]["subGroups"]}
    assert (group["spec"]["minMember"], least) == (3, {"master": 1, "worker": 2})
    # Four of the five fit, and the master is always one of them.
    assert "elastic-master-0" in [pod["name"] for pod in harness.pods(workload)]
    without = harness.spec(gpus=0, numWorkers=2, distributedFramework="PyTorch")
    other = harness.submit("distributed", "headless", without, masterSpecSameAsWorker=False)
    harness.until_phase(other, "Running")
    assert sorted(pod["name"] for pod in harness.pods(other)) == ["headless-worker-0", "headless-worker-1"]
