"""How pods of a cluster get their image, how they end and start again, and what of the node they may see."""

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.e2e.server import until
from tests.kubernetes.field_cases import STAYS
from tests.kubernetes.room import PATIENCE, Room

pytestmark = pytest.mark.kubernetes


def run(room: Room, name: str, script: str, kind: str = "training", **spec: Any) -> str:
    return room.submit(kind, name, room.real(script) | spec)


# Images


@pytest.fixture
def registry(room: Room) -> Iterator["Registry"]:
    """On this machine, and told to the node's runtime as one that speaks plain HTTP."""
    registry = Registry(room.cluster.layout.machine)
    told = room.cluster.layout.path("registries", registry.address)
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


def test_images_and_who_may_have_them(room: Room, registry: Registry) -> None:
    """`imagePullPolicy` Never asks nobody; `imagePullSecrets` by `name`, or a `userCredential`, are what a registry is
    shown."""
    never = run(room, "never", "true", image="nowhere.invalid/nothing:1", imagePullPolicy="Never")
    for path, name, who in (("secrets", "shared", "ada"), ("user-credentials", "own", "bob")):
        entry = {"auth": base64.b64encode(f"{who}:word".encode()).decode()}
        values = {".dockerconfigjson": json.dumps({"auths": {registry.address: entry}})}
        body = {"name": name, "data": values} | ({"projectId": room.project_id} if path == "secrets" else {})
        assert room.server.call("POST", f"/api/v1/{path}", body).status == 201
    image = f"{registry.address}/box:1"
    run(room, "by-secret", "true", image=image, imagePullSecrets=[{"name": "shared"}])
    run(room, "by-credential", "true", image=image, imagePullSecrets=[{"name": "own", "userCredential": True}])
    until(lambda: {"ada:word", "bob:word"} <= set(registry.callers), "both at the registry", PATIENCE)
    until(lambda: "pull policy of Never" in room.server.message(never), "the runtime's words", PATIENCE)


# Restarts and ends


def test_restarts_in_place_and_by_new_pods(room: Room) -> None:
    """`restartPolicy`: OnFailure and Always start the container again in its pod, Never makes another pod."""
    scratch: dict[str, Any] = {"storage": {"emptyDirVolume": [{"path": "/mark"}]}}
    once = "[ -e /mark/x ] && exit 0; touch /mark/x; exit 3"
    again = run(room, "again", once, restartPolicy="OnFailure", **scratch)
    always = run(
        room,
        "always",
        f"echo start; [ -e /mark/x ] && {{ {STAYS}; }}; touch /mark/x",
        restartPolicy="Always",
        **scratch,
    )
    fresh = run(room, "fresh", once, restartPolicy="Never", backoffLimit=1, **scratch)
    room.until_phase(again, "Completed")
    assert len(room.pods(again)) == 1
    until(lambda: restarts(room, "always") == 1, "the next start", PATIENCE)
    room.until_phase(always, "Running")
    assert "2 pods failed" in room.until_phase(fresh, "Failed")["phaseMessage"]
    assert len(room.pods(fresh)) == 2


def restarts(room: Room, name: str) -> int:
    found = [pod for pod in room.objects("pods") if pod["metadata"]["name"].startswith(name)]
    return sum(status["restartCount"] for pod in found for status in pod["status"].get("containerStatuses", ()))


def test_the_grace_is_given_and_then_ended(room: Room) -> None:
    """`terminationGracePeriodSeconds`: TERM first, and KILL after so long."""
    claim: dict[str, Any] = {"storage": {"pvc": [{"path": "/kept", "name": "k", "claimInfo": {"size": "1Mi"}}]}}
    deaf = "touch /kept/up; trap 'date +%s > /kept/asked' TERM; while :; do date +%s > /kept/last; sleep 0.2; done"
    workload = run(room, "deaf", deaf, terminationGracePeriodSeconds=3, **claim)
    room.until_phase(workload, "Running")
    room.act("suspend", workload)
    room.until_phase(workload, "Stopped")
    read = {"path": "/kept", "existingPvc": True, "claimName": "deaf-k"}
    reader = run(room, "reads", "cat /kept/asked /kept/last", storage={"pvc": [read]})
    room.until_phase(reader, "Completed")
    asked, last = map(int, room.server.logs(reader).split())
    assert 2 <= last - asked <= 20


