"""Groups of a leader and workers in real containers: they serve behind one URL, scale, start in order, and restart."""

import shlex
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.server import until
from tests.e2e.web import PROGRAM, bearer, exposed, fetch, log_in
from tests.kubernetes.cluster_harness import ID, PATIENCE, ClusterHarness
from tests.kubernetes.field_cases import ENDS

pytestmark = pytest.mark.kubernetes
#: Finds its leader by name and tells who it is; the leader has no need of that.
WORKER = """
import json, os, time, urllib.request
url = f"http://{os.environ['LWS_LEADER_ADDRESS']}:8080/"
while True:
    try:
        said = json.load(urllib.request.urlopen(url, timeout=5))
        break
    except OSError:
        time.sleep(0.1)
print(os.environ["LWS_GROUP_SIZE"], os.environ["LWS_WORKER_INDEX"], said["pod"], flush=True)
time.sleep(600)
"""
PROBE = {"readiness": {"periodSeconds": 1, "handler": {"httpGet": {"path": "/ready", "port": 8080}}}}
LEFT = "leaderworkersets,pods,services,podgroups,secrets,configmaps"


def python(harness: ClusterHarness, program: str, *arguments: str, **members: Any) -> dict[str, Any]:
    return harness.real("") | {"command": "python3 -c", "args": shlex.join([ENDS + program, *arguments])} | members


def serve(harness: ClusterHarness, name: str, **members: Any) -> str:
    leader = python(harness, PROGRAM, "8080", "/tmp", probes=PROBE)
    given = {"leader": leader, "worker": python(harness, WORKER), "workers": 1, "servingPort": {"port": 8080}}
    return harness.submit("groups", name, given | members)


def scale(harness: ClusterHarness, workload: str, replicas: int) -> None:
    path = f"/api/v1/workloads/distributed-inferences/{workload}"
    assert harness.server.call("PATCH", path, {"spec": {"replicas": replicas}}).status == 202


def answering(url: str) -> set[str]:
    answers = [fetch(url) for _ in range(8)]
    return {answer.json["pod"] for answer in answers if answer.status == 200}


def uids(pods: list[dict[str, Any]]) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}


def pods_of(harness: ClusterHarness, workload: str) -> list[dict[str, Any]]:
    """As the cluster has them; what is left of earlier workloads may be there for a moment more."""
    return [pod for pod in harness.objects("pods") if pod["metadata"]["labels"].get(ID) == workload]


def ours(harness: ClusterHarness) -> list[str]:
    """What the namespace has of workloads; every namespace has an authority's certificate."""
    return [name for name in harness.names(LEFT) if name != "ConfigMap/kube-root-ca.crt"]


def test_groups_serve_scale_and_go(harness: ClusterHarness) -> None:
    """`workers`, `replicas` and `servingPort`, over the whole life of a service."""
    workload = serve(harness, "tiny", replicas=2)
    harness.until_phase(workload, "Running")
    url = exposed(harness.server, workload)
    until(lambda: answering(url) == {"tiny-0", "tiny-1"}, "answers of both leaders", PATIENCE)
    said = until(lambda: harness.server.logs(workload, "?pod=tiny-1-1"), "the worker's words", PATIENCE)
    assert said == "2 1 tiny-1\n"
    scale(harness, workload, 3)
    until(lambda: answering(url) == {"tiny-0", "tiny-1", "tiny-2"}, "answers of three", PATIENCE)
    scale(harness, workload, 1)
    until(lambda: set(uids(harness.objects("pods"))) == {"tiny-0", "tiny-0-1"}, "one group", PATIENCE)
    assert answering(url) == {"tiny-0"}
    harness.act("delete", workload, "groups")
    until(lambda: ours(harness) == [], "an empty namespace", PATIENCE)
    until(lambda: fetch(url).status == 404, "no trace of its URL", PATIENCE)


@pytest.mark.parametrize("policy", ["RecreateGroupOnPodRestart", "None"])
def test_what_a_failed_pod_brings_about(harness: ClusterHarness, policy: str) -> None:
    """`restartPolicy`: all pods of the group are made again, or its container alone starts again in its place."""
    dies = harness.real("sleep 6; exit 3")
    workload = serve(harness, "dies", worker=dies, restartPolicy=policy)

    def find() -> list[dict[str, Any]]:
        return pods_of(harness, workload)

    until(lambda: [pod["status"]["phase"] for pod in find()] == ["Running"] * 2, "a group", PATIENCE)
    before = uids(find())
    if policy == "None":
        until(lambda: restarts(find(), "dies-0-1"), "the container's next start", PATIENCE)
        assert uids(find()) == before
        assert restarts(find(), "dies-0") == 0
    else:
        until(
            lambda: len(after := uids(find())) == 2 and all(after[name] != before[name] for name in after),
            "a group of new pods",
            PATIENCE,
        )


def restarts(pods: list[dict[str, Any]], name: str) -> int:
    found = [pod for pod in pods if pod["metadata"]["name"] == name]
    statuses = [status for pod in found for status in pod["status"].get("containerStatuses", ())]
    return sum(status["restartCount"] for status in statuses)


def test_workers_start_when_their_leader_is_ready(harness: ClusterHarness) -> None:
    """`startupPolicy` LeaderReady."""
    late = python(harness, f"import time; time.sleep(5)\n{PROGRAM}", "8080", "/tmp", probes=PROBE)
    workload = serve(harness, "late", leader=late, startupPolicy="LeaderReady")
    harness.until_phase(workload, "Running")
    created = {pod["metadata"]["name"]: pod["metadata"]["creationTimestamp"] for pod in harness.objects("pods")}
    [leader] = [pod for pod in harness.objects("pods") if pod["metadata"]["name"] == "late-0"]
    [ready] = [one for one in leader["status"]["conditions"] if one["type"] == "Ready"]
    assert created["late-0-1"] >= ready["lastTransitionTime"]


def test_who_may_ask_and_where(harness: ClusterHarness) -> None:
    """`servingPort` with `authorizationType`, `authorizedUsers`, `authorizedGroups`, `exposedUrl`,
    `exposeExternally`."""
    ada, bob = log_in(harness.server, "ada@groups.example", ("crew",)), log_in(harness.server, "bob@groups.example")
    port = {"port": 8080, "exposedUrl": "https://models.example.com/tiny/"}
    ports: dict[str, dict[str, Any]] = {
        "users": port | {"authorizationType": "authorizedUsers", "authorizedUsers": ["ada@groups.example"]},
        "crew": {"port": 8080, "authorizationType": "authorizedGroups", "authorizedGroups": ["crew"]},
        "inside": {"port": 8080, "exposeExternally": False},
    }
    started = {name: serve(harness, name, workers=0, servingPort=given) for name, given in ports.items()}
    for name, workload in started.items():
        harness.until_phase(workload, "Running")
        if name != "inside":
            url = exposed(harness.server, workload)
            assert [fetch(url, **bearer(token)).status for token in (ada, bob)] == [200, 403]
            assert fetch(url).status == 401
    url = exposed(harness.server, started["users"])
    assert urlsplit(url).hostname == "models.example.com"
    assert fetch(url, "/x", **bearer(ada)).json["path"] == "/tiny/x"
    assert not harness.server.workload(started["inside"]).get("urls")
    services = [one for one in harness.objects("services") if one["metadata"]["name"].startswith("inside")]
    assert any(port["port"] == 8080 for one in services for port in one["spec"].get("ports", ()))
