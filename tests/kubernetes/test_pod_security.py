"""What pods may do: what the server refuses, and that its pods are let in where the cluster enforces a level."""

from collections.abc import Iterator
from typing import Any

import pytest

from deploy.cluster import cluster as clusters
from tests.e2e.server import until
from tests.kubernetes.cluster_harness import ID, PATIENCE, ClusterHarness
from tests.kubernetes.conftest import CRDS

pytestmark = pytest.mark.kubernetes
USER = {"uidGidSource": "custom", "runAsUid": 1000}


@pytest.fixture(scope="module")
def harness(cluster: clusters.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterHarness]:
    """A server whose operator allows one folder, and nothing else."""
    harness = ClusterHarness(cluster, tmp_path_factory.mktemp("server"), allowed=("host-path=/usr/share",))
    try:
        harness.open(CRDS)
        yield harness
    finally:
        harness.close()


def refusal(harness: ClusterHarness, name: str, **spec: Any) -> str:
    """Why a training is refused at submission or fails at its start; if it does neither, how it ended."""
    answer = harness.post("training", name, harness.real("true") | spec)
    if answer.status == 400:
        return str(answer.json["details"])
    workload = str(answer.json["workloadId"])
    return str(harness.until_phase(workload, "Failed", "Completed")["phaseMessage"])


def test_what_reaches_out_of_a_pod_is_refused_unless_allowed(harness: ClusterHarness) -> None:
    paths = {"storage": {"hostPath": [{"path": "/", "mountPath": "/h", "readOnly": False}]}}
    assert "start the server with --allow host-path=/ to permit it" in refusal(harness, "root", **paths)
    members: dict[str, Any] = {"hostNetwork": True, "hostIpc": True, "capabilities": ["SYS_ADMIN"]}
    said = refusal(harness, "reaching", security=members)
    for name in members:
        assert f"security.{name}: " in said
    assert "--allow host-namespaces" in said
    assert "--allow capability=SYS_ADMIN" in said
    assert harness.objects("jobs,pods") == []
    allowed = {"storage": {"hostPath": [{"path": "/usr/share/doc", "mountPath": "/h"}]}}
    assert "1 pod succeeded" in refusal(harness, "allowed", **allowed)


def test_pods_of_every_kind_are_let_in_at_the_baseline(harness: ClusterHarness) -> None:
    harness.enforce("baseline")
    pod = harness.spec(gpus=0)
    service = {"servingPort": {"container": 8000}, "autoscaling": {"minReplicas": 1, "maxReplicas": 1}}
    kinds = {
        "training": pod,
        "workspace": pod,
        "distributed": pod | {"numWorkers": 1, "distributedFramework": "PyTorch"},
        "inference": pod | service,
        "groups": {"leader": pod, "worker": pod, "workers": 1, "replicas": 1},
    }
    started = {kind: harness.submit(kind, f"plain-{kind}", spec) for kind, spec in kinds.items()}
    for workload in started.values():
        harness.until_phase(workload, "Running")
    assert {one["metadata"]["labels"][ID] for one in harness.objects("pods")} == set(started.values())


def test_pods_are_what_the_strictest_level_wants(harness: ClusterHarness) -> None:
    harness.enforce("restricted")
    script = "id -u; awk '/^(NoNewPrivs|Seccomp|CapBnd):/ {print $2}' /proc/self/status"
    workload = harness.submit("training", "strict", harness.real(script) | {"security": USER})
    pod = harness.spec(gpus=0, security=USER)
    gang = harness.submit("distributed", "gang", pod | {"numWorkers": 1, "distributedFramework": "PyTorch"})
    assert "1 pod succeeded" in harness.until_phase(workload, "Completed", "Failed")["phaseMessage"]
    # As the kernel lists them: no capability is left, no right to be gained, calls are filtered.
    assert harness.server.logs(workload).split() == ["1000", f"{0:016x}", "1", "2"]
    harness.until_phase(gang, "Running")
    said = refusal(harness, "weaker", security={**USER, "capabilities": ["CHOWN"], "allowPrivilegeEscalation": True})
    for field in ("security.capabilities", "security.allowPrivilegeEscalation"):
        assert f"{field}: " in said
    assert "the level restricted of Pod Security" in said


def test_what_runs_stays_as_it_was_begun(harness: ClusterHarness) -> None:
    """A level that comes later does not touch what runs, also not after a new start of the server."""
    harness.enforce("")
    workload = harness.train("old", gpus=0)
    harness.until_phase(workload, "Running")
    [before] = harness.objects("jobs")
    harness.enforce("restricted")
    harness.server.stop()
    harness.server.start()
    late = harness.train("new", gpus=0, security=USER)
    harness.until_phase(late, "Running")
    assert harness.server.phase(workload) == "Running", harness.server.message(workload)
    jobs = {job["metadata"]["name"]: job["metadata"]["uid"] for job in harness.objects("jobs")}
    assert jobs["old"] == before["metadata"]["uid"]
    until(lambda: len(harness.objects("pods")) == 2, "both pods", PATIENCE)
