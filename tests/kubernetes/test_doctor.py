"""What `doctor` sees of a real cluster: parts of KAI that do not work; and it needs no rights beyond the server's."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.cluster import control
from fairlead.engines.kubernetes.install.doctor import examine
from fairlead.engines.kubernetes.install.manifests import Installation, render_permissions
from fairlead.engines.kubernetes.render.organization import render_binding
from tests.e2e.server import until
from tests.kubernetes.cluster_harness import CLUSTER, PATIENCE, ClusterHarness
from tests.kubernetes.field_cases import STAYS

pytestmark = pytest.mark.kubernetes

PARTS = {
    "kai-podgrouper": ("KAI's pod grouper", "KAI's pod grouper has not created a pod group"),
    "kai-scheduler": ("KAI's scheduler", "No KAI scheduler of node pool default has reacted"),
    "kai-binder": ("KAI's binder", "its binder does not bind the pod"),
    "kai-admission": ("New pods", "failed calling webhook"),
}


@contextmanager
def without(harness: ClusterHarness, program: str) -> Iterator[None]:
    control.stop(harness.cluster.layout.folder, program)
    try:
        yield
    finally:
        control.start_again(harness.cluster.layout.folder, program)


#: Each takes the time after which a part counts as silent; one of them is enough for every run.
SLOW_PARTS = ("kai-podgrouper", "kai-binder")


@pytest.mark.parametrize(
    "program", [pytest.param(name, marks=[pytest.mark.operators] if name in SLOW_PARTS else []) for name in PARTS]
)
def test_a_part_of_kai_that_does_not_work(harness: ClusterHarness, program: str) -> None:
    what, words = PARTS[program]
    with without(harness, program):
        workload = harness.submit("training", "quiet", harness.real(STAYS))
        until(lambda: words in harness.server.message(workload), words, PATIENCE)
        until(lambda: what in missing(harness), f"{what} among what is missing", PATIENCE)
    harness.until_phase(workload, "Running")
    assert words not in harness.server.message(workload)
    assert until(lambda: what not in missing(harness), "everything at work", PATIENCE)


def missing(harness: ClusterHarness) -> set[str]:
    found = examine(str(harness.cluster.kubeconfig))
    return {one.what for one in found if one.state == "missing"}


@pytest.fixture
def rights(harness: ClusterHarness, tmp_path: Path) -> Iterator[str]:
    """A kubeconfig of an account that may do what the server's own may."""
    name = "doctor-rights"
    role, binding, in_projects, *_ = render_permissions(Installation(image="", namespace="default"))
    role["metadata"]["name"] = binding["metadata"]["name"] = name
    in_projects["metadata"]["name"] = f"{name}-project"
    binding["roleRef"]["name"] = binding["subjects"][0]["name"] = name
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}
    items = [account, role, binding, in_projects]
    # The doctor asks in the namespace of some project.
    listed = harness.api.call("GET", f"/api/v1/namespaces?labelSelector={CLUSTER}")["items"]
    for namespace in [one["metadata"]["name"] for one in listed if "deletionTimestamp" not in one["metadata"]]:
        own = render_binding(namespace, binding["subjects"][0])
        own["metadata"]["name"], own["roleRef"]["name"] = name, f"{name}-project"
        items.append(own)
    objects = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    harness.kubectl("apply", "-f", "-", stdin=objects)
    decoded = json.loads(harness.kubectl("config", "view", "--raw", "-o", "json").stdout)
    token = harness.kubectl("create", "token", name, "-n", "default").stdout.strip()
    decoded["users"][0]["user"] = {"token": token}
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(decoded))
    yield str(file)
    harness.kubectl("delete", "-f", "-", stdin=objects)


def test_the_servers_own_rights_are_enough(harness: ClusterHarness, rights: str) -> None:
    found = {one.what: one for one in examine(rights)}
    assert [one for one in found.values() if one.state == "missing"] == []
    assert {found[what].state for what in ("Parts of GPUs", "Storage")} == {"note"}
    assert found["Permissions"].found.startswith("all of ")
