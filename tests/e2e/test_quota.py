"""Quotas in a live server: borrowing, reclaiming, limits and their words, on declared GPUs with real processes."""

import json
import random
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cli_calls import Caller
from tests.e2e.server import Server, until

PROJECTS = "/api/v1/org-unit/projects"
WITNESS = Path(__file__).parent / "gpu_witness.py"
EXAMPLES = Path(__file__).parents[2] / "examples"
STAYS = "sleep 600"


def node(name: str = "n1", gpus: int = 4, **members: str) -> list[str]:
    more = "".join(f",{key}={value}" for key, value in members.items())
    return ["--node", f"{name}:cpu=64,memory=64Gi,gpus={gpus},gpu-memory=40Gi{more}"]


def project(server: Server, name: str, gpu: float, **members: Any) -> str:
    quota = {"nodePool": {"id": "1"}, "gpu": {"deserved": gpu}} | members.pop("quota", {})
    body = {"name": name, "clusterId": server.credentials["clusterId"], "resources": [quota]} | members
    answer = server.call("POST", PROJECTS, body)
    assert answer.status == 201, answer
    return str(answer.json["id"])


def submit(server: Server, project_id: str, name: str, gpus: float = 1, command: str = STAYS, **spec: Any) -> str:
    program, _, args = command.partition(" ")
    compute: dict[str, Any] = {"gpuDevicesRequest": int(gpus)}
    if gpus < 1:
        compute = {"gpuDevicesRequest": 1, "gpuRequestType": "portion", "gpuPortionRequest": gpus}
    body = {
        "name": name,
        "projectId": project_id,
        "clusterId": server.credentials["clusterId"],
        "spec": {"image": "python:3", "command": program, "args": args, "compute": compute} | spec,
    }
    answer = server.call("POST", "/api/v1/workloads/trainings", body)
    assert answer.status == 202, answer
    return str(answer.json["workloadId"])


def explanation(server: Server, workload_id: str) -> dict[str, Any]:
    answer = server.call("GET", f"/api/v1/workloads/{workload_id}/explanation")
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.json
    return found


def events(server: Server, workload_id: str) -> list[dict[str, Any]]:
    answer = server.call("GET", f"/api/v1/workloads/{workload_id}/events?sortOrder=asc&limit=500")
    found: list[dict[str, Any]] = answer.json["events"]
    return found


def test_borrowed_gpus_are_reclaimed_with_notices(make_server: Callable[..., Server]) -> None:
    server = make_server("--personal", *node())
    ours, theirs = project(server, "team-a", 2), project(server, "team-b", 2)
    borrowers = [submit(server, ours, f"a{number}") for number in range(4)]
    for id in borrowers:
        server.until_phase(id, "Running")
    winner = submit(server, theirs, "b0", 2)
    server.until_phase(winner, "Running")
    victims = [id for id in borrowers if server.phase(id) != "Running"]
    assert len(victims) == 2
    for id in victims:
        server.until_phase(id, "Pending")
        told = explanation(server, id)
        last = told["lastEviction"]
        assert told["preemptions"] == 1
        assert (last["rule"], last["byWorkload"], last["byProject"]) == ("reclaimed", "b0", "team-b")
        assert (last["gpus"], last["overQuotaGpus"], last["quotaGpus"]) == (1, 2, 2)
        assert "project team-a was 2 GPUs over its quota of 2" in last["message"]
        assert last["since"] is not None
        (evicted,) = [event for event in events(server, id) if event["reason"] == "Evict"]
        assert "was preempted by workload runai-team-b/b0." in evicted["message"]
        assert "Terminating" in server.history(id)
        holders = {holder["workload"] for holder in told["waiting"]["holders"]}
        assert "b0" in holders
    # The winner was given its place only after the victims' pods had ended.
    started = next(event["createdAt"] for event in events(server, winner) if event["reason"] == "Scheduled")
    for id in victims:
        pods = server.call("GET", f"/api/v1/workloads/{id}/pods?deleted=true").json["pods"]
        assert [pod["completedAt"] <= started for pod in pods] == [True]
    command = Caller(server.data_dir)
    name = server.workload(victims[0])["name"]
    assert "Evicted once" in command.ok("describe", name, "-p", "team-a")
    why = command.ok("why", name, "-p", "team-a")
    assert "Workloads that use what it waits for" in why
    assert "Last eviction" in why


