"""What becomes of a service of groups when something goes wrong: at each step of a start, during a scale, for good."""

import os
import signal
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import Server, until
from tests.e2e.several import (
    GROUPS,
    HAS_NETWORKS,
    SLEEP,
    all_pods,
    delete,
    events,
    kill_pod,
    pods,
    processes_of,
    program,
    request,
    scale,
    serve,
    until_pods,
)

#: Ready when the file is there.
GATED = """
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if os.path.exists("{gate}") else 503)
        self.end_headers()
    def log_message(self, *words):
        pass
http.server.HTTPServer(("", {port}), Handler).serve_forever()
"""


def gated(gate: Path, port: int) -> dict[str, Any]:
    probe = {"readiness": {"periodSeconds": 1, "handler": {"httpGet": {"port": port}}}}
    return program(GATED.format(gate=gate, port=port), probes=probe)


def kill_supervisor(pod_id: str) -> None:
    """As the machine's operator might, or its memory: nobody watches over the pod any more."""
    for pid in processes_of(pod_id):
        with open(f"/proc/{pid}/stat") as file:
            parent = int(file.read().rpartition(")")[2].split()[1])
        if parent not in processes_of(pod_id):
            os.kill(parent, signal.SIGKILL)
            return
    raise AssertionError("no supervisor of that pod")


@pytest.mark.parametrize("kill", [kill_pod, kill_supervisor], ids=["program", "supervisor"])
@pytest.mark.parametrize(
    ("step", "victim"),
    [
        pytest.param("leader runs", "-0", id="the leader before it is ready"),
        pytest.param("leader ready", "-0", id="the leader while workers start"),
        pytest.param("leader ready", "-0-2", id="a worker before it is ready"),
        pytest.param("all ready", "-0", id="the leader of a whole group"),
        pytest.param("all ready", "-0-1", id="a worker of a whole group"),
    ],
)
def test_a_pod_that_dies_at_any_step_of_the_start(
    server: Server, tmp_path: Path, step: str, victim: str, kill: Callable[[str], None]
) -> None:
    """The group starts again as a whole, in its order, and comes to run."""
    leads, works = tmp_path / "leads", tmp_path / "works"
    name = f"dies-{zlib.crc32(f'{step}{victim}{kill.__name__}'.encode()) % 100_000}"
    spec = {"leader": gated(leads, 8101), "worker": gated(works, 8102), "workers": 2, "startupPolicy": "LeaderReady"}
    if not HAS_NETWORKS:
        spec |= {"workers": 1}
        victim = victim.replace("-2", "-1")
    whole = [f"{name}-0", *(f"{name}-0-{number + 1}" for number in range(int(str(spec["workers"]))))]
    workload_id = serve(server, name, **spec)
    found = until_running(server, workload_id, whole[0])
    if step != "leader runs":
        leads.touch()
        found = until_running(server, workload_id, *whole)
    if step == "all ready":
        works.touch()
        server.until_phase(workload_id, "Running")
    kill(found[f"{name}{victim}"]["id"])
    until(lambda: events(server, workload_id, "GroupRecreated"), "the group made again")
    leads.touch()
    works.touch()
    until(
        lambda: (
            set(now := pods(server, workload_id)) == set(whole)
            and not {pod["id"] for pod in now.values()} & {pod["id"] for pod in found.values()}
            and server.phase(workload_id) == "Running"
        ),
        "a whole new group",
    )
    assert len(events(server, workload_id, "GroupRecreated")) == 1
    started = {event["involvedObject"]["name"] for event in events(server, workload_id, "Started")}
    assert started == set(whole)
    leave_nothing(server, workload_id)


def until_running(server: Server, workload_id: str, *names: str) -> dict[str, dict[str, Any]]:
    def is_so() -> bool:
        found = pods(server, workload_id)
        return set(found) == set(names) and all(pod["k8sPhase"] == "Running" for pod in found.values())

    until(is_so, f"{names} to run")
    return pods(server, workload_id)


def leave_nothing(server: Server, workload_id: str) -> None:
    """Delete it; no process of any of its pods is left."""
    ids = [pod["id"] for pod in all_pods(server, workload_id)]
    delete(server, workload_id)
    until(lambda: not any(processes_of(pod_id) for pod_id in ids), "the end of its processes")


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1)], ids=["up", "down"])
def test_a_server_that_is_killed_during_a_scale(make_server: Any, before: int, after: int) -> None:
    server = make_server("--personal", "--retry-delay", "20")
    workload_id = serve(server, "half", replicas=before, workers=1, leader=program(SLEEP), worker=program(SLEEP))
    server.until_phase(workload_id, "Running")
    kept = {name: pod["id"] for name, pod in pods(server, workload_id).items() if name.startswith("half-0")}
    assert scale(server, workload_id, after).status == 202
    server.kill()
    server.start()
    server.log_in()
    names = {f"half-{group}{end}" for group in range(after) for end in ("", "-1")}
    found = until_pods(server, workload_id, *names)
    server.until_phase(workload_id, "Running")
    assert {name: found[name]["id"] for name in kept} == kept
    leave_nothing(server, workload_id)


