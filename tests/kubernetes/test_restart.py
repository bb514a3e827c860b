"""A server that starts again: it sends nothing for workloads that stand as they are wished, and mends what went."""

import re

import pytest

from tests.e2e.server import until
from tests.kubernetes.room import PATIENCE, Room

pytestmark = pytest.mark.kubernetes
#: What the API server counts of requests that change objects, by the kind of object.
_KINDS, _VERBS = "jobs|services|configmaps", "APPLY|PATCH|POST|PUT"
_COUNTED = re.compile(
    rf'^apiserver_request_total\{{[^}}]*resource="({_KINDS})"[^}}]*verb="(?:{_VERBS})"[^}}]*\}} (\d+)', re.M
)
PORT = {"container": 8080, "serviceType": "ClusterIP"}


def writes(room: Room) -> dict[str, int]:
    """How often somebody wrote Jobs, Services and config maps of any kind."""
    text = room.kubectl("get", "--raw", "/metrics").stdout
    found: dict[str, int] = {}
    for resource, number in _COUNTED.findall(text):
        found[resource] = found.get(resource, 0) + int(number)
    return found


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


def test_nothing_is_sent_where_nothing_differs(room: Room) -> None:
    empty = writes(room)
    workloads = start_some(room)
    before = writes(room)
    assert all(before[name] - empty.get(name, 0) >= len(workloads) for name in before), (
        "everything that is written counts"
    )
    start_again(room)
    # The wishes of before are given before those of what is submitted now.
    room.until_phase(room.train("newcomer", gpus=0), "Running")
    after = writes(room)
    assert {name: after.get(name, 0) - before.get(name, 0) for name in ("services", "configmaps")} == {
        "services": 0,
        "configmaps": 0,
    }
    # The newcomer's own, and the controller's notes on its status.
    assert 1 <= after["jobs"] - before["jobs"] <= 4


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
