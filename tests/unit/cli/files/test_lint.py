"""`lint FILE...`: every kind of file is read, and the findings are shown in every form."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from fairlead.cli.exit_codes import FAILED, OK, USAGE
from fairlead.cli.files.lint_material import read_server
from fairlead.client import ServerError
from fairlead.client.transfer.bundle import FORMAT, Bundle
from fairlead.foresight.lint.table import RULES, lint
from fairlead.scheduling import Queue, QueueShares, Share, Snapshot, SnapshotNode
from tests.unit.cli.calling import call

WORKLOAD = """
apiVersion: run.ai/v2alpha1
kind: TrainingWorkload
metadata: {name: bert, namespace: runai-team-a}
spec:
  name: {value: bert}
  image: {value: x}
  cpu: {value: "4"}
  cpuLimit: {value: "2"}
"""
REQUEST = json.dumps(
    {"name": "bert", "projectId": "1", "spec": {"image": "x", "compute": {"gpuDevicesRequest": 9}}},
)
POLICY = """
type: training
name: small
scope: tenant
defaults: {compute: {gpuDevicesRequest: 4}}
rules: {compute: {gpuDevicesRequest: {max: 2}}}
"""
FREE = Share(limit=-1, quota=-1)
QUEUE = Queue(
    name="project-1",
    display_name="team-a",
    resources=QueueShares(gpu=Share(limit=-1, quota=16), cpu=FREE, memory=FREE),
)
NODE = SnapshotNode(name="n1", gpu=8, cpu_milli=16_000, memory_bytes=1 << 36)
SNAPSHOT = msgspec.json.encode(Snapshot(now=0, nodes=(NODE,), queues=(QUEUE,))).decode()


def exported(**more: list[dict[str, Any]]) -> str:
    """An export with a policy, a project without GPUs and a workload that nobody may preempt."""
    none = {"deserved": 0, "limit": 0, "overQuotaWeight": 0}
    row = {"gpu": none, "nodePool": {"id": "1", "name": "default"}}
    request = {"spec": {"image": "x", "priorityClass": "high", "compute": {"gpuDevicesRequest": 1}}}
    parts: dict[str, Any] = {name: [] for name in Bundle._fields} | {
        "source": {},
        "node_pools": [{"name": "default"}],
        "departments": [{"id": "2", "name": "all", "resources": []}],
        "projects": [{"id": 4, "name": "team-a", "parentId": "2", "resources": [row]}],
        "policies": [
            {
                "rest": "trainings",
                "meta": {"name": "small", "scope": "project", "projectId": 4},
                "policy": {"defaults": {"compute": {"gpuDevicesRequest": 4}}, "rules": None},
            },
            {
                "rest": "trainings",
                "meta": {"name": "wide", "scope": "department", "departmentId": "2"},
                "policy": {"rules": {"compute": {"gpuDevicesRequest": {"max": 2}}}},
            },
        ],
        "workloads": [{"name": "bert", "projectName": "team-a", "rest": "trainings", "request": request}],
    }
    return json.dumps({"format": FORMAT, **parts, **more})


FILES = {
    "w.yaml": WORKLOAD,
    "request.json": REQUEST,
    "policy.yaml": POLICY,
    "snapshot.json": SNAPSHOT,
    "export.json": exported(),
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def findings(home: Path, *arguments: str) -> list[tuple[str, str, str]]:
    called = call("lint", *arguments, "-o", "json", home=home)
    found = json.loads(called.out)["findings"]
    assert called.code == (FAILED if found else OK), called
    return [(each["file"], each["rule"], each["path"]) for each in found]


@pytest.mark.parametrize(
    ("files", "want"),
    [
        (["w.yaml"], [("w.yaml", "requests-exceed-limits", "spec.compute.cpuCoreLimit")]),
        (["request.json"], []),
        (["policy.yaml"], [("policy.yaml", "default-breaks-rule", "defaults.compute.gpuDevicesRequest")]),
        (["snapshot.json"], [("snapshot.json", "quota-exceeds-pool", "queues[0].resources.gpu.quota")]),
        (
            ["request.json", "snapshot.json"],
            [
                ("request.json", "gang-exceeds-cluster", "spec"),
                ("snapshot.json", "quota-exceeds-pool", "queues[0].resources.gpu.quota"),
            ],
        ),
        (
            ["export.json"],
            [
                ("export.json", "default-breaks-rule", "policies[0].policy.defaults.compute.gpuDevicesRequest"),
                ("export.json", "unusable-pool", "node_pools[0]"),
                ("export.json", "non-preemptible-exceeds-quota", "spec"),
            ],
        ),
    ],
)
def test_every_kind_of_file_is_read(home: Path, files: list[str], want: list[tuple[str, str, str]]) -> None:
    assert findings(home, *files) == want


def test_a_project_for_files_without_one(home: Path) -> None:
    request = json.loads(REQUEST)
    request["spec"] |= {"priorityClass": "high", "compute": {"gpuDevicesRequest": 1}}
    (home / "request.json").write_text(json.dumps(request))
    only = [row for row in findings(home, "request.json", "export.json", "-p", "team-a") if row[0] == "request.json"]
    assert only == [("request.json", "non-preemptible-exceeds-quota", "spec")]
    assert [row for row in findings(home, "request.json", "export.json") if row[0] == "request.json"] == []


def test_the_form_for_people(home: Path) -> None:
    called = call("lint", "w.yaml", home=home)
    assert called.code == FAILED
    assert called.out.splitlines() == [
        "error  requests-exceed-limits  w.yaml: workload bert: spec.compute.cpuCoreLimit",
        "    It is 2, below cpuCoreRequest, which is 4.",
        "    Every submission is refused: no pod can be given what it requests and stay within its limit.",
    ]
    assert "Findings: 1." in called.err
    assert call("lint", "request.json", home=home).out == ""


def sarif_validator() -> jsonschema_rs.Draft7Validator:
    """For the schema of the OASIS committee, as the crate serde-sarif 0.6.5 has it (src/schema.json; MIT)."""
    schema = json.loads((Path(__file__).parents[3] / "contract/data/sarif-2.1.0.schema.json").read_text())
    # The validator refuses this pattern because of its single bracket; our logs do not name a language.
    for name in ("run", "toolComponent"):
        del schema["definitions"][name]["properties"]["language"]["pattern"]
    return jsonschema_rs.Draft7Validator(schema, validate_formats=True)


def test_sarif(home: Path) -> None:
    (home / "with space.yaml").write_text(WORKLOAD)
    log = json.loads(call("lint", "with space.yaml", "snapshot.json", "-o", "sarif", home=home).out)
    sarif_validator().validate(log)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [rule.id for rule in RULES]
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == [r["ruleId"] for r in run["results"]]
    places = [result["locations"][0]["physicalLocation"]["artifactLocation"] for result in run["results"]]
    assert places == [{"uri": "snapshot.json"}, {"uri": "with%20space.yaml"}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "1:"),
        ("just words", "not known; lint reads workloads, policies, snapshots and exports."),
        (WORKLOAD.replace("cpuLimit", "cpuLimits"), "spec.cpuLimits"),
        (POLICY.replace("max", "most"), "policy small is not valid"),
        (POLICY.replace("scope: tenant", "scope: moon"), "scope must be one of"),
        (json.dumps({"now": 0, "nodes": [{"nam": "n1"}]}), "is not a valid snapshot"),
        (json.dumps({"format": FORMAT}), "is incomplete"),
    ],
)
def test_bad_input(home: Path, text: str, message: str) -> None:
    (home / "bad.yaml").write_text(text)
    called = call("lint", "w.yaml", "bad.yaml", home=home)
    assert (called.code, called.out) == (USAGE, "")
    assert message in called.err
    assert "bad.yaml" in called.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Name the files"),
        (("w.yaml", "--server"), "Name the files"),
        (("missing.yaml",), "cannot be read"),
        (("snapshot.json", "second.json"), "Pass one snapshot at a time"),
    ],
)
def test_what_cannot_be_asked(home: Path, words: tuple[str, ...], message: str) -> None:
    (home / "second.json").write_text(SNAPSHOT)
    called = call("lint", *words, home=home)
    assert (called.code, message in called.err) == (USAGE, True)


class AnsweringClient:
    """A server that shows an export, but not everything to everybody."""

    url, server_version = "http://127.0.0.1:1", "1"

    def __init__(self, snapshot: bytes | None) -> None:
        self._content = json.loads(exported())
        self._snapshot = snapshot

    def request(self, method: str, path: str, **query: Any) -> Any:
        content = self._content
        if path == "/api/v1/org-unit/departments":
            raise ServerError(403, "not allowed")
        if path == "/api/v2/policy/trainings":
            return {"policy": content["policies"][0]["policy"]}
        if path == "/api/v2/policy":
            meta = content["policies"][0]["meta"]
            return {"policies": [{"type": "training", "meta": meta}]}
        rows = {"node-pools": "node_pools", "projects": "projects"}
        name = path.rpartition("/")[2]
        return {name.replace("-", ""): content[rows[name]] if name in rows else []}

    def snapshot(self) -> bytes:
        if self._snapshot is None:
            raise ServerError(403, "not allowed")
        return self._snapshot


def rules_found(client: Any) -> tuple[list[str], list[str]]:
    material, hidden = read_server(client)
    return [each.rule for each in lint(material)], hidden


def test_a_server_is_checked_as_far_as_the_caller_may_see() -> None:
    found, hidden = rules_found(AnsweringClient(None))
    assert found == ["unusable-pool"]
    assert ["departments" in line for line in hidden] == [True, False]
    assert "snapshot" in hidden[1]


def test_the_cluster_of_a_server_is_what_its_scheduler_sees() -> None:
    found, hidden = rules_found(AnsweringClient(SNAPSHOT.encode()))
    assert found == ["quota-exceeds-pool"]
    assert len(hidden) == 1
