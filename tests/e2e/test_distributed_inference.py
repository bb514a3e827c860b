"""Leader/worker services on real processes: groups, names, variables, restarts, scaling and their URL."""

import os
from typing import Any

import pytest

from tests.e2e.server import Answer, Server, until
from tests.e2e.several import (
    GROUPS,
    HAS_NETWORKS,
    SLEEP,
    all_pods,
    delete,
    events,
    kill_pod,
    needs_networks,
    pods,
    program,
    request,
    scale,
    serve,
    until_pods,
)
from tests.e2e.web import bearer, fetch

#: The leader waits for its workers on a port that every group uses, then tells who it is on its serving port.
LEADER = """
import http.server, os, socket
size = int(os.environ["LWS_GROUP_SIZE"])
server = socket.create_server(("", 7000))
workers = sorted(server.accept()[0].recv(100).decode() for _ in range(size - 1))
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = (os.uname().nodename + " " + ",".join(workers)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(("", 8000), Handler).serve_forever()
"""
WORKER = """
import os, socket, time
while True:
    try:
        link = socket.create_connection((os.environ["LWS_LEADER_ADDRESS"], 7000), timeout=120)
        break
    except OSError:
        time.sleep(0.02)
link.sendall(os.environ["LWS_WORKER_INDEX"].encode())
time.sleep(600)
"""
PROBE = {"readiness": {"handler": {"httpGet": {"port": 8000}}}}


def submit(server: Server, name: str, **spec: Any) -> Answer:
    return server.call("POST", GROUPS, request(server, name, spec))


@needs_networks
def test_two_groups_bind_the_same_ports_and_their_workers_find_them(server: Server) -> None:
    workload_id = serve(
        server,
        "pair",
        replicas=2,
        workers=2,
        leader=program(LEADER, probes=PROBE),
        worker=program(WORKER),
        servingPort={"port": 8000},
    )
    server.until_phase(workload_id, "Running")
    before = until_pods(server, workload_id, "pair-0", "pair-0-1", "pair-0-2", "pair-1", "pair-1-1", "pair-1-2")
    [url] = server.workload(workload_id)["urls"]
    assert {fetch(url).body for _ in range(4)} == {b"pair-0 1,2", b"pair-1 1,2"}
    kill_pod(before["pair-1-1"]["id"])

    def is_whole_again() -> bool:
        answer = fetch(url)
        assert answer.status == 200, "a request failed although one group was well"
        now = pods(server, workload_id)
        return now.keys() == before.keys() and now["pair-1"]["id"] != before["pair-1"]["id"]

    until(is_whole_again, "the second group made again")
    server.until_phase(workload_id, "Running")
    assert {fetch(url).body for _ in range(4)} == {b"pair-0 1,2", b"pair-1 1,2"}
    delete(server, workload_id)


def test_only_those_who_may_send_requests(server: Server) -> None:
    answering = LEADER.replace("range(size - 1)", "range(0)").replace("8000", "8011")
    port = {"port": 8011, "authorizationType": "authenticatedUsers"}
    workload_id = serve(server, "closed", leader=program(answering), servingPort=port)
    server.until_phase(workload_id, "Running")
    [url] = server.workload(workload_id)["urls"]
    until(lambda: fetch(url, **bearer(server.token)).status == 200, "an answer")
    assert fetch(url).status in (302, 303, 401, 403)
    delete(server, workload_id)


def words_of(server: Server, workload_id: str, pod: str) -> list[str]:
    text: str = until(lambda: server.logs(workload_id, f"?pod={pod}"), "its words")
    return text.split()


def test_every_pod_knows_its_place(server: Server) -> None:
    names = "'LWS_LEADER_ADDRESS', 'LWS_GROUP_SIZE', 'LWS_WORKER_INDEX', 'KEY'"
    script = f"import os; print(*[os.environ[name] for name in ({names})], flush=True); {SLEEP}"
    variable = {
        "name": "KEY",
        "podFieldRef": {"path": "metadata.labels['leaderworkerset.sigs.k8s.io/group-index']"},
    }
    described = program(script, environmentVariables=[variable])
    workload_id = serve(server, "place", replicas=2, workers=1, leader=described, worker=described)
    server.until_phase(workload_id, "Running")
    names_of_pods = until_pods(server, workload_id, "place-0", "place-0-1", "place-1", "place-1-1")
    told = {name: words_of(server, workload_id, name) for name in names_of_pods}
    assert {name: words[1:] for name, words in told.items()} == {
        "place-0": ["2", "0", "0"],
        "place-0-1": ["2", "1", "0"],
        "place-1": ["2", "0", "1"],
        "place-1-1": ["2", "1", "1"],
    }
    assert told["place-1"][0] == told["place-1-1"][0]
    if HAS_NETWORKS:
        assert told["place-1"][0] == "place-1.place.runai-default"
    delete(server, workload_id)


