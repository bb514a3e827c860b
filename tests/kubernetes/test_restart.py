"""A server that starts again: it sends nothing for workloads that stand as they are wished, and mends what went."""

import pytest

from tests.e2e.server import until
from tests.kubernetes.meddler import Meddler
from tests.kubernetes.room import PATIENCE, Room

pytestmark = pytest.mark.kubernetes
PORT = {"container": 8080, "serviceType": "ClusterIP"}


@pytest.fixture(scope="module")
def room(meddled_room: Room) -> Room:
    return meddled_room


def start_again(room: Room) -> None:
    room.server.kill()
    room.server.token = ""
    room.server.start()


def start_some(room: Room) -> list[str]:
    """Trainings with a port and a config map of the server's."""
    body = {"name": "words", "projectId": room.project_id, "data": {"word": "one"}}
    assert room.server.call("POST", "/api/v1/config-maps", body).status in (201, 409)
    variable = {"name": "WORD", "configMap": {"name": "words", "key": "word"}}
    spec = room.spec(gpus=0, ports=[PORT], environmentVariables=[variable])
    found = [room.submit("training", f"stands-{number}", spec) for number in range(3)]
    for workload in found:
        room.until_phase(workload, "Running")
    return found


def test_nothing_is_sent_where_nothing_differs(room: Room, meddler: Meddler) -> None:
    start_some(room)
    kinds = ("jobs", "services", "configmaps")
    assert all(any(f"/{kind}/stands-" in path for path in meddler.changes) for kind in kinds), meddler.changes
    meddler.changes.clear()
    start_again(room)
    # The wishes of before are given before those of what is submitted now.
    room.until_phase(room.train("newcomer", gpus=0), "Running")
    written = [path for path in meddler.changes if any(f"/{kind}" in path for kind in kinds)]
    assert written == [f"/apis/batch/v1/namespaces/{room.namespace}/jobs/newcomer"]


def test_what_went_while_no_server_ran_is_made_again(room: Room) -> None:
    start_some(room)
    room.server.kill()
    room.kubectl("delete", "service", "stands-0-clusterip", "-n", room.namespace)
    room.kubectl("delete", "configmap", "stands-1-config-words", "-n", room.namespace)
    room.kubectl("delete", "job", "stands-2", "-n", room.namespace)
    room.server.token = ""
    room.server.start()
    wanted = {"Service/stands-0-clusterip", "ConfigMap/stands-1-config-words", "Job/stands-2"}
    until(lambda: wanted <= set(room.names("services,configmaps,jobs")), "what was removed", PATIENCE)
