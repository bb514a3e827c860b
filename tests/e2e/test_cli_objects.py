"""`fairlead secret|configmap|pvc|credential|template|user|service-account` against a real server."""

import json
from pathlib import Path

import pytest

from fairlead.cli import exit_codes
from tests.e2e.cli_calls import Caller
from tests.e2e.server import Server


@pytest.fixture
def fairlead(server: Server) -> Caller:
    return Caller(server.data_dir)


@pytest.mark.parametrize(
    ("noun", "flag"),
    [("secret", "--env-secret"), ("configmap", "--env-config-map"), ("credential", "--env-credential")],
)
def test_values_are_kept_and_shown_by_key_only(fairlead: Caller, noun: str, flag: str) -> None:
    name = f"cli-{noun}"
    assert (
        fairlead.ok(noun, "create", name, "--from-literal", "a=one", "--from-file", "b=-", stdin="two") == f"{name}\n"
    )
    listed = json.loads(fairlead.ok(noun, "list", "--json"))
    row = next(row for row in listed if row["name"] == name)
    assert row["keys"] == ["a", "b"]
    shown = fairlead.ok(noun, "describe", name)
    assert ("two" in shown) is (noun == "configmap")
    assert fairlead(noun, "create", name, "--from-literal", "a=one").code == exit_codes.FAILED
    fairlead.ok(noun, "delete", name)
    missing = fairlead(noun, "describe", name)
    assert missing.code != exit_codes.OK
    assert f"'{name}'" in missing.err


def test_a_claim(fairlead: Caller) -> None:
    assert fairlead("pvc", "create", "data").code == exit_codes.USAGE
    fairlead.ok("pvc", "create", "data", "--size", "10Gi", "--access-mode", "ReadWriteMany")
    assert "10Gi" in fairlead.ok("pvc", "list")
    fairlead.ok("pvc", "delete", "data")


def test_a_template_and_what_it_would_make(fairlead: Caller, tmp_path: Path) -> None:
    file = tmp_path / "spec.json"
    file.write_text(json.dumps({"image": "fairlead.local/host", "command": "sh", "args": "-c 'echo $A$B'"}))
    fairlead.ok("template", "create", "greeting", "-f", str(file))
    assert "greeting" in fairlead.ok("template", "list")
    words = ("training", "submit", "--template", "greeting", "-e", "A=hello")
    preview = json.loads(fairlead.ok(*words, "tried", "--dry-run", "--json"))
    assert preview["spec"]["command"] == "sh"
    assert preview["spec"]["environmentVariables"] == [{"name": "A", "value": "hello"}]
    assert "tried" not in fairlead.ok("list", "-o", "name")
    fairlead.ok(*words, "made")
    assert fairlead("wait", "made", "--for", "Completed", "--timeout", "120s").code == exit_codes.OK
    assert fairlead.ok("logs", "made") == "hello\n"
    fairlead.ok("template", "delete", "greeting")


def test_people(fairlead: Caller) -> None:
    password = fairlead.ok("user", "create", "grace@example.com").strip()
    assert len(password) >= 12
    fairlead.ok("user", "grant", "grace@example.com", "--project", "default")
    described = fairlead.ok("user", "describe", "grace@example.com")
    assert "\nEnabled:     yes\n" in described
    assert described.endswith("\nRoles\nL1 researcher of project default\n")
    assert fairlead.ok("user", "renew", "grace@example.com").strip() != password
    assert json.loads(fairlead.ok("user", "renew", "grace@example.com", "-o", "json"))["tempPassword"] != password
    fairlead.ok("user", "disable", "grace@example.com")
    assert "grace@example.com" in fairlead.ok("user", "list")
    fairlead.ok("user", "revoke", "grace@example.com", "--project", "default")
    fairlead.ok("user", "delete", "grace@example.com")
    secret = fairlead.ok("service-account", "create", "robot").strip()
    assert len(secret) >= 32
    fairlead.ok("service-account", "grant", "robot", "--role", "administrator")
    fairlead.ok("service-account", "delete", "robot")
    assert "robot" not in fairlead.ok("service-account", "list", "-o", "name").split()


