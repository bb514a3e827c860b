"""Two servers on one database and one cluster: one runs workloads, both serve, and when one dies the other goes on."""

import json
import shlex
import signal
from collections.abc import Iterator

import pytest

from deploy.cluster import cluster as clusters
from tests.e2e.server import Server, until
from tests.e2e.serving import ask, url_of
from tests.kubernetes.conftest import CRDS
from tests.kubernetes.crowd import leftovers, until_none
from tests.kubernetes.field_cases import STAYS
from tests.kubernetes.room import IMAGE, PATIENCE, Room
from tests.kubernetes.test_fields_network import web
from tests.postgres import PostgresServer

pytestmark = pytest.mark.kubernetes


@pytest.fixture(scope="module")
def room(
    cluster: clusters.Cluster, tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[Room]:
    folder = tmp_path_factory.mktemp("server")
    secret = f"default/keys-{folder.name}"
    shared = ("--database", postgres_server.new_database(), "--keys-secret", secret, "--proxy-port", "0")
    room = Room(cluster, folder, arguments=shared)
    try:
        room.open(CRDS)
        yield room
    finally:
        room.close()
        room.kubectl("delete", "secret", "-n", *secret.split("/"))


@pytest.fixture
def other(room: Room) -> Iterator[Server]:
    """A second server with nothing but the same words; keys and credentials are the cluster's to keep."""
    server = Server(room.folder / "other", *room.server.arguments).start()
    try:
        yield server
    finally:
        server.stop()


def test_both_serve_and_one_acts(room: Room, other: Server) -> None:
    assert other.credentials == room.server.credentials
    spec = room.real("echo from a container") | {"environmentVariables": [{"name": "A", "value": "b"}]}
    body = {"name": "hello", "projectId": room.project_id, "clusterId": other.credentials["clusterId"], "spec": spec}
    workload = str(other.call("POST", "/api/v1/workloads/trainings", body).json["workloadId"])
    room.until_phase(workload, "Completed")
    assert other.until_phase(workload, "Completed")["phase"] == "Completed"
    assert other.logs(workload) == room.server.logs(workload) == "from a container\n"


def test_applied_objects_become_one_workload_each(room: Room, other: Server) -> None:
    spec = {"name": "applied", "image": IMAGE, "command": f"sh -c {shlex.quote(STAYS)}"}
    body = {
        "apiVersion": "run.ai/v2alpha1",
        "kind": "TrainingWorkload",
        "metadata": {"name": "applied", "namespace": room.namespace},
        "spec": {field: {"value": value} for field, value in spec.items()},
    }
    assert room.kubectl("apply", "-f", "-", stdin=json.dumps(body)).returncode == 0

    def workloads() -> list[str]:
        found = other.call("GET", "/api/v1/workloads?filterBy=name==applied").json["workloads"]
        return [one["phase"] for one in found]

    until(lambda: workloads() == ["Running"], "the applied workload to run", PATIENCE)
    assert room.kubectl("delete", "trainingworkload", "applied", "-n", room.namespace).returncode == 0
    assert workloads() == []


def test_urls_are_reached_by_either(room: Room, other: Server) -> None:
    workload = room.submit("inference", "web", web(room) | {"servingPort": {"container": 8080}})
    room.until_phase(workload, "Running")
    mine, its = url_of(room.server, workload), url_of(other, workload)
    assert mine != its
    assert ask(mine)["pod"] == ask(its)["pod"]


def test_when_one_dies_the_other_goes_on(room: Room, other: Server) -> None:
    runs = room.train("runs", gpus=0)
    ends = room.train("ends", gpus=0, seconds=8)
    room.until_phase(runs, "Running")
    [pod] = room.pods(runs)
    room.server.kill()
    mine, room.server = room.server, other
    try:
        # Taken while nobody runs anything yet.
        late = room.train("late", gpus=0, seconds=1)
        room.until_phase(late, "Completed")
        room.until_phase(ends, "Completed")
        assert [one["id"] for one in room.pods(runs)] == [pod["id"]]
        # Whoever comes back stands by.
        mine.token = ""
        mine.start()
        assert mine.phase(runs) == "Running"
        room.delete_all()
        until_none(lambda: leftovers(room), "an empty namespace")
    finally:
        room.server = mine


def test_who_was_away_too_long_stands_by(room: Room, other: Server) -> None:
    """A holder that was frozen: another has taken over, so it begins again, in the same process."""
    holder, idle = (room.server, other) if is_holder(room.server) else (other, room.server)
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


def test_who_leaves_hands_over_at_once(room: Room, other: Server) -> None:
    """The server of the room stands by since the last test, and takes over when the holder stops."""
    room.server.stop()
    workload = Room.train(_seen_by(room, other), "handed", gpus=0, seconds=1)
    other.until_phase(workload, "Completed")
    room.server.token = ""
    room.server.start()


def _seen_by(room: Room, server: Server) -> Room:
    """The same room, asked through another server."""
    seen = Room(room.cluster, room.folder)
    seen.server, seen.project_id = server, room.project_id
    return seen
