"""What fields do on a cluster, seen from inside real containers of every role; `field_cases.py` has the cases."""

import json
from typing import Any

import pytest

from tests.e2e.server import until
from tests.kubernetes.field_cases import BUNDLES, STAYS, bundle, read, spec_of, wanted
from tests.kubernetes.room import PATIENCE, Room

pytestmark = pytest.mark.kubernetes


@pytest.fixture(scope="module")
def supplies(room: Room) -> None:
    """What the cases name: objects that the server keeps, and two claims with a word in each."""
    for path, body in (
        ("secrets", {"name": "token", "projectId": room.project_id, "data": {"value": "of-secret"}}),
        ("config-maps", {"name": "settings", "projectId": room.project_id, "data": {"mode": "of-map"}}),
        ("user-credentials", {"name": "mine", "data": {"password": "of-credential"}}),
        ("persistent-volume-claims", {"name": "shelf", "projectId": room.project_id, "size": "10Mi"}),
    ):
        answer = room.server.call("POST", f"/api/v1/{path}", body)
        assert answer.status == 201, answer
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "foreign", "namespace": room.namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Mi"}}},
    }
    made = room.kubectl("apply", "-f", "-", stdin=json.dumps(claim))
    assert made.returncode == 0, made.stderr
    claims = [{"path": f"/{name}", "existingPvc": True, "claimName": name} for name in ("shelf", "foreign")]
    spec = room.real("echo written > /shelf/word; echo written > /foreign/word") | {"storage": {"pvc": claims}}
    room.until_phase(room.submit("training", "writes", spec), "Completed")


def pod(room: Room, name: str, then: str = "", *, is_group: bool = False) -> dict[str, Any]:
    return room.real("") | spec_of(bundle(name, is_group=is_group), then)


def said(room: Room, workload: str, query: str = "") -> dict[str, str]:
    """What the cases said, once the last has spoken."""
    text = until(
        lambda: (
            (shown := room.server.call("GET", f"/api/v1/workloads/{workload}/logs{query}").body.decode())
            and shown.rstrip().endswith("::")
            and shown
        ),
        f"the words of {workload} {query} ({room.server.message(workload)})",
        PATIENCE,
    )
    return read(text)


#: A service has no field against privileges; the rest of its pod is made as that of a training.
KINDS = {"training": tuple(BUNDLES), "workspace": tuple(BUNDLES), "inference": ("plain",)}


@pytest.mark.parametrize("kind", KINDS)
def test_seen_from_inside(room: Room, supplies: None, kind: str) -> None:
    """Every case in the one pod of a kind; all bundles at once."""
    started = {name: room.submit(kind, f"{kind}-{name}", pod(room, name, STAYS)) for name in KINDS[kind]}
    for name, workload in started.items():
        assert said(room, workload) == wanted(bundle(name)), name


def test_seen_from_inside_leader_and_worker(room: Room, supplies: None) -> None:
    started = {}
    for name in BUNDLES:
        given = pod(room, name, STAYS, is_group=True)
        started[name] = room.submit("groups", f"g-{name}", {"leader": given, "worker": given, "workers": 1})
    for name, workload in started.items():
        for role in (f"g-{name}-0", f"g-{name}-0-1"):
            assert said(room, workload, f"?pod={role}") == wanted(bundle(name, is_group=True)), role


def test_seen_from_inside_master(room: Room, supplies: None) -> None:
    worker = room.real(STAYS) | {"numWorkers": 1, "distributedFramework": "PyTorch"}
    started = {
        name: room.submit("distributed", f"d-{name}", worker, masterSpec=pod(room, name, STAYS)) for name in BUNDLES
    }
    for name, workload in started.items():
        assert said(room, workload, f"?pod=d-{name}-master-0") == wanted(bundle(name)), name