def test_a_preempted_workload_may_ask_to_end(make_server: Callable[..., Server]) -> None:
    server = make_server("--personal", *node(gpus=1))
    team = project(server, "team-a", 1)
    ends = submit(server, team, "ends", terminateAfterPreemption=True)
    server.until_phase(ends, "Running")
    urgent = submit(server, team, "urgent", priorityClass="high", preemptibility="preemptible")
    server.until_phase(urgent, "Running")
    assert "terminateAfterPreemption" in server.until_phase(ends, "Failed")["phaseMessage"]
    assert explanation(server, ends)["lastEviction"]["rule"] == "preempted"


def test_what_leaves_with_0_when_it_is_evicted_runs_again(make_server: Callable[..., Server]) -> None:
    server = make_server("--personal", *node(gpus=1))
    team = project(server, "team-a", 1)
    script = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    leaves = submit(server, team, "leaves", command=f'sh -c "{script}"')
    server.until_phase(leaves, "Running")
    until(lambda: "ready" in server.logs(leaves), "its trap")
    urgent = submit(server, team, "urgent", priorityClass="high", preemptibility="preemptible")
    server.until_phase(urgent, "Running")
    assert server.until_phase(leaves, "Pending", "Completed")["phase"] == "Pending"
    assert server.call("DELETE", f"/api/v1/workloads/trainings/{urgent}").status == 202
    server.until_phase(leaves, "Running")
    assert server.call("POST", f"/api/v1/workloads/trainings/{leaves}/suspend").status == 202
    assert server.until_phase(leaves, "Stopped", "Completed")["phase"] == "Stopped"
    assert server.call("POST", f"/api/v1/workloads/trainings/{leaves}/resume").status == 202
    server.until_phase(leaves, "Running")


def test_a_guaranteed_runtime_is_kept_to_the_moment(make_server: Callable[..., Server]) -> None:
    """Nobody does anything when the time is over: the loop wakes by itself."""
    server = make_server("--personal", *node(gpus=1))
    guarantee = {"schedulingConfiguration": {"minGuaranteedRuntime": "2s"}}
    assert server.call("PATCH", "/api/v1/node-pools/1", guarantee).status == 200
    borrower = submit(server, project(server, "team-a", 0), "borrower")
    server.until_phase(borrower, "Running")
    owner = submit(server, project(server, "team-b", 1), "owner")
    server.until_phase(owner, "Running")
    (pod,) = server.call("GET", f"/api/v1/workloads/{borrower}/pods?deleted=true").json["pods"]
    lasted = datetime.fromisoformat(pod["completedAt"]) - datetime.fromisoformat(pod["containers"][0]["startedAt"])
    # Far below the next time at which the loop would look by itself; a busy machine takes seconds to stop a pod.
    assert timedelta(seconds=2) <= lasted < timedelta(seconds=60)


def test_a_victim_that_does_not_listen_is_killed_before_the_winner_starts(
    make_server: Callable[..., Server], tmp_path: Path
) -> None:
    server = make_server("--personal", *node(gpus=1))
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "go").touch()
    # It never ends by itself and takes ten seconds over a polite request; its grace is one.
    witness = f"{sys.executable} {WITNESS} {tmp_path / 'locks'} 10"
    stubborn = submit(
        server, project(server, "team-a", 0), "stubborn", 1, f"{witness} 600 10", terminationGracePeriodSeconds=1
    )
    until(partial(have_run, tmp_path / "locks", 1), "it holds the GPU")
    owner = submit(server, project(server, "team-b", 1), "owner", 1, f"{witness} 0.1 0")
    server.until_phase(owner, "Completed")
    assert not list((tmp_path / "locks").glob("crime-*"))
    assert explanation(server, stubborn)["preemptions"] == 1


