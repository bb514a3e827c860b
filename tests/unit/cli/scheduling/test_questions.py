"""Questions to the scheduler on a snapshot file, without a server."""

import json
from pathlib import Path

import pytest

from fairlead.cli.exit_codes import FAILED, OK, USAGE
from tests.unit.cli.calling import call
from tests.unit.cli.scheduling.test_schedule import save, snapshot


def test_why_is_the_same_to_the_byte(tmp_path: Path) -> None:
    path = save(tmp_path, snapshot())
    first = call("why", "j2", "--snapshot", path, "-o", "json", home=tmp_path)
    assert first.code == OK
    assert first.out == call("why", "--snapshot", path, "--workload", "j2", "-o", "json", home=tmp_path).out
    assert first.out == call("why", "j2", "-f", "-", "--json", home=tmp_path, stdin=json.dumps(snapshot())).out
    answer = json.loads(first.out)
    assert (answer["status"], answer["revision"]) == ("waits", None)
    assert {change["family"] for change in answer["changes"]} >= {"priority", "addNodes"}


def test_why_as_text(tmp_path: Path) -> None:
    shown = call("why", "j2", "--snapshot", save(tmp_path, snapshot()), home=tmp_path)
    assert shown.out.startswith("j2 (team): Waiting for 1 GPU: both GPUs of n1 are in use.")
    assert "- Add 1 node like n1 (2 GPUs each).\n" in shown.out


def test_a_plan_of_what_waits(tmp_path: Path) -> None:
    path = save(tmp_path, snapshot())
    planned = call("plan", "j0", "--snapshot", path, "-o", "json", home=tmp_path).out
    assert planned == call("plan", "--snapshot", path, "--workload", "j0", "-o", "json", home=tmp_path).out
    plan = json.loads(planned)
    assert (plan["status"], [pod["node"] for pod in plan["pods"]]) == ("starts", ["n1"])
    assert [ref["workload"] for ref in plan["effects"]["delayed"]["workloads"]] == ["j2"]
    shown = call("plan", "j0", "--snapshot", path, home=tmp_path)
    assert shown.out.startswith("j0 (team): Starts 1 pod on n1; delays j2.\n- a pod on n1, GPU 0\n")
    assert "Quotas afterwards: gpu\nOWNER" in shown.out
    owners = [row["type"] for row in plan["queues"]]
    assert owners == ["PROJECT", *["DEPARTMENT"] * (len(owners) - 1)]
    assert f"\nproject {plan['queues'][0]['name']} " in shown.out


def test_plan_needs_something_to_plan(tmp_path: Path) -> None:
    called = call("plan", "something", home=tmp_path)
    assert called.code == USAGE
    assert "Name what to submit" in called.err


@pytest.mark.parametrize(
    ("content", "words", "code", "want"),
    [
        ("{", ("j2",), FAILED, "file.json is not valid:\n  It is not JSON: Input data was truncated.\n"),
        ("", ("j2",), FAILED, "file.json is not valid:\n  It is empty.\n"),
        (snapshot(), ("nobody",), USAGE, "The snapshot has no workload 'nobody'."),
        (snapshot(), (), USAGE, "Name one workload, as in `fairlead why NAME` or with --workload NAME."),
        (snapshot(), ("j2", "--workload", "j2"), USAGE, "Name one workload"),
    ],
    ids=["not JSON", "empty", "unknown workload", "no name", "two names"],
)
def test_bad_input_is_answered(tmp_path: Path, content: object, words: tuple[str, ...], code: int, want: str) -> None:
    called = call("why", *words, "--snapshot", save(tmp_path, content), home=tmp_path)
    assert (called.code, called.out) == (code, "")
    assert want in called.err


def test_what_if_on_a_file(tmp_path: Path) -> None:
    path = save(tmp_path, snapshot())
    words = ("what-if", "--snapshot", path, "--add-node", "2x=n1", "--weight", "team=3")
    answer = json.loads(call(*words, "-o", "json", home=tmp_path).out)
    assert [ref["workload"] for ref in answer["starts"]["workloads"]] == ["j2"]
    assert answer["estimates"] is None
    called = call(*words, home=tmp_path)
    assert "If: Add 2 nodes like n1 (2 GPUs each)\n" in called.out
    assert "Would start\n- j2 (team, 1 GPU)\n" in called.out
    assert "When workloads start is not estimated without --runtimes FILE.\n" in called.err
    runtimes = save(tmp_path, {"j0": {"declared": 60}}, "runtimes.json")
    timed = call(*words, "--runtimes", runtimes, home=tmp_path).out
    assert "When they start\nWORKLOAD" in timed
    weight = "{change: share, queue: team, field: weight, value: 3}"
    changes = f"changes:\n- change: addNodes\n  like: n1\n  count: 2\n- {weight}\n"
    file = save(tmp_path, changes, "changes.yaml")
    given = call("what-if", "--snapshot", path, "-f", file, "-o", "json", home=tmp_path)
    assert {**json.loads(given.out), "changes": []} == {**answer, "changes": []}


@pytest.mark.parametrize(
    ("words", "want"),
    [
        ((), "No change given"),
        (("--quota", "team"), "--quota 'team' is not OWNER[.RESOURCE][@POOL]=AMOUNT."),
        (("--quota", "team.cpu=4Gi"), "--quota: '4Gi' is not an amount of cpu"),
        (("--quota", "team=much"), "'much' is not an amount of gpu"),
        (("--weight", "team=unlimited"), "'unlimited' is not a weight"),
        (("--priority", "j1=highest"), "There is no priority 'highest'. Did you mean high?"),
        (("--priority", "j1"), "is not NAME=PRIORITY"),
        (("--add-node", "0x=n1"), "is not [COUNTx=]NODE"),
        (("--drain", "n7"), "There is no node 'n7'."),
        (("--drain", "n1", "--apply"), "--apply changes a server"),
        (("-f", "-"), "has no list of changes below `changes`"),
    ],
)
def test_what_if_refuses_what_it_cannot_try(tmp_path: Path, words: tuple[str, ...], want: str) -> None:
    called = call("what-if", "--snapshot", save(tmp_path, snapshot()), *words, home=tmp_path, stdin="[1]")
    assert (called.code, called.out) == (USAGE, "")
    assert want in called.err


