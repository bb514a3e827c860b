"""The scheduler as a command: files in, JSON out, the same to the byte; cases from files, with their differences."""

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli.exit_codes import FAILED, OK, USAGE
from tests.unit.cli.calling import call

SHARES = {name: {"limit": -1, "quota": -1} for name in ("gpu", "cpu", "memory")}


def snapshot(**members: Any) -> dict[str, Any]:
    team = {"name": "team", "resources": {**SHARES, "gpu": {"limit": -1, "quota": 2}}}
    node = {"name": "n1", "cpuMilli": 8000, "memoryBytes": 2**34, "gpu": 2, "gpuMemoryMib": 40000}
    jobs = [{"id": f"j{n}", "queue": "team", "created": n, "tasks": [{"id": f"t{n}", "gpu": 1}]} for n in range(3)]
    return {"now": 100, "nodes": [node], "queues": [team], "jobs": jobs} | members


def save(folder: Path, content: Any, name: str = "file.json") -> str:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def test_decisions_are_json_and_the_same_each_time(tmp_path: Path) -> None:
    path = save(tmp_path, snapshot())
    first = call("schedule", "--snapshot", path, home=tmp_path)
    assert first.code == OK
    assert first.out == call("schedule", "--snapshot", path, home=tmp_path).out
    assert first.out == call("schedule", "-f", "-", home=tmp_path, stdin=json.dumps(snapshot())).out
    decisions = json.loads(first.out)
    assert [bind["job"] for bind in decisions["binds"]] == ["j0", "j1"]
    assert [(one["job"], one["reason"]["code"]) for one in decisions["pending"]] == [("j2", "NoNodeFits")]


def test_some_actions_and_some_cycles(tmp_path: Path) -> None:
    path = save(tmp_path, snapshot())
    none = json.loads(call("schedule", "--snapshot", path, "--actions", "reclaim", home=tmp_path).out)
    assert none["binds"] == []
    played = json.loads(call("schedule", "--snapshot", path, "--cycles", "2", home=tmp_path).out)
    assert [len(cycle.get("binds", ())) for cycle in played] == [2, 0]


def test_all_contradictions_are_reported(tmp_path: Path) -> None:
    jobs = [
        {"id": name, "queue": "team", "tasks": [{"id": name, "status": "Running", "node": "nowhere"}]} for name in "ab"
    ]
    called = call("schedule", "--snapshot", save(tmp_path, snapshot(jobs=jobs)), home=tmp_path)
    assert called.code == FAILED
    assert called.out == ""
    assert called.err.count("nowhere") == 2


@pytest.mark.parametrize(
    ("words", "want"),
    [
        (("schedule",), "No file given. Name it with --snapshot."),
        (("schedule", "--snapshot", "missing.json"), "cannot be read"),
        (("schedule", "--snapshot", "{path}", "--cycles", "0"), "--cycles must be at least 1"),
        (("schedule", "--snapshot", "{path}", "--actions", "allocate,steal"), "'steal' is not an action"),
        (("fairshare",), "No file given. Name it with --queues."),
        (("test", "missing.yaml"), "cannot be read"),
    ],
)
def test_invalid_arguments(tmp_path: Path, words: tuple[str, ...], want: str) -> None:
    path = save(tmp_path, snapshot())
    called = call(*(word.replace("{path}", path) for word in words), home=tmp_path)
    assert called.code == USAGE
    assert want in called.err


def test_shares_of_queues(tmp_path: Path) -> None:
    queues = [
        {
            "name": name,
            "resources": {**SHARES, "gpu": {"limit": -1, "quota": quota, "overQuotaWeight": weight}},
            "requested": {"gpu": 30},
        }
        for name, quota, weight in (("a", 6, 3), ("b", 0, 2), ("c", 0, 1))
    ]
    path = save(tmp_path, {"total": {"gpu": 26}, "queues": queues})
    called = call("fairshare", "--queues", path, home=tmp_path)
    assert called.code == OK
    # 20 spare GPUs by weights 3, 2 and 1, whole ones first.
    assert {share["queue"]: share["fairShare"]["gpu"] for share in json.loads(called.out)} == {"a": 16, "b": 7, "c": 3}


CASE = (
    "{name: one fits, nodes: {n1: {gpu: 1}}, queues: {x: 1}, jobs: {j: {queue: x, gpu: 1}}, "
    "expect: {starts: {j: NODE}}}"
)


def test_cases_are_judged(tmp_path: Path) -> None:
    good = save(tmp_path, f"- {CASE.replace('NODE', 'n1')}\n", "good.yaml")
    called = call("test", good, "--verbose", home=tmp_path)
    assert (called.code, called.out) == (OK, "ok  good.yaml: one fits\n1 cases, 0 failed.\n")
    save(tmp_path, f"- {CASE.replace('NODE', 'n2')}\n- {{name: nonsense, nodes: {{n1: {{gpus: 1}}}}}}\n", "worse.yaml")
    both = call("test", str(tmp_path), "--json", home=tmp_path)
    assert both.code == FAILED
    decoded = json.loads(both.out)
    assert [bool(case["differences"]) for case in decoded] == [False, True, True]
    assert "expected j ['n2'], got ['n1']" in decoded[1]["differences"][0]
    assert "gpus" in decoded[2]["differences"][0]


def test_a_file_without_cases_is_refused(tmp_path: Path) -> None:
    assert call("test", save(tmp_path, "nodes: {}\n", "no.yaml"), home=tmp_path).code == USAGE
    empty = tmp_path / "empty"
    empty.mkdir()
    assert call("test", str(empty), home=tmp_path).code == FAILED
