"""Every snippet of the Workload YAML Reference with a real kubectl: applied, shown, explained, run and deleted."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.server import until
from tests.e2e.test_yaml_reference import PROGRAMS, SNIPPETS
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness

pytestmark = pytest.mark.kubernetes
#: What no node offers, and a repository that is far away.
NOT_RUN = {"extended-resources", "git-sync"}
KIND = "interactiveworkloads"


@pytest.fixture(scope="module")
def supplied(harness: ClusterHarness) -> None:
    body = {"name": "cm-1", "projectId": harness.project_id, "data": {"answer": "forty-two"}}
    assert harness.server.call("POST", "/api/v1/config-maps", body).status == 201


def text_of(harness: ClusterHarness, path: Path) -> str:
    return path.read_text().replace("runai-team-a", harness.namespace)


def kubectl(harness: ClusterHarness, *arguments: str, stdin: str = "") -> str:
    done = harness.kubectl(*arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


def phases(harness: ClusterHarness) -> dict[str, str]:
    """Of every workload that was applied, as its status says."""
    return {one["metadata"]["name"]: one.get("status", {}).get("phase", "") for one in harness.objects(KIND)}


def test_applied_shown_explained_and_deleted(harness: ClusterHarness, supplied: None) -> None:
    """As they are: each is taken and comes as far as its image allows, which nobody can pull here."""
    documents = "---\n".join(text_of(harness, path) for path in SNIPPETS)
    names = {path.stem for path in SNIPPETS}
    applied = kubectl(harness, "apply", "-f", "-", stdin=documents)
    assert len(applied.splitlines()) == len(names)
    until(
        lambda: set(phases(harness)) == names and {"", "Creating"}.isdisjoint(phases(harness).values()),
        "phases",
        PATIENCE,
    )
    assert "Failed" not in phases(harness).values(), phases(harness)
    listed = kubectl(harness, "get", KIND, "-n", harness.namespace).splitlines()
    assert {line.split()[0] for line in listed[1:]} == names
    fields = {field for path in SNIPPETS for field in yaml.safe_load(path.read_text())["spec"]}
    for field in sorted(fields):
        assert "DESCRIPTION" in kubectl(harness, "explain", f"{KIND}.spec.{field}"), field
    kubectl(harness, "delete", "-f", "-", "--timeout=120s", stdin=documents)
    until(lambda: harness.names("jobs,pods,services") == [], "an empty namespace", PATIENCE)


def program_of(harness: ClusterHarness, path: Path) -> dict[str, Any]:
    """The snippet with a program, with an image that the node has, and with a class of storage that there is."""
    text = text_of(harness, path).replace("storageClass: default", "storageClass: standard")
    found: dict[str, Any] = yaml.safe_load(text)
    program, _ = PROGRAMS.get(path.stem, ("echo ran", "ran"))
    image = {"image": {"value": "ubuntu:latest"}, "imagePullPolicy": {"value": "IfNotPresent"}}
    found["spec"] |= image | {"command": {"value": program}}
    found["spec"].pop("arguments", None)
    return found


def test_with_a_program(harness: ClusterHarness, supplied: None) -> None:
    paths = [path for path in SNIPPETS if path.stem not in NOT_RUN]
    kubectl(harness, "apply", "-f", "-", stdin=yaml.safe_dump_all([program_of(harness, path) for path in paths]))
    uids = until(
        lambda: (
            len(found := {one["metadata"]["name"]: one["metadata"]["uid"] for one in harness.objects(KIND)})
            == len(paths)
            and found
        ),
        "all objects",
        PATIENCE,
    )
    for path in paths:
        harness.until_phase(uids[path.stem], "Completed")
        assert PROGRAMS.get(path.stem, ("", "ran"))[1] in harness.server.logs(uids[path.stem]), path.stem
