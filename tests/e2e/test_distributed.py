"""Distributed trainings on real processes: they find each other by their variables, start and end together."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import Answer, Server, until
from tests.e2e.several import DISTRIBUTED, accepted, all_pods, outputs, program, request

#: Every rank tells the first one its number over TCP and hears from it how many have come; whoever hears a wrong
#: number fails. Uses nothing but what PyTorch's own rendezvous uses.
RENDEZVOUS = """
import os, socket, time
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    server = socket.create_server(("", address[1]))
    peers = [server.accept()[0] for _ in range(world - 1)]
    told = sorted(int(peer.recv(100)) for peer in peers)
    assert told == list(range(1, world)), told
    for peer in peers:
        peer.sendall(b"%d" % world)
    print("met", world)
else:
    deadline = time.monotonic() + 120
    while True:
        try:
            peer = socket.create_connection(address, timeout=120)
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    peer.sendall(b"%d" % rank)
    assert int(peer.recv(100)) == world
    print("heard", world)
"""


def submit(server: Server, name: str, script: str, beside: dict[str, Any] | None = None, **spec: Any) -> Answer:
    return server.call("POST", DISTRIBUTED, request(server, name, program(script, **spec), **(beside or {})))


def run(server: Server, name: str, script: str, beside: dict[str, Any] | None = None, **spec: Any) -> str:
    return accepted(submit(server, name, script, beside, **spec))


def names_of(server: Server, workload_id: str) -> set[str]:
    return {pod["name"] for pod in all_pods(server, workload_id)}


def test_ranks_meet_and_the_workload_completes_with_its_master(server: Server) -> None:
    workload_id = run(server, "meet", RENDEZVOUS, distributedFramework="PyTorch", numWorkers=3)
    server.until_phase(workload_id, "Completed")
    assert names_of(server, workload_id) == {"meet-master-0", "meet-worker-0", "meet-worker-1", "meet-worker-2"}
    assert {name.split("-")[1]: text for name, text in outputs(server, workload_id).items()} == {
        "master": "met 4\n",
        "worker": "heard 4\n",
    }


def test_a_job_of_kubeflow_runs_here_without_its_operator(server: Server) -> None:
    container = {"name": "pytorch", "image": "fairlead.local/host", "command": ["python3", "-c", RENDEZVOUS]}
    one = {"restartPolicy": "Never", "template": {"spec": {"containers": [container]}}}
    manifest = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "spec": {"pytorchReplicaSpecs": {"Master": one, "Worker": {**one, "replicas": 2}}},
    }
    body = {"metadata": {"name": "from-kubeflow", "projectId": "1"}, "manifest": manifest}
    made = server.call("POST", "/api/v2/workloads", body)
    assert made.status == 202, made
    workload_id = made.json["metadata"]["id"]
    server.until_phase(workload_id, "Completed")
    assert sorted(outputs(server, workload_id).values()) == ["heard 3\n", "heard 3\n", "met 3\n"]


def test_two_at_once_do_not_get_in_each_others_way(server: Server) -> None:
    ids = [run(server, f"twin-{number}", RENDEZVOUS, numWorkers=2) for number in range(2)]
    for workload_id in ids:
        server.until_phase(workload_id, "Completed")
        assert set(outputs(server, workload_id).values()) == {"met 3\n", "heard 3\n"}


def test_without_master_the_first_worker_leads(server: Server) -> None:
    beside = {"masterSpecSameAsWorker": False}
    workload_id = run(server, "headless", RENDEZVOUS, beside, numWorkers=3)
    server.until_phase(workload_id, "Completed")
    assert names_of(server, workload_id) == {"headless-worker-0", "headless-worker-1", "headless-worker-2"}


def test_a_master_of_its_own(server: Server) -> None:
    beside = {"masterSpec": program(RENDEZVOUS)}
    answer = submit(server, "own", RENDEZVOUS.replace("heard", "was told"), beside, numWorkers=1)
    assert answer.status == 202, answer
    assert set(answer.json) >= {"spec", "masterSpec"}
    assert "masterSpec" not in answer.json["spec"]
    workload_id = answer.json["workloadId"]
    server.until_phase(workload_id, "Completed")
    assert outputs(server, workload_id) == {"own-master-0": "met 2\n", "own-worker-0": "was told 2\n"}
    assert server.call("GET", f"{DISTRIBUTED}/{workload_id}").json["masterSpec"] == answer.json["masterSpec"]


def test_one_failed_rank_starts_all_of_them_again(server: Server, tmp_path: Path) -> None:
    first = tmp_path / "failed"
    fails_once = f"""
