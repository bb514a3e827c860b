"""Two servers on one database and one cluster: one runs workloads, both serve, and when one dies the other goes on."""

import json
import shlex
import signal
from collections.abc import Iterator

import pytest

from deploy.cluster import cluster as clusters
from tests.e2e.server import Server, until
from tests.e2e.serving import ask, url_of
from tests.kubernetes.cluster_harness import IMAGE, PATIENCE, ClusterHarness
from tests.kubernetes.conftest import CRDS
from tests.kubernetes.crowd import assert_nothing_left
from tests.kubernetes.field_cases import STAYS
from tests.kubernetes.test_fields_network import web
from tests.postgres import PostgresServer

pytestmark = pytest.mark.kubernetes


@pytest.fixture(scope="module")
def harness(
    cluster: clusters.Cluster, tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[ClusterHarness]:
    folder = tmp_path_factory.mktemp("server")
    secret = f"default/keys-{folder.name}"
    shared = ("--database", postgres_server.new_database(), "--keys-secret", secret, "--proxy-port", "0")
    harness = ClusterHarness(cluster, folder, arguments=shared)
    try:
        harness.open(CRDS)
        yield harness
    finally:
        harness.close()
        harness.kubectl("delete", "secret", "-n", *secret.split("/"))


@pytest.fixture
def other(harness: ClusterHarness) -> Iterator[Server]:
    """A second server with nothing but the same words; keys and credentials are the cluster's to keep."""
    server = Server(harness.folder / "other", *harness.server.arguments).start()
    try:
        yield server
    finally:
        server.stop()


def test_both_serve_and_one_acts(harness: ClusterHarness, other: Server) -> None:
    assert other.credentials == harness.server.credentials
    spec = harness.real("echo from a container") | {"environmentVariables": [{"name": "A", "value": "b"}]}
    body = {"name": "hello", "projectId": harness.project_id, "clusterId": other.credentials["clusterId"], "spec": spec}
    workload = str(other.call("POST", "/api/v1/workloads/trainings", body).json["workloadId"])
    harness.until_phase(workload, "Completed")
    assert other.until_phase(workload, "Completed")["phase"] == "Completed"
    assert other.logs(workload) == harness.server.logs(workload) == "from a container\n"


def test_applied_objects_become_one_workload_each(harness: ClusterHarness, other: Server) -> None:
    spec = {"name": "applied", "image": IMAGE, "command": f"sh -c {shlex.quote(STAYS)}"}
    body = {
        "apiVersion": "run.ai/v2alpha1",
        "kind": "TrainingWorkload",
        "metadata": {"name": "applied", "namespace": harness.namespace},
        "spec": {field: {"value": value} for field, value in spec.items()},
    }
    assert harness.kubectl("apply", "-f", "-", stdin=json.dumps(body)).returncode == 0

    def workloads() -> list[str]:
        found = other.call("GET", "/api/v1/workloads?filterBy=name==applied").json["workloads"]
        return [one["phase"] for one in found]

    until(lambda: workloads() == ["Running"], "the applied workload to run", PATIENCE)
    assert harness.kubectl("delete", "trainingworkload", "applied", "-n", harness.namespace).returncode == 0
    assert workloads() == []


def test_urls_are_reached_by_either(harness: ClusterHarness, other: Server) -> None:
    workload = harness.submit("inference", "web", web(harness) | {"servingPort": {"container": 8080}})
    harness.until_phase(workload, "Running")
    mine, its = url_of(harness.server, workload), url_of(other, workload)
    assert mine != its
    assert ask(mine)["pod"] == ask(its)["pod"]


def test_when_one_dies_the_other_continues(harness: ClusterHarness, other: Server) -> None:
    runs = harness.train("runs", gpus=0)
    ends = harness.train("ends", gpus=0, seconds=8)
    harness.until_phase(runs, "Running")
    [pod] = harness.pods(runs)
    harness.server.kill()
    mine, harness.server = harness.server, other
    try:
        # Taken while nobody runs anything yet.
        late = harness.train("late", gpus=0, seconds=1)
        harness.until_phase(late, "Completed")
        harness.until_phase(ends, "Completed")
        assert [one["id"] for one in harness.pods(runs)] == [pod["id"]]
        # Whoever comes back stands by.
        mine.token = ""
        mine.start()
        assert mine.phase(runs) == "Running"
        harness.delete_all()
        assert_nothing_left(harness)
    finally:
        harness.server = mine


def test_a_server_that_was_away_too_long_stands_by(harness: ClusterHarness, other: Server) -> None:
    """A holder that was frozen: another has taken over, so it begins again, in the same process."""
    holder, idle = (harness.server, other) if is_holder(harness.server) else (other, harness.server)
    assert holder.process is not None
    began = began_at(holder)
    holder.process.send_signal(signal.SIGSTOP)
    try:
        until(lambda: is_holder(idle), "the other to take over", PATIENCE)
    finally:
        holder.process.send_signal(signal.SIGCONT)
    until(lambda: began_at(holder) not in ("", began), "its next beginning", PATIENCE)
    assert "standing by" in holder.errors()
    assert holder.call("GET", "/api/v1/workloads").status == 200
    assert is_holder(idle)


def began_at(server: Server) -> str:
    """As the server says where it is; empty while there is none."""
    try:
        return str(json.loads((server.data_dir / "server.json").read_bytes())["startedAt"])
    except FileNotFoundError:
        return ""


def is_holder(server: Server) -> bool:
    """Whether this server's loop runs, as its metrics say."""
    return "fairlead_loop" in server.call("GET", "/metrics").body.decode()


def test_who_leaves_hands_over_at_once(harness: ClusterHarness, other: Server) -> None:
    """The server of the harness stands by since the last test, and takes over when the holder stops."""
    harness.server.stop()
    workload = ClusterHarness.train(_seen_by(harness, other), "handed", gpus=0, seconds=1)
    other.until_phase(workload, "Completed")
    assert is_holder(other)
    harness.server.token = ""
    harness.server.start()


def _seen_by(harness: ClusterHarness, server: Server) -> ClusterHarness:
    """The same harness, asked through another server."""
    seen = ClusterHarness(harness.cluster, harness.folder)
    seen.server, seen.project_id = server, harness.project_id
    return seen