def test_a_leader_that_never_gets_ready(server: Server, tmp_path: Path) -> None:
    """Its workers never start, the workload stays on its way and says so, and can be deleted."""
    spec = {"leader": gated(tmp_path / "never", 8103), "worker": program(SLEEP), "workers": 1}
    workload_id = serve(server, "never", startupPolicy="LeaderReady", **spec)
    until_running(server, workload_id, "never-0")
    until(lambda: "0 of 1 group available" in server.message(workload_id), "words on it")
    assert server.phase(workload_id) == "Initializing"
    assert set(pods(server, workload_id)) == {"never-0"}
    leave_nothing(server, workload_id)


def test_workers_that_exit_well_too_early(server: Server, tmp_path: Path) -> None:
    """A service never ends, so a good end is none: the group is made again, each time later; the other one runs on."""
    first = tmp_path / "first"
    # Those of group 1 end until the file is there.
    script = f"""
import os, time
while os.environ["GROUP"] == "1" and not os.path.exists({str(first)!r}):
    time.sleep(0.05)
    raise SystemExit(0)
time.sleep(600)
"""
    label = "metadata.labels['leaderworkerset.sigs.k8s.io/group-index']"
    worker = program(script, environmentVariables=[{"name": "GROUP", "podFieldRef": {"path": label}}])
    workload_id = serve(server, "early", replicas=2, workers=1, leader=program(SLEEP), worker=worker)
    until(lambda: len(events(server, workload_id, "GroupRecreated")) >= 3, "a group made again and again")
    told = [event["message"] for event in events(server, workload_id, "GroupRecreated")]
    assert all("Recreating group 1" in words for words in told)
    assert any("(recreation 3)" in words for words in told)
    assert any(" in 0.04 s" in words for words in told), "the delay grows from the server's first one"
    found = pods(server, workload_id)
    assert {"early-0", "early-0-1"} <= set(found)
    first.touch()
    server.until_phase(workload_id, "Running")
    after = pods(server, workload_id)
    assert (after["early-0"]["id"], after["early-0-1"]["id"]) == (found["early-0"]["id"], found["early-0-1"]["id"])
    leave_nothing(server, workload_id)


def test_a_port_that_is_taken(server: Server) -> None:
    """A program that cannot have its port ends badly; its group is tried again with growing delay, and says why."""
    script = "import socket; first = socket.create_server(('', 8104)); second = socket.create_server(('', 8104))"
    workload_id = serve(server, "taken", leader=program(script), servingPort={"port": 8104})
    until(lambda: len(events(server, workload_id, "GroupRecreated")) >= 2, "another try")

    def said() -> bytes:
        return server.call("GET", f"/api/v1/workloads/{workload_id}/logs?pod=taken-0").body

    until(lambda: b"Address already in use" in said(), "its words")
    assert server.phase(workload_id) in ("Initializing", "Degraded", "Running", "Pending")
    leave_nothing(server, workload_id)


def test_a_scale_down_during_a_start_and_a_delete_in_the_middle(server: Server, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    spec = {"leader": gated(gate, 8105), "worker": program(SLEEP), "workers": 1, "startupPolicy": "LeaderReady"}
    workload_id = serve(server, "hasty", replicas=3 if HAS_NETWORKS else 1, **spec)
    until(lambda: len(pods(server, workload_id)) == (3 if HAS_NETWORKS else 1), "leaders on their way")
    for replicas in (5, 2, 1):
        assert scale(server, workload_id, replicas).status == 202
    until_running(server, workload_id, "hasty-0")
    gate.touch()
    server.until_phase(workload_id, "Running")
    until_pods(server, workload_id, "hasty-0", "hasty-0-1")
    gate.unlink()
    scale(server, workload_id, 3)
    leave_nothing(server, workload_id)
    assert server.call("PATCH", f"{GROUPS}/{workload_id}", {"spec": {"replicas": 1}}).status == 404


@pytest.mark.parametrize(
    ("length", "spec", "want"),
    [
        (62, {}, "a pod (leader) would be " + "n" * 62 + "-0, 64 characters"),
        (60, {"replicas": 1000}, "a pod (leader) would be " + "n" * 60 + "-999, 64 characters"),
        (59, {"workers": 10}, "a pod (worker) would be " + "n" * 59 + "-0-10, 64 characters"),
    ],
    ids=["leader", "many groups", "many workers"],
)
def test_names_that_would_be_too_long_are_reported(
    server: Server, length: int, spec: dict[str, Any], want: str
) -> None:
    body = request(server, "n" * length, {"leader": program(SLEEP), "worker": program(SLEEP), **spec})
    answer = server.call("POST", GROUPS, body)
    assert answer.status == 400, answer
    assert want in answer.json["details"]
    fits = {**body, "name": "n" * (length - 1), "spec": {**body["spec"], "replicas": 0}}
    if "replicas" not in spec:
        fitting = server.call("POST", GROUPS, fits)
        assert fitting.status == 202, fitting
        delete(server, fitting.json["workloadId"])