import os, sys
if os.environ["RANK"] == "2" and not os.path.exists({str(first)!r}):
    open({str(first)!r}, "w").close()
    sys.exit(3)
"""
    workload_id = run(server, "again", fails_once + RENDEZVOUS, numWorkers=2)
    server.until_phase(workload_id, "Completed")
    events = server.call("GET", f"/api/v1/workloads/{workload_id}/events?limit=200").json["events"]
    assert [event["reason"] for event in events].count("GroupRecreated") == 1
    assert sorted(event["involvedObject"]["name"] for event in events if event["reason"] == "Started") == [
        name for name in ("again-master-0", "again-worker-0", "again-worker-1") for _ in range(2)
    ]


def test_too_many_failures_end_it(server: Server) -> None:
    workload_id = run(server, "hopeless", "import sys; sys.exit(4)", numWorkers=2, backoffLimit=1)
    assert "exit code 4" in server.until_phase(workload_id, "Failed")["phaseMessage"]
    until(lambda: server.workload(workload_id)["runningPods"] == 0, "the end of the others")


def test_a_gang_that_does_not_fit_starts_nothing(server: Server) -> None:
    workload_id = run(server, "large", "print(1)", numWorkers=2, compute={"cpuCoreRequest": 100_000})
    waiting = server.until_phase(workload_id, "Pending")
    until(lambda: server.message(workload_id), "a reason")
    assert names_of(server, workload_id) == set()
    assert waiting["requestedPods"]["number"] == 3
    assert server.call("DELETE", f"{DISTRIBUTED}/{workload_id}").status == 202


def test_suspend_ends_all_of_them_and_resume_starts_them_again(server: Server) -> None:
    workload_id = run(server, "pause", "import time; time.sleep(600)", numWorkers=1)
    server.until_phase(workload_id, "Running")
    assert server.call("POST", f"{DISTRIBUTED}/{workload_id}/suspend").status == 202
    server.until_phase(workload_id, "Stopped")
    assert server.call("POST", f"{DISTRIBUTED}/{workload_id}/resume").status == 202
    server.until_phase(workload_id, "Running")
    assert server.call("DELETE", f"{DISTRIBUTED}/{workload_id}").status == 202


@pytest.mark.parametrize(
    ("spec", "beside", "want"),
    [
        ({"numWorkers": 0}, {}, "spec.numWorkers"),
        ({"minReplicas": 5}, {}, "spec.minReplicas"),
        ({"distributedFramework": "JAX", "maxReplicas": 5}, {}, "spec.maxReplicas"),
        ({}, {"masterSpecSameAsWorker": True, "masterSpec": {"image": "x"}}, "masterSpec"),
        ({}, {"masterSpec": {"command": "x"}}, "masterSpec.image"),
        ({}, {"masterSpec": {"image": "x", "imag": 1}}, "masterSpec.imag"),
        ({"distributedFramework": "MPI"}, {"masterSpecSameAsWorker": False}, "masterSpecSameAsWorker"),
        ({"masterSpec": {"image": "x"}}, {}, "spec.masterSpec"),
    ],
)
def test_contradictions_are_refused(server: Server, spec: dict[str, Any], beside: dict[str, Any], want: str) -> None:
    answer = submit(server, "refused", "pass", beside, **spec)
    assert answer.status == 400, answer
    assert want in [issue["field"] for issue in answer.json["complianceIssues"]]
