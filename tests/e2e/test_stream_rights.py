"""Answers that go on end when their caller's rights do: watches, followed logs, and sessions into pods."""

import contextlib
import http.client
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from fairlead.cli import exit_codes
from tests.e2e.cli_calls import Caller
from tests.e2e.server import Server
from tests.e2e.web import log_in

#: A listener on a port of its own, which also prints, and goes on.
PROGRAM = """
import socket, sys, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True: time.sleep(1)
"""
STREAMS = {
    "watch": ("GET", "/api/v1/workloads/watch"),
    "logs": ("GET", "/api/v1/workloads/{id}/logs?follow=true"),
    "exec": ("POST", "/api/v1/workloads/{id}/exec?command=sleep&command=600"),
    "attach": ("POST", "/api/v1/workloads/{id}/attach"),
    "port-forward": ("POST", "/api/v1/workloads/{id}/port-forward?port={port}"),
}
#: Rights are checked every second; the rest is for a busy machine.
PATIENCE = 120.0


def open_stream(
    server: Server, connections: contextlib.ExitStack, token: str, method: str, path: str
) -> http.client.HTTPResponse:
    where = urlsplit(server.url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=PATIENCE)
    connections.callback(connection.close)
    connection.request(method, path, None if method == "GET" else b"", {"Authorization": f"Bearer {token}"})
    response = connection.getresponse()
    assert response.status == 200, response.read()
    return response


def grant(server: Server, name: str) -> dict[str, Any]:
    [project] = server.call("GET", "/api/v1/org-unit/projects").json["projects"]
    rule = {
        "subjectId": name,
        "subjectType": "user",
        "roleId": 2,
        "scopeId": project["id"],
        "scopeType": "project",
        "clusterId": project["clusterId"],
    }
    made = server.call("POST", "/api/v1/authorization/access-rules", rule)
    assert made.status in (200, 201), made
    answer: dict[str, Any] = made.json
    return answer


def delete_user(server: Server, name: str, rule: dict[str, Any]) -> None:
    [user] = [one for one in server.call("GET", "/api/v1/users").json if one["username"] == name]
    assert server.call("DELETE", f"/api/v1/users/{user['id']}").status in (200, 204)


def remove_rule(server: Server, name: str, rule: dict[str, Any]) -> None:
    assert server.call("DELETE", f"/api/v1/authorization/access-rules/{rule['id']}").status in (200, 204)


@pytest.mark.parametrize("end_rights", [delete_user, remove_rule])
def test_streams_end_with_the_rights_of_their_caller(
    make_server: Callable[..., Server], end_rights: Callable[[Server, str, dict[str, Any]], None]
) -> None:
    server = make_server("--personal")
    name = "ann@lab.example"
    token = log_in(server, name)
    rule = grant(server, name)
    workload_id = server.run("streams", "python3", f"-c '{PROGRAM}'", stdin=True)
    server.until_phase(workload_id, "Running")
    deadline = time.monotonic() + PATIENCE
    while not (port := server.logs(workload_id).strip()):
        assert time.monotonic() < deadline
    # Whoever may see no project still has a watch, of nothing.
    kinds = [kind for kind in STREAMS if kind != "watch" or end_rights is delete_user]
    with contextlib.ExitStack() as connections:
        streams = {}
        for kind in kinds:
            method, path = STREAMS[kind]
            path = path.format(id=workload_id, port=port)
            streams[kind] = open_stream(server, connections, token, method, path)
        end_rights(server, name, rule)
        for kind, stream in streams.items():
            while stream.read1(65_536):
                pass
            assert stream.isclosed(), kind
    assert server.phase(workload_id) == "Running"


def test_output_that_ends_with_the_rights_of_its_reader_says_so(
    make_server: Callable[..., Server], tmp_path: Path
) -> None:
    server = make_server("--personal")
    token = log_in(server, "ann@lab.example")
    rule = grant(server, "ann@lab.example")
    workload_id = server.run("goes-on", "sh", "-c 'echo begun; exec sleep 600'")
    server.until_phase(workload_id, "Running")
    reader = Caller(tmp_path / "none")
    with reader.start("logs", "-f", "goes-on", FAIRLEAD_URL=server.url, FAIRLEAD_TOKEN=token) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "begun\n"
        remove_rule(server, "ann@lab.example", rule)
        _, err = following.communicate(timeout=PATIENCE)
    assert err == "You may no longer read the output of goes-on, or it was deleted.\n"
    assert following.returncode == exit_codes.NOT_ALLOWED