def test_workers_start_when_their_leader_is_ready(server: Server, tmp_path: Any) -> None:
    ready = tmp_path / "ready"
    script = f"import os, time\nwhile not os.path.exists({str(ready)!r}): time.sleep(0.01)\n{LEADER}"
    leader = program(script.replace("range(size - 1)", "range(0)"), probes=PROBE)
    workload_id = serve(server, "patient", workers=1, leader=leader, worker=program(SLEEP), startupPolicy="LeaderReady")
    until_pods(server, workload_id, "patient-0")
    until(lambda: events(server, workload_id, "Started"), "the leader's start")
    assert server.phase(workload_id) == "Initializing"
    ready.touch()
    server.until_phase(workload_id, "Running")
    until_pods(server, workload_id, "patient-0", "patient-0-1")
    delete(server, workload_id)


def test_a_dead_pod_takes_its_group_with_it_and_no_other(server: Server) -> None:
    workload_id = serve(server, "mortal", replicas=2, workers=1, leader=program(SLEEP), worker=program(SLEEP))
    server.until_phase(workload_id, "Running")
    before = until_pods(server, workload_id, "mortal-0", "mortal-0-1", "mortal-1", "mortal-1-1")
    kill_pod(before["mortal-1-1"]["id"])
    until(
        lambda: (
            (now := pods(server, workload_id)).keys() == before.keys()
            and now["mortal-1"]["id"] != before["mortal-1"]["id"]
            and now["mortal-1-1"]["id"] != before["mortal-1-1"]["id"]
        ),
        "a new second group",
    )
    server.until_phase(workload_id, "Running")
    assert pods(server, workload_id)["mortal-0"]["id"] == before["mortal-0"]["id"]
    assert len(events(server, workload_id, "GroupRecreated")) == 1
    assert sorted(pod["name"] for pod in all_pods(server, workload_id)) == sorted(before), "each name once"
    dead = server.call("GET", f"/api/v1/workloads/{workload_id}/pods?deleted=true").json["pods"]
    assert before["mortal-1-1"]["id"] in {pod["id"] for pod in dead if pod["k8sPhase"] == "Failed"}
    delete(server, workload_id)


def test_without_restart_policy_the_container_alone_restarts(server: Server, tmp_path: Any) -> None:
    once = tmp_path / "once"
    check = f"if not os.path.exists({str(once)!r}):\n    open({str(once)!r}, 'w'); sys.exit(1)"
    fails = f"import os, sys\n{check}\n{SLEEP}"
    workload_id = serve(server, "alone", workers=1, leader=program(SLEEP), worker=program(fails), restartPolicy="None")
    until(lambda: server.workload(workload_id)["runningPods"] == 2 and once.exists(), "both")
    server.until_phase(workload_id, "Running")
    until(lambda: len(events(server, workload_id, "Started")) >= 3, "the second start")
    assert not events(server, workload_id, "GroupRecreated")
    assert not events(server, workload_id, "Stopping")
    delete(server, workload_id)


def test_scaling_up_and_down(server: Server) -> None:
    workload_id = serve(server, "wide", leader=program(SLEEP))
    server.until_phase(workload_id, "Running")
    before = until_pods(server, workload_id, "wide-0")
    answer = scale(server, workload_id, 3)
    assert (answer.status, answer.json["spec"]["replicas"]) == (202, 3)
    until_pods(server, workload_id, "wide-0", "wide-1", "wide-2")
    scale(server, workload_id, 5)
    scale(server, workload_id, 1)
    assert until_pods(server, workload_id, "wide-0")["wide-0"]["id"] == before["wide-0"]["id"]
    assert "Degraded" not in server.history(workload_id)
    scale(server, workload_id, 0)
    until_pods(server, workload_id)
    assert server.phase(workload_id) == "Running"
    scale(server, workload_id, 1)
    until_pods(server, workload_id, "wide-0")
    server.until_phase(workload_id, "Running")
    delete(server, workload_id)