def test_an_estimate_on_a_file(tmp_path: Path) -> None:
    jobs = snapshot()["jobs"]
    jobs[0]["tasks"] = [{"id": "t0", "gpu": 2, "status": "Running", "node": "n1"}]
    path = save(tmp_path, snapshot(jobs=jobs[:2]))
    runtimes = save(tmp_path, {"j0": {"declared": 60}}, "runtimes.json")
    words = ("estimate", "--workload", "j1", "--snapshot", path, "--runtimes", runtimes)
    answer = json.loads(call(*words, "-o", "json", home=tmp_path).out)
    assert (answer["status"], answer["p50"]) == ("estimated", 160)
    assert "- 1970-01-01 00:02:40Z: j0 ends (declared)\n" in call(*words, home=tmp_path).out
    wrong = save(tmp_path, {"j0": {"declared": "long"}}, "runtimes.json")
    called = call("estimate", "j1", "--snapshot", path, "--runtimes", wrong, home=tmp_path)
    assert (called.code, "has no running times by workload" in called.err) == (USAGE, True)


def test_a_history_is_replayed_without_a_server(tmp_path: Path) -> None:
    lines = "".join(
        json.dumps({"id": f"j{number}", "at": number, "project": "p", "duration": 60, "gpus": 4}) + "\n"
        for number in range(3)
    )
    path = save(tmp_path, lines, "jobs.json")
    words = ("what-if", "history", path, "--nodes", "1x4", "--add-node", "2x=node-0001")
    answer = json.loads(call(*words, "-o", "json", "--svg", "waits.svg", home=tmp_path).out)
    assert (answer["before"]["waitP90"], answer["after"]["waitP90"]) == (118, 0)
    assert answer["winners"] == ["p"]
    assert (tmp_path / "waits.svg").read_text().startswith("<svg")
    unwritable = call(*words, "--svg", "nowhere/waits.svg", home=tmp_path)
    assert (unwritable.code, "nowhere/waits.svg cannot be written: No such file" in unwritable.err) == (USAGE, True)
    shown = call(*words, home=tmp_path).out
    assert "Wait less: p.\n" in shown
    assert "GPU hours borrowed: 0, of that lent by projects: 0." in shown
    asked = ("what-if", "capacity", path, "--nodes", "1x4", "--target", "p90 wait of p <= 1m")
    found = call(*asked, home=tmp_path)
    assert found.out.endswith("The smallest that is enough: 1 more node like node-0001.\n")
    never = call(*asked, "--by", "quota", "--most", "1", home=tmp_path)
    assert never.code == FAILED
    assert "Even this is not enough: a quota of 5 GPUs for p (1 more)." in never.err


NEEDED = ("capacity", "jobs.json", "--nodes", "1x4", "--target")


@pytest.mark.parametrize(
    ("words", "want"),
    [
        (("history", "jobs.json"), "Name the cluster with --nodes NODESxGPUS"),
        (("history", "jobs.json", "--nodes", "1x4", "--format", "sacct"), "jobs.json: Line 1: the columns JobID"),
        (("history", "nowhere.json", "--nodes", "1x4"), "nowhere.json cannot be read"),
        (("capacity", "jobs.json", "--nodes", "1x4", "--target", "soon"), "--target must be like"),
        (("capacity", "jobs.json", "--nodes", "1x4", "--target", "p90 wait of x <= 1m"), "has no project 'x'"),
        ((*NEEDED, "p90 wait <= 1m", "--by", "quota"), "With --by quota, --target names the project"),
        ((*NEEDED, "p90 wait of p <= 1m", "--by", "quota", "--like", "n1"), "--like names a node"),
        ((*NEEDED, "p90 wait of p <= 1m", "--like", "n1"), "There is no node 'n1'."),
    ],
)
def test_histories_that_cannot_be_replayed(tmp_path: Path, words: tuple[str, ...], want: str) -> None:
    save(tmp_path, '{"id": "j", "at": 0, "project": "p", "duration": 60, "gpus": 4}', "jobs.json")
    called = call("what-if", *words, home=tmp_path)
    assert (called.code, called.out) == (USAGE, "")
    assert want in called.err


def test_a_cluster_without_nodes_has_no_type_to_add(tmp_path: Path) -> None:
    jobs = save(tmp_path, '{"id": "j", "at": 0, "project": "team", "duration": 60, "gpus": 4}', "jobs.json")
    state = save(tmp_path, snapshot(nodes=[], jobs=[]), "state.json")
    called = call("what-if", "capacity", jobs, "--snapshot", state, "--target", "p90 wait <= 1m", home=tmp_path)
    assert (called.code, "The cluster has no node" in called.err) == (USAGE, True)


def test_a_replay_that_ends_before_it_begins_is_refused_with_both_times(tmp_path: Path) -> None:
    called = call("replay", "--from", "2026-10-01T14:00", "--to", "2026-10-01T13:00", home=tmp_path)
    assert called.code == USAGE
    assert "--to is 2026-10-01 13:00:00Z, before --from, which is 2026-10-01 14:00:00Z." in called.err