def test_roles_groups_and_sessions(fairlead: Caller) -> None:
    listed = fairlead.ok("role", "list")
    assert "ML engineer" in listed
    assert "System administrator" in listed
    assert "VECD  Trainings" in fairlead.ok("role", "describe", "l2-researcher")
    assert "Data volumes: manage" in fairlead.ok("role", "permission-sets")
    fairlead.ok("role", "create", "Data steward", "--permission-set", "Data volumes: manage")
    fairlead.ok("group", "grant", "crew", "--role", "data-steward", "--project", "default")
    refused = fairlead("role", "delete", "data-steward")
    assert "delete them first" in refused.err
    fairlead.ok("group", "revoke", "crew", "--role", "Data steward", "--project", "default")
    fairlead.ok("role", "delete", "data-steward")
    assert "There is no role captain" in fairlead("user", "grant", "admin@fairlead.local", "--role", "captain").err
    fairlead.ok("user", "create", "alan@example.com")
    assert len(fairlead.ok("user", "reset-code", "alan@example.com").strip()) > 60
    assert "You have no sessions" in fairlead("login", "sessions").err
    fairlead.ok("user", "delete", "alan@example.com")
    fairlead.ok("service-account", "create", "brief", "--expires", "1h")
    [brief] = [
        row for row in json.loads(fairlead.ok("service-account", "list", "-o", "json")) if row["name"] == "brief"
    ]
    assert brief["expiresAt"]
    fairlead.ok("service-account", "delete", "brief")


def test_what_a_workload_used_is_reported(fairlead: Caller) -> None:
    fairlead.ok("training", "submit", "metered", "-i", "fairlead.local/host", "--cpu-core-request", "0.5", "--", "true")
    assert fairlead("wait", "metered", "--for", "Completed", "--timeout", "120s").code == exit_codes.OK
    report = json.loads(fairlead.ok("report", "usage", "--by", "workload,project", "--json"))
    row = next(row for row in report["rows"] if row["workload"] == "metered")
    assert row["used"]["cpuHours"] > 0
    assert row["used"]["gpuHours"] == 0
    header, *lines = fairlead.ok("report", "usage", "--since", "1h", "--by", "workload", "-o", "csv").splitlines()
    assert header.startswith("workload,workloadId,used.gpuHours,used.cpuHours,used.memoryGibHours,withinQuota.gpuHours")
    assert any(line.startswith(f"metered,{row['workloadId']},0.0,{row['used']['cpuHours']},") for line in lines)
    assert "BORROWED" in fairlead.ok("report", "usage")
    assert "UNAVAILABLE" in fairlead.ok("report", "usage", "--by", "nodepool")
    wrong = fairlead("report", "usage", "--since", "soon")
    assert (wrong.code, "30m" in wrong.err) == (exit_codes.USAGE, True)
    assert fairlead("report", "usage", "--by", "colour").code == exit_codes.USAGE


def test_a_file_is_checked_against_the_policy(fairlead: Caller, tmp_path: Path) -> None:
    fairlead.ok("project", "create", "checked")
    policy: dict[str, object] = {"type": "training", "name": "small", "scope": "project", "project": "checked"}
    policy |= {"defaults": {"backoffLimit": 2}, "rules": {"compute": {"gpuDevicesRequest": {"max": 1}}}}
    (tmp_path / "policy.yaml").write_text(json.dumps(policy))
    fairlead.ok("policy", "apply", "-f", str(tmp_path / "policy.yaml"))
    for gpus in (1, 2):
        name = f"gpus-{gpus}"
        head = {"apiVersion": "run.ai/v2alpha1", "kind": "TrainingWorkload", "metadata": {"name": name}}
        values = {"name": name, "image": "fairlead.local/host", "gpu": str(gpus)}
        spec = {member: {"value": value} for member, value in values.items()}
        (tmp_path / f"{gpus}.yaml").write_text(json.dumps(head | {"spec": spec}))
    accepted = fairlead.ok("policy", "check", "-p", "checked", "-f", str(tmp_path / "1.yaml"))
    assert accepted.startswith("gpus-1 would be accepted; set by policy or template: ")
    assert "backoffLimit" in accepted
    refused = fairlead("policy", "check", "-p", "checked", "-f", str(tmp_path / "2.yaml"))
    assert refused.code != 0
    assert "no greater than 1" in refused.err
    assert "gpus-" not in fairlead.ok("list", "-p", "checked")
