"""A server that starts again: it sends nothing for workloads that stand as they are wished, and mends what went."""

import pytest

from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness
from tests.kubernetes.meddler import Meddler

pytestmark = pytest.mark.kubernetes
PORT = {"container": 8080, "serviceType": "ClusterIP"}


@pytest.fixture(scope="module")
def harness(meddled_harness: ClusterHarness) -> ClusterHarness:
    return meddled_harness


def start_again(harness: ClusterHarness) -> None:
    harness.server.kill()
    harness.server.token = ""
    harness.server.start()


def start_some(harness: ClusterHarness) -> list[str]:
    """Trainings with a port and a config map of the server's."""
    body = {"name": "words", "projectId": harness.project_id, "data": {"word": "one"}}
    assert harness.server.call("POST", "/api/v1/config-maps", body).status in (201, 409)
    variable = {"name": "WORD", "configMap": {"name": "words", "key": "word"}}
    spec = harness.spec(gpus=0, ports=[PORT], environmentVariables=[variable])
    found = [harness.submit("training", f"stands-{number}", spec) for number in range(3)]
    for workload in found:
        harness.until_phase(workload, "Running")
    return found


def test_nothing_is_sent_where_nothing_differs(harness: ClusterHarness, meddler: Meddler) -> None:
    start_some(harness)
    kinds = ("jobs", "services", "configmaps")
    assert all(any(f"/{kind}/stands-" in path for path in meddler.changes) for kind in kinds), meddler.changes
    meddler.changes.clear()
    start_again(harness)
    # The wishes of before are given before those of what is submitted now.
    harness.until_phase(harness.train("newcomer", gpus=0), "Running")
    written = [path for path in meddler.changes if any(f"/{kind}" in path for kind in kinds)]
    assert written == [f"/apis/batch/v1/namespaces/{harness.namespace}/jobs/newcomer"]


def test_what_went_while_no_server_ran_is_made_again(harness: ClusterHarness) -> None:
    workloads = start_some(harness)
    harness.server.kill()
    harness.kubectl("delete", "service", "stands-0-clusterip", "-n", harness.namespace)
    harness.kubectl("delete", "configmap", "stands-1-config-words", "-n", harness.namespace)
    harness.kubectl("delete", "job", "stands-2", "-n", harness.namespace)
    harness.server.token = ""
    harness.server.start()
    wanted = {"Service/stands-0-clusterip", "ConfigMap/stands-1-config-words", "Job/stands-2"}
    until(lambda: wanted <= set(harness.names("services,configmaps,jobs")), "what was removed", PATIENCE)
    for workload in workloads:
        assert harness.until_phase(workload, "Running")["runningPods"] == 1
