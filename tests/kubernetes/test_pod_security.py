"""What pods may do: what the server refuses, and that its pods are let in where the cluster enforces a level."""

from collections.abc import Iterator
from typing import Any

import pytest

from deploy.cluster import cluster as clusters
from tests.e2e.server import until
from tests.kubernetes.conftest import CRDS
from tests.kubernetes.room import PATIENCE, Room

pytestmark = pytest.mark.kubernetes
USER = {"uidGidSource": "custom", "runAsUid": 1000}


@pytest.fixture(scope="module")
def room(cluster: clusters.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """A server whose operator allows one folder, and nothing else."""
    room = Room(cluster, tmp_path_factory.mktemp("server"), allowed=("host-path=/usr/share",))
    try:
        room.open(CRDS)
        yield room
    finally:
        room.close()


def refusal(room: Room, name: str, **spec: Any) -> str:
    workload = room.submit("training", name, room.real("true") | spec)
    return str(room.until_phase(workload, "Failed", "Completed")["phaseMessage"])


def test_what_reaches_out_of_a_pod_is_refused_unless_allowed(room: Room) -> None:
    paths = {"storage": {"hostPath": [{"path": "/", "mountPath": "/h", "readOnly": False}]}}
    assert "start the server with --allow host-path=/ to permit it" in refusal(room, "root", **paths)
    members: dict[str, Any] = {"hostNetwork": True, "hostIpc": True, "capabilities": ["SYS_ADMIN"]}
    said = refusal(room, "reaching", security=members)
    for name in members:
        assert f"security.{name}: " in said
    assert "--allow host-namespaces" in said
    assert "--allow capability=SYS_ADMIN" in said
    assert room.objects("jobs,pods") == []
    allowed = {"storage": {"hostPath": [{"path": "/usr/share/doc", "mountPath": "/h"}]}}
    assert "1 pod succeeded" in refusal(room, "allowed", **allowed)


def test_pods_of_every_kind_are_let_in_at_the_baseline(room: Room) -> None:
    room.enforce("baseline")
    pod = room.spec(gpus=0)
    service = {"servingPort": {"container": 8000}, "autoscaling": {"minReplicas": 1, "maxReplicas": 1}}
    kinds = {
        "training": pod,
        "workspace": pod,
        "distributed": pod | {"numWorkers": 1, "distributedFramework": "PyTorch"},
        "inference": pod | service,
        "groups": {"leader": pod, "worker": pod, "workers": 1, "replicas": 1},
    }
    started = {kind: room.submit(kind, f"plain-{kind}", spec) for kind, spec in kinds.items()}
    for workload in started.values():
        room.until_phase(workload, "Running")


def test_pods_are_what_the_strictest_level_wants(room: Room) -> None:
    room.enforce("restricted")
    script = "id -u; awk '/^(NoNewPrivs|Seccomp|CapBnd):/ {print $2}' /proc/self/status"
    workload = room.submit("training", "strict", room.real(script) | {"security": USER})
    pod = room.spec(gpus=0, security=USER)
    gang = room.submit("distributed", "gang", pod | {"numWorkers": 1, "distributedFramework": "PyTorch"})
    assert "1 pod succeeded" in room.until_phase(workload, "Completed", "Failed")["phaseMessage"]
    # As the kernel lists them: no capability is left, no right to be gained, calls are filtered.
    assert room.server.logs(workload).split() == ["1000", f"{0:016x}", "1", "2"]
    room.until_phase(gang, "Running")
    said = refusal(room, "weaker", security={**USER, "capabilities": ["CHOWN"], "allowPrivilegeEscalation": True})
    for field in ("security.capabilities", "security.allowPrivilegeEscalation"):
        assert f"{field}: " in said
    assert "the level restricted of Pod Security" in said


def test_what_runs_stays_as_it_was_begun(room: Room) -> None:
    """A level that comes later does not touch what runs, also not after a new start of the server."""
    room.enforce("")
    workload = room.train("old", gpus=0)
    room.until_phase(workload, "Running")
    [before] = room.objects("jobs")
    room.enforce("restricted")
    room.server.stop()
    room.server.start()
    late = room.train("new", gpus=0, security=USER)
    room.until_phase(late, "Running")
    assert room.server.phase(workload) == "Running", room.server.message(workload)
    jobs = {job["metadata"]["name"]: job["metadata"]["uid"] for job in room.objects("jobs")}
    assert jobs["old"] == before["metadata"]["uid"]
    until(lambda: len(room.objects("pods")) == 2, "both pods", PATIENCE)