def test_groups_without_room_wait_while_the_others_serve(server: Server) -> None:
    cores = (os.cpu_count() or 1) * 0.6
    workload_id = serve(server, "roomy", leader=program(SLEEP, compute={"cpuCoreRequest": cores}))
    server.until_phase(workload_id, "Running")
    scale(server, workload_id, 2)
    waiting = server.until_phase(workload_id, "Degraded")
    assert "1 of 2 groups available" in waiting["phaseMessage"]
    assert events(server, workload_id, "Unschedulable")
    until_pods(server, workload_id, "roomy-0")
    scale(server, workload_id, 1)
    server.until_phase(workload_id, "Running")
    delete(server, workload_id)


def test_equal_null_and_empty_changes_change_nothing(server: Server) -> None:
    workload_id = serve(server, "same", replicas=1, leader=program(SLEEP))
    bodies: list[Any] = [{}, {"spec": None}, {"spec": {}}, {"spec": {"replicas": None}}, {"spec": {"replicas": 1}}]
    for body in bodies:
        answer = server.call("PATCH", f"{GROUPS}/{workload_id}", body)
        assert (answer.status, answer.json["spec"]["replicas"]) == (202, 1), answer
    assert not events(server, workload_id, "Update")
    delete(server, workload_id)
    assert scale(server, workload_id, 2).status == 404


@pytest.mark.parametrize(
    ("name", "body", "want"),
    [
        ("workers", {"spec": {"workers": 2}}, "replicas"),
        ("outside", {"replicas": 2}, "replicas"),
        ("too-many", {"spec": {"replicas": 1001}}, "spec.replicas"),
        ("list", {"spec": []}, "spec: is a list; an object is expected"),
    ],
    ids=["workers", "outside", "too-many", "list"],
)
def test_other_changes_are_refused(server: Server, name: str, body: Any, want: str) -> None:
    workload_id = serve(server, f"fixed-{name}", leader=program(SLEEP), replicas=0)
    answer = server.call("PATCH", f"{GROUPS}/{workload_id}", body)
    assert answer.status == 400, answer
    assert want in answer.json["details"]
    assert "complianceIssues" not in answer.json
    delete(server, workload_id)


def test_everything_that_is_wrong_is_said_at_once(server: Server) -> None:
    claim = {"path": "/data", "ephemeral": True, "claimInfo": {"size": "1G"}}
    answer = submit(server, "wrong", workers=2, leader=program(SLEEP, storage={"pvc": [claim]}), replicas=2000)
    assert answer.status == 400, answer
    for words in ("spec.replicas", "spec.worker: is missing", "spec.leader.storage.pvc[0].ephemeral"):
        assert words in answer.json["details"]
    assert "spec.leader: is missing" in submit(server, "wrong").json["details"]
    assert "spec.leader.image: is missing" in submit(server, "wrong", leader={}).json["details"]


def test_names_of_pods_must_fit(server: Server) -> None:
    long = "a" * 62
    assert "would be" in submit(server, long, leader=program(SLEEP)).json["details"]
    workload_id = serve(server, "b" * 60, leader=program(SLEEP), replicas=0)
    assert scale(server, workload_id, 1000).status == 400
    delete(server, workload_id)


def test_a_server_that_was_killed_finds_its_groups_again(make_server: Any) -> None:
    server = make_server("--personal", "--retry-delay", "20")
    workload_id = serve(server, "lasting", replicas=2, workers=1, leader=program(SLEEP), worker=program(SLEEP))
    server.until_phase(workload_id, "Running")
    before = {name: pod["id"] for name, pod in pods(server, workload_id).items()}
    assert scale(server, workload_id, 3).status == 202
    server.kill()
    server.start()
    server.log_in()
    until(lambda: len(pods(server, workload_id)) == 6, "the third group")
    server.until_phase(workload_id, "Running")
    after = {name: pod["id"] for name, pod in pods(server, workload_id).items()}
    assert {name: after[name] for name in before} == before
    delete(server, workload_id)
