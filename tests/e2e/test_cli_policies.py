"""Policies from the command line: every verb of `policy`, older policies in files, and every way to submit."""

import json
from pathlib import Path

import pytest

from fairlead.cli import exit_codes
from tests.e2e.cli_calls import Caller
from tests.e2e.server import Server

LEGACY = """apiVersion: run.ai/v2alpha1
kind: TrainingPolicy
metadata: {name: old, namespace: runai-PROJECT}
spec:
  backoffLimit: {value: 2, rules: {max: 4}}
  gpu: {rules: {max: "2"}}
  environment: {items: {TEAM: {value: vision, rules: {canRemove: false}}}}
---
apiVersion: run.ai/v2alpha1
kind: TrainingWorkload
metadata: {name: from-file, namespace: runai-PROJECT}
spec:
  name: {value: from-file}
  image: {value: fairlead.local/host}
  command: {value: sleep}
  arguments: {value: "60"}
  active: {value: false}
"""
HOST = ("-i", "fairlead.local/host")


@pytest.fixture
def fairlead(server: Server) -> Caller:
    return Caller(server.data_dir)


@pytest.fixture
def project(fairlead: Caller, request: pytest.FixtureRequest) -> str:
    name = request.node.name.split("[")[0].removeprefix("test_").replace("_", "-")[:30].strip("-")
    fairlead("project", "create", name)
    return name


def test_an_older_policy_in_a_file_is_converted(fairlead: Caller, project: str, tmp_path: Path) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(LEGACY.replace("PROJECT", project))
    differs = fairlead("diff", "-f", str(file))
    assert (differs.code, "+    max: 4" in differs.out) == (exit_codes.FAILED, True)
    applied = fairlead("apply", "-f", str(file))
    assert applied.code == exit_codes.OK, applied.err
    assert "old: spec.gpu.rules: applies to whole GPUs only" in applied.err
    assert "old: spec.environment.items.TEAM.rules: is locked now" in applied.err
    spec = json.loads(fairlead.ok("describe", "from-file", "-p", project, "-o", "rest"))["spec"]
    assert spec["backoffLimit"] == 2
    assert spec["environmentVariables"] == [{"name": "TEAM", "value": "vision"}]
    again = fairlead("apply", "-f", str(file))
    assert (again.code, "from-file: unchanged" in again.out) == (exit_codes.OK, True)
    assert fairlead("policy", "diff", "-f", str(file)).code == exit_codes.USAGE, "it has a workload, too"
    fairlead.ok("delete", "-f", str(file))
    assert fairlead("policy", "describe", "--scope", "project", "-p", project).code != exit_codes.OK


def test_an_older_policy_that_cannot_be_read_changes_nothing(fairlead: Caller, project: str, tmp_path: Path) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(LEGACY.replace("PROJECT", project).replace("backoffLimit", "backofLimit"))
    refused = fairlead("apply", "-f", str(file))
    assert refused.code != exit_codes.OK
    assert "spec.backofLimit: is not a field of workload YAML" in refused.err
    assert "from-file" not in fairlead.ok("list", "-p", project)


def test_every_verb(fairlead: Caller, project: str, tmp_path: Path) -> None:
    file, cases = tmp_path / "policy.json", tmp_path / "cases.json"
    rules = {"compute": {"gpuDevicesRequest": {"max": 1}}}
    content = {"defaults": {"backoffLimit": 2}, "rules": rules}
    file.write_text(json.dumps({"type": "training", "name": "v", "scope": "project", "project": project, **content}))
    assert "is valid" in fairlead("policy", "apply", "-f", str(file), "--dry-run").err
    assert fairlead("policy", "diff", "-f", str(file)).code == exit_codes.FAILED
    fairlead.ok("policy", "apply", "-f", str(file))
    assert fairlead("policy", "diff", "-f", str(file)).code == exit_codes.OK
    listed = json.loads(fairlead.ok("policy", "list", "--json"))
    assert "v" in [row["meta"]["name"] for row in listed]
    assert f"project {project}" in fairlead.ok("policy", "list")
    where = ("--scope", "project", "-p", project)
    described = fairlead.ok("policy", "describe", *where)
    assert f"project: {project}\n" in described
    (tmp_path / "described.yaml").write_text(described)
    assert fairlead("policy", "diff", "-f", str(tmp_path / "described.yaml")).code == exit_codes.OK
    effective = fairlead.ok("policy", "effective", "-p", project, "--type", "training", "-o", "yaml")
    assert "scope: project" in effective
    assert "scope: system" in effective
    explained = fairlead.ok("policy", "explain", "compute.gpuDevicesRequest")
    assert (
        explained
        == "compute.gpuDevicesRequest is of type integer: required, canEdit, blocked, min, max, defaultFrom, step.\n"
    )
    case = {"name": "two", "spec": {"compute": {"gpuDevicesRequest": 2}}}
    wanted = {"violations": [{"field": "compute.gpuDevicesRequest", "rule": "max"}]}
    cases.write_text(json.dumps({"type": "training", "policies": [content], "cases": [case | {"expect": wanted}]}))
    assert fairlead.ok("policy", "test", str(cases)) == "1 cases, 0 failed.\n"
    cases.write_text(json.dumps({"type": "training", "policies": [content], "cases": [case]}))
    assert fairlead("policy", "test", str(cases)).code == exit_codes.FAILED
    planned = fairlead.ok("plan", "training", "planned", "-p", project, *HOST)
    assert "Set by policy: backoffLimit = 2" in planned
    command = json.loads(fairlead.ok("plan", "run", "-n", "command", "-p", project, "-o", "json", "--", "true"))
    assert (command["workload"], command["status"]) == ("command", "starts")
    assert "max" in fairlead("plan", "training", "planned", "-p", project, *HOST, "-g", "2").err
    fairlead.ok("policy", "delete", *where)
    assert fairlead("policy", "describe", *where).code != exit_codes.OK