def test_a_finished_workload_deletes_itself(room: Room) -> None:
    """`autoDeletionTimeAfterCompletionSeconds`."""
    workload = run(room, "brief", "true", autoDeletionTimeAfterCompletionSeconds=1)
    until(lambda: room.server.workload(workload).get("deletedAt"), "its deletion", PATIENCE)
    until(lambda: room.names("jobs,pods") == [], "an empty namespace", PATIENCE)


# The node


def test_namespaces_of_the_node(room: Room) -> None:
    """`hostNetwork`, `hostIpc` and `mountPropagation`; without them a pod has its own."""
    look = "ip -4 -o addr; readlink /proc/self/ns/ipc; grep /of-node /proc/self/mountinfo"
    folder = {"path": "/usr/share", "mountPath": "/of-node"}
    shared = run(
        room,
        "shared",
        look,
        security={"hostNetwork": True, "hostIpc": True},
        storage={"hostPath": [{**folder, "mountPropagation": "HostToContainer"}]},
    )
    apart = run(
        room,
        "apart",
        look,
        storage={"hostPath": [folder]},
    )
    for workload in (shared, apart):
        room.until_phase(workload, "Completed")
    of_node, own = room.server.logs(shared), room.server.logs(apart)
    address = f" {room.cluster.layout.address}/"
    assert (address in of_node, address in own) == (True, False)
    assert find(of_node, "ipc:") != find(own, "ipc:")
    assert ("master:" in find(of_node, "/of-node"), "master:" in find(own, "/of-node")) == (True, False)


def find(text: str, word: str) -> str:
    return next(line for line in text.splitlines() if word in line)


def test_root_is_refused_where_it_is_not_wanted(room: Room) -> None:
    """`runAsNonRoot` with an image whose user is root."""
    workload = run(room, "rootless", "true", security={"runAsNonRoot": True})
    until(lambda: "runAsNonRoot" in room.server.message(workload), "the runtime's words", PATIENCE)


# Words


def test_words_for_people_come_back(room: Room) -> None:
    """`category`, `username` and the `description` of a variable are kept and shown."""
    variable = {"name": "A", "value": "x", "description": "for people"}
    workload = run(room, "told", "true", category="Train", username="ada", environmentVariables=[variable])
    shown = room.server.call("GET", f"/api/v1/workloads/trainings/{workload}").json["spec"]
    assert (shown["category"], shown["username"]) == ("Train", "ada")
    assert shown["environmentVariables"] == [variable]
    assert room.server.workload(workload)["category"] == "Train"


# Gangs


def test_elastic_pods_and_gangs_without_a_master(room: Room) -> None:
    """`minReplicas` and `maxReplicas` of a gang that starts with what fits; `masterSpecSameAsWorker` false."""
    elastic = room.spec(gpus=4, numWorkers=4, minReplicas=2, maxReplicas=4, distributedFramework="PyTorch")
    workload = room.submit("distributed", "elastic", elastic)
    room.until_phase(workload, "Running")
    [group] = [one for one in room.objects("podgroups") if one["metadata"]["name"] == "elastic"]
    least = {one["name"]: one["minMember"] for one in group["spec"]["subGroups"]}
    assert (group["spec"]["minMember"], least) == (3, {"master": 1, "worker": 2})
    # Four of the five fit, and the master is always one of them.
    assert "elastic-master-0" in [pod["name"] for pod in room.pods(workload)]
    without = room.spec(gpus=0, numWorkers=2, distributedFramework="PyTorch")
    other = room.submit("distributed", "headless", without, masterSpecSameAsWorker=False)
    room.until_phase(other, "Running")
    assert sorted(pod["name"] for pod in room.pods(other)) == ["headless-worker-0", "headless-worker-1"]