@pytest.mark.parametrize(
    ("quota", "spec", "want"),
    [
        pytest.param(
            {"gpu": {"deserved": 1}}, {"preemptibility": "non-preemptible"}, "NonPreemptibleOverQuota", id="quota"
        ),
        pytest.param({"gpu": {"deserved": 1, "limit": 1}}, {}, "OverLimit", id="limit"),
    ],
)
def test_what_the_contract_has_a_word_for(
    make_server: Callable[..., Server], quota: dict[str, Any], spec: dict[str, Any], want: str
) -> None:
    server = make_server("--personal", *node())
    team = project(server, "team-a", 1, quota=quota)
    waits = submit(server, team, "waits", 2, **spec)
    found = until(lambda: (seen := server.workload(waits)).get("phaseReason") == want and seen, want)
    assert found["phase"] == "Pending"
    messages = server.call("GET", f"/api/v1/workloads/{waits}").json["pendingSchedulingMessages"]
    assert [(message["nodePool"], message["reason"]) for message in messages] == [("default", want)]
    remedies = " ".join(explanation(server, waits)["waiting"]["remedies"])
    assert "of 2 GPUs" in remedies
    # More quota, or a higher limit, and it starts without being asked again.
    raised = [{"nodePool": {"id": "1"}, "gpu": {"deserved": 2, "limit": None}}]
    assert server.call("PATCH", f"{PROJECTS}/{team}/resources", raised).status == 200
    server.until_phase(waits, "Running")


def test_node_pools_are_tried_in_order(make_server: Callable[..., Server]) -> None:
    server = make_server("--personal", *node("n1", 1), *node("n2", 1, labels="tier=gold"))
    body = {"name": "gold", "labelKey": "tier", "labelValue": "gold", "clusterId": server.credentials["clusterId"]}
    assert server.call("POST", "/api/v1/node-pools", body).status == 201
    team = project(server, "team-a", 1, defaultNodePools=["gold", "default"])
    first, second = submit(server, team, "first"), submit(server, team, "second")
    server.until_phase(first, "Running")
    server.until_phase(second, "Running")
    pools = [server.workload(id)["currentNodePools"] for id in (first, second)]
    assert pools == [["gold"], ["default"]]
    only = submit(server, team, "only", nodePools=["gold"])
    told = until(lambda: explanation(server, only).get("waiting"), "a reason")
    assert [holder["workload"] for holder in told["holders"]] == ["first"]


def test_a_time_limit_stops_what_ran_long_enough(make_server: Callable[..., Server]) -> None:
    server = make_server("--personal", *node())
    team = project(server, "team-a", 1, schedulingRules={"trainingJobTimeLimitSeconds": 1})
    limited = submit(server, team, "limited")
    server.until_phase(limited, "Stopped")
    assert "TimeLimit" in [event["reason"] for event in events(server, limited)]
    assert server.workload(limited)["totalRunningTimeSeconds"] < 300
    # Its time is used up: resuming changes nothing.
    assert server.call("POST", f"/api/v1/workloads/trainings/{limited}/resume").status == 202
    until(lambda: [e["reason"] for e in events(server, limited)].count("TimeLimit") == 2, "a second word")
    assert server.phase(limited) == "Stopped"


def test_deleting_a_project_ends_its_processes_first(make_server: Callable[..., Server]) -> None:
    server = make_server("--personal", *node())
    team = project(server, "team-a", 2)
    running = submit(server, team, "running", 2, command="bash -c 'trap \"sleep 0.5\" TERM; sleep 600 & wait'")
    server.until_phase(running, "Running")
    after = submit(server, "1", "after", 4)
    assert server.call("DELETE", f"{PROJECTS}/{team}").status == 202
    until(lambda: server.call("GET", f"{PROJECTS}/{team}").status == 404, "the project's end")
    server.until_phase(after, "Running")
    assert server.call("GET", f"/api/v1/workloads/{running}").json["deletedAt"] is not None


def test_the_snapshot_replays_to_the_same_decisions(make_server: Callable[..., Server], tmp_path: Path) -> None:
    server = make_server("--personal", *node())
    ours, theirs = project(server, "team-a", 2), project(server, "team-b", 2)
    for number in range(2):
        server.until_phase(submit(server, ours, f"a{number}", 2), "Running")
    waits = submit(server, theirs, "waits", 3)
    until(lambda: str(server.workload(waits).get("phaseMessage")).startswith("Waiting for 3 GPUs"), "a reason")
    command = Caller(server.data_dir)
    text = command.ok("snapshot")
    path = tmp_path / "snapshot.json"
    path.write_text(text)
    first = command.ok("schedule", "--snapshot", str(path))
    assert first == command.ok("schedule", "--snapshot", "-", stdin=text)
    decisions = json.loads(first)
    assert [pending["job"].split("/")[0] for pending in decisions["pending"]] == [waits]
    assert decisions["binds"] == []
    assert len(json.loads(command.ok("schedule", "--snapshot", str(path), "--cycles", "3"))) == 3


