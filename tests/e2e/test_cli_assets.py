"""Environments, compute resources and data sources by name, as `submit` takes them; and nodes to be avoided."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli import exit_codes
from tests.e2e.cli_calls import Caller
from tests.e2e.server import Server

HOST = ("-i", "fairlead.local/host")
ENVIRONMENT = {
    "image": "fairlead.local/host",
    "command": "sh -c",
    "runAsNonRoot": False,
    "environmentVariables": [{"name": "A", "value": "of the asset"}, {"name": "B", "value": "of the asset"}],
}


@pytest.fixture(scope="module")
def fairlead(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    base = tmp_path_factory.mktemp("assets")
    nodes = ("--node", "one:cpu=4,memory=4Gi", "--node", "two:cpu=4,memory=4Gi")
    server = Server(base / "data", "--personal", *nodes).start()
    yield Caller(server.data_dir)
    server.close()


def create(fairlead: Caller, noun: str, name: str, spec: dict[str, Any], *arguments: str) -> None:
    assert fairlead.ok(noun, "create", name, "-f", "-", *arguments, stdin=json.dumps(spec)) == f"{name}\n"


def test_a_training_from_assets(fairlead: Caller, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("from the source\n")
    create(fairlead, "environment", "base", ENVIRONMENT)
    create(fairlead, "compute", "small", {"cpuCoreRequest": 0.2, "cpuMemoryRequest": "100M"})
    source = {"path": str(tmp_path), "mountPath": str(tmp_path), "readOnly": True}
    create(fairlead, "datasource", "here", source, "--kind", "hostPath")
    assert fairlead.ok("environment", "list", "-o", "name") == "base\n"
    assert json.loads(fairlead.ok("datasource", "describe", "here", "--json"))["spec"] == {"hostPath": source}

    assets = ("--environment", "base", "--compute", "small", "--datasource", "here")
    script = f'echo "$A, $B"; cat {tmp_path}/file'
    called = fairlead("training", "submit", "made", *assets, "-e", "B=of the flag", "--attach", "--", script)
    assert called.out == "made\nof the asset, of the flag\nfrom the source\n"
    assert "CPU memory:  request 100M" in fairlead.ok("describe", "made")

    missing = fairlead("training", "submit", "other", "--environment", "bas", "--", "true")
    assert (missing.code, "Did you mean base?" in missing.err) == (exit_codes.NOT_FOUND, True)
    fairlead.ok("compute", "delete", "small")
    assert fairlead.ok("compute", "list", "-o", "name") == ""


def test_credentials_of_assets_become_secrets(fairlead: Caller, tmp_path: Path) -> None:
    password = {"meta": {"name": "door", "scope": "project", "projectId": 1}, "spec": {"user": "u", "password": "p"}}
    with Server(fairlead.data_dir).client() as client:
        made = client.request("POST", "/api/v1/asset/credentials/password", password)
    variables = [{"name": "DOOR", "credential": {"assetId": made["meta"]["id"], "key": "Password"}}]
    create(fairlead, "environment", "secretive", {**ENVIRONMENT, "environmentVariables": variables})
    script = 'test "$DOOR" = p && echo opened'
    called = fairlead("training", "submit", "door", "--environment", "secretive", "--attach", "--", script)
    assert called.out == "door\nopened\n"


def test_excluded_nodes(fairlead: Caller) -> None:
    words = (*HOST, "--exclude-node", "one", "-c", "--", "true")
    for number in range(3):
        fairlead.ok("training", "submit", f"avoids-{number}", *words)
        assert fairlead("wait", f"avoids-{number}", "--timeout", "120s").code == exit_codes.OK
        pods = json.loads(fairlead.ok("describe", f"avoids-{number}", "--json"))["pods"]
        assert [pod["nodeName"] for pod in pods] == ["two"]


def test_types_of_workloads(fairlead: Caller) -> None:
    assert "Training" in fairlead.ok("workload-type", "list", "-o", "name").splitlines()


@pytest.mark.parametrize("noun", ["auth", "diagnostics", "kubeconfig"])
def test_nouns_without_a_counterpart_say_what_to_do(fairlead: Caller, noun: str) -> None:
    called = fairlead(noun, "whatever")
    assert called.code == exit_codes.USAGE
    assert called.err.startswith(f"fairlead: Fairlead has no command '{noun}': ")