def test_a_policy_of_a_cluster_by_its_name_and_one_without_effect(fairlead: Caller, tmp_path: Path) -> None:
    file = tmp_path / "policy.json"
    file.write_text(json.dumps({"type": "nimService", "name": "n", "scope": "cluster", "cluster": "default"}))
    assert "NimService workloads do not exist here" in fairlead("policy", "apply", "-f", str(file)).err
    where = ("--type", "nimService", "--scope", "cluster", "--cluster")
    described = fairlead("policy", "describe", *where, "default")
    assert "NimService workloads do not exist here" in described.err
    file.write_text(described.out)
    assert fairlead("policy", "diff", "-f", str(file)).code == exit_codes.OK
    assert "There is no cluster 'other'" in fairlead("policy", "delete", *where, "other").err
    fairlead.ok("policy", "delete", *where, "default")


KINDS = {
    "training": ("training", "submit"),
    "workspace": ("workspace", "submit"),
    "distributed": ("training", "pytorch", "submit"),
    "inference": ("inference", "submit"),
    "distributedInference": ("inference", "distributed", "submit"),
}


@pytest.fixture
def limited(fairlead: Caller, project: str, tmp_path: Path) -> str:
    """A project in which every kind of workload may have one CPU at most."""
    documents = []
    for kind in KINDS:
        rules: object = {"compute": {"cpuCoreRequest": {"max": 1}}}
        rules = (
            {"worker": rules} if kind == "distributed" else {"leader": rules} if kind.endswith("dInference") else rules
        )
        documents.append({"type": kind, "name": kind, "scope": "project", "project": project, "rules": rules})
    file = tmp_path / "policies.yaml"
    file.write_text("\n---\n".join(json.dumps(document) for document in documents))
    fairlead.ok("policy", "apply", "-f", str(file))
    return project


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_by_its_verb(fairlead: Caller, limited: str, kind: str) -> None:
    flags = ("--workers", "1") if kind.startswith("distributed") else ()
    refused = fairlead(*KINDS[kind], "refused", "-p", limited, *HOST, *flags, "--cpu-core-request", "2")
    assert refused.code != exit_codes.OK
    assert "value must be no greater than 1 (policy of project" in refused.err


def test_run_and_foreign_files(fairlead: Caller, limited: str, tmp_path: Path) -> None:
    refused = fairlead("run", "-p", limited, "--cpu-core-request", "2", "--", "true")
    assert "no greater than 1 (policy of project" in refused.err
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --cpus-per-task=2\n#SBATCH --container-image=x\ntrue\n")
    converted = fairlead.ok("convert", str(script), "--to", "yaml")
    refused = fairlead("apply", "-p", limited, "-f", "-", stdin=converted)
    assert "no greater than 1 (policy of project" in refused.err


def test_templates_and_assets(fairlead: Caller, limited: str) -> None:
    big = json.dumps({"image": "fairlead.local/host", "compute": {"cpuCoreRequest": 2}})
    fairlead.ok("template", "create", "big", "-p", limited, "-f", "-", stdin=big)
    refused = fairlead("training", "submit", "by-template", "-p", limited, "--template", "big")
    assert "no greater than 1 (policy of project" in refused.err
    listed = json.loads(fairlead.ok("template", "list", "-p", limited, "--json"))
    assert [row["complianceIssues"][0]["rule"] for row in listed if row["meta"]["name"] == "big"] == ["max"]
    two = json.dumps({"cpuCoreRequest": 2})
    fairlead.ok("compute", "create", "two-cpus", "-p", limited, "-f", "-", stdin=two)
    refused = fairlead("training", "submit", "by-asset", "-p", limited, *HOST, "--compute", "two-cpus")
    assert "no greater than 1 (policy of project" in refused.err