def test_the_first_commands_of_its_page_work_in_their_order(make_server: Callable[..., Server]) -> None:
    command = Caller(make_server(*node()).data_dir)
    page = (EXAMPLES.parent / "docs" / "scheduling.md").read_text()
    lines = [
        line.split() for line in page.split("## Rules of a project")[0].splitlines() if line.startswith("fairlead ")
    ]
    assert ["nodepool", "create"] in [line[1:3] for line in lines]
    for _, *words in lines:
        command.ok(*words)


def test_the_example_of_declared_nodes(make_server: Callable[..., Server]) -> None:
    server = make_server("--personal", "--nodes", str(EXAMPLES / "nodes.yaml"))
    command = Caller(server.data_dir)
    command.ok("nodepool", "create", "small", "--label", "tier=small")
    command.ok("project", "create", "vision", "--gpu-quota", "4", "--quota", "pool=small,gpu=1")
    rows = [line.split() for line in command.ok("node", "list", "--no-headers").splitlines()]
    assert [(row[0], row[2], row[3]) for row in rows] == [
        ("node-1", "default", "4"),
        ("node-2", "default", "4"),
        ("node-3", "small", "2"),
    ]
    command.ok(
        "run", "-p", "vision", "--name", "here", "--gpu", "2", "--node-pools", "small", "--detach", "--", "sleep", "600"
    )
    assert command("wait", "here", "-p", "vision", "--for", "Running", "--timeout", "120s").code == 0
    shown = command.ok("node", "describe", "node-3")
    assert "2 (T4), 2 in use" in shown
    assert "GPU        1" in command.ok("project", "describe", "vision")
    limits = ("--workspace-time-limit", "2h", "--workspace-idle-limit", "1h")
    command.ok("project", "update", "vision", *limits, "--preemptible-workspace-idle-limit", "30m")
    described = command.ok("project", "describe", "vision")
    assert [line.split()[-1] for line in described.splitlines() if "orkspace" in line] == ["2h0m", "1h0m", "30m"]
    refused = command("project", "delete", "vision")
    assert (refused.code, "here (Running)" in refused.err) == (1, True)
    command.ok("project", "delete", "vision", "--force")
    until(lambda: "vision" not in command.ok("project", "list"), "the project's end")


def have_run(locks: Path, wanted: int) -> bool:
    return len(list(locks.glob("ran-*"))) >= wanted


def test_no_gpu_is_given_away_twice_whatever_is_killed(make_server: Callable[..., Server], tmp_path: Path) -> None:
    """Borrowing, preempting and sharing, with the server killed again and again; the jobs themselves tell."""
    chance = random.Random(20)
    locks = tmp_path / "locks"
    locks.mkdir()
    server = make_server("--personal", *node(gpus=4))
    teams = [project(server, f"team-{letter}", quota) for letter, quota in (("a", 2), ("b", 1), ("c", 1))]
    submitted: dict[str, str] = {}
    for number in range(32):
        tenths = chance.choice((3, 5, 5, 10, 10, 20))
        name = f"job-{number}"
        seconds, linger = chance.choice((0.3, 0.8, 1.5)), chance.choice((0.0, 0.2, 0.5))
        command = f"{sys.executable} {WITNESS} {locks} {min(tenths, 10)} {seconds} {linger}"
        priority = chance.choice(("low", "medium", "medium-high"))
        submitted[name] = submit(server, chance.choice(teams), name, tenths / 10, command, priorityClass=priority)
        if number % 8 == 5:
            server.kill()
            server.start()
    until(lambda: sum(explanation(server, id)["preemptions"] for id in submitted.values()), "somebody has to give way")
    (locks / "go").touch()
    for wanted in (12, 20):
        until(partial(have_run, locks, wanted), f"{wanted} to run")
        server.kill()
        server.start()
    for id in submitted.values():
        server.until_phase(id, "Completed", "Failed", patience=180)
    crimes = [path.read_text() for path in locks.glob("crime-*")]
    assert not crimes
    assert {path.name.removeprefix("ran-") for path in locks.glob("ran-*")} == set(submitted)
    assert {name for name, id in submitted.items() if server.phase(id) != "Completed"} == set()
