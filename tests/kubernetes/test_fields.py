"""What fields do on a cluster, seen from inside real containers of every role; `field_cases.py` has the cases."""

import json
from typing import Any

import pytest

from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness
from tests.kubernetes.field_cases import BUNDLES, STAYS, bundle, read, spec_of, wanted

pytestmark = pytest.mark.kubernetes


@pytest.fixture(scope="module")
def supplies(harness: ClusterHarness) -> None:
    """What the cases name: objects that the server keeps, and two claims with a word in each."""
    for path, body in (
        ("secrets", {"name": "token", "projectId": harness.project_id, "data": {"value": "of-secret"}}),
        ("config-maps", {"name": "settings", "projectId": harness.project_id, "data": {"mode": "of-map"}}),
        ("user-credentials", {"name": "mine", "data": {"password": "of-credential"}}),
        ("persistent-volume-claims", {"name": "shelf", "projectId": harness.project_id, "size": "10Mi"}),
    ):
        answer = harness.server.call("POST", f"/api/v1/{path}", body)
        assert answer.status == 201, answer
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "foreign", "namespace": harness.namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Mi"}}},
    }
    made = harness.kubectl("apply", "-f", "-", stdin=json.dumps(claim))
    assert made.returncode == 0, made.stderr
    claims = [{"path": f"/{name}", "existingPvc": True, "claimName": name} for name in ("shelf", "foreign")]
    spec = harness.real("echo written > /shelf/word; echo written > /foreign/word") | {"storage": {"pvc": claims}}
    harness.until_phase(harness.submit("training", "writes", spec), "Completed")


def pod(harness: ClusterHarness, name: str, then: str = "", *, is_group: bool = False) -> dict[str, Any]:
    return harness.real("") | spec_of(bundle(name, is_group=is_group), then)


def said(harness: ClusterHarness, workload: str, query: str = "") -> dict[str, str]:
    """What the cases said, once the last has spoken."""
    text = until(
        lambda: (
            (shown := harness.server.call("GET", f"/api/v1/workloads/{workload}/logs{query}").body.decode())
            and shown.rstrip().endswith("::")
            and shown
        ),
        f"the words of {workload} {query} ({harness.server.message(workload)})",
        PATIENCE,
    )
    return read(text)


#: A service has no field against privileges; the rest of its pod is made as that of a training.
KINDS = {"training": tuple(BUNDLES), "workspace": tuple(BUNDLES), "inference": ("plain",)}


@pytest.mark.parametrize("kind", KINDS)
def test_seen_from_inside(harness: ClusterHarness, supplies: None, kind: str) -> None:
    """Every case in the one pod of a kind; all bundles at once."""
    started = {name: harness.submit(kind, f"{kind}-{name}", pod(harness, name, STAYS)) for name in KINDS[kind]}
    for name, workload in started.items():
        assert said(harness, workload) == wanted(bundle(name)), name


def test_seen_from_inside_leader_and_worker(harness: ClusterHarness, supplies: None) -> None:
    started = {}
    for name in BUNDLES:
        given = pod(harness, name, STAYS, is_group=True)
        started[name] = harness.submit("groups", f"g-{name}", {"leader": given, "worker": given, "workers": 1})
    for name, workload in started.items():
        for role in (f"g-{name}-0", f"g-{name}-0-1"):
            assert said(harness, workload, f"?pod={role}") == wanted(bundle(name, is_group=True)), role


def test_seen_from_inside_master(harness: ClusterHarness, supplies: None) -> None:
    worker = harness.real(STAYS) | {"numWorkers": 1, "distributedFramework": "PyTorch"}
    started = {
        name: harness.submit("distributed", f"d-{name}", worker, masterSpec=pod(harness, name, STAYS))
        for name in BUNDLES
    }
    for name, workload in started.items():
        assert said(harness, workload, f"?pod=d-{name}-master-0") == wanted(bundle(name)), name
