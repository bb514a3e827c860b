"""Real containers on the cluster's real node: what they print, commands in them, their ports, and how they end."""

import json
import subprocess
import sys
import urllib.request
from typing import Any

import pytest

from tests.e2e.server import until
from tests.kubernetes.room import PATIENCE, Room

pytestmark = pytest.mark.kubernetes

SERVE = (
    # The first process of a container is not ended by a signal that it does not know.
    "import http.server, signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit()); "
    "Handler = type('Handler', (http.server.BaseHTTPRequestHandler,), dict(do_GET=lambda self: ("
    "self.send_response(200), self.send_header('Content-Length', '2'), self.end_headers(), self.wfile.write(b'ok')))); "
    "print('up', flush=True); "
    "http.server.HTTPServer(('', 8000), Handler).serve_forever()"
)


def run(room: Room, name: str, script: str, kind: str = "training", **spec: Any) -> str:
    return room.submit(kind, name, room.real(script) | spec)


def python(room: Room, name: str, program: str, kind: str = "training", **spec: Any) -> str:
    return room.submit(kind, name, room.real("") | {"command": "python3 -c", "args": json.dumps(program)} | spec)


def test_output_is_read_and_followed(room: Room) -> None:
    workload = run(room, "speaks", "echo first; sleep 2; echo last")
    room.until_phase(workload, "Running")
    assert room.server.logs(workload, "?follow=true") == "first\nlast\n"
    room.until_phase(workload, "Completed")
    assert room.server.logs(workload) == "first\nlast\n"
    assert room.server.logs(workload, "?tail=1") == "last\n"


def test_who_it_is_and_where(room: Room) -> None:
    workload = run(room, "knows", "echo $RUNAI_JOB_NAME $RUNAI_PROJECT $NODE_NAME ${RUNAI_JOB_UUID}")
    room.until_phase(workload, "Completed")
    assert room.server.logs(workload).split() == ["knows", room.project, "worker-1", workload]


@pytest.mark.parametrize(
    ("script", "want"),
    [("exit 3", "exit code 3"), ("sh -c 'kill -9 $$'; exit $?", "exit code 137")],
    ids=["code", "signal"],
)
def test_how_it_ended_is_told(room: Room, script: str, want: str) -> None:
    workload = run(room, "ends", script, backoffLimit=0)
    failed = room.until_phase(workload, "Failed", "Completed")
    assert failed["phase"] == "Failed"
    assert want in failed["phaseMessage"]


def test_too_much_memory(room: Room) -> None:
    compute = {"cpuMemoryRequest": "30M", "cpuMemoryLimit": "30M"}
    workload = python(room, "greedy", "x = bytearray(200 << 20)", compute=compute, backoffLimit=0)
    assert "OOMKilled" in room.until_phase(workload, "Failed")["phaseMessage"]


def test_an_image_that_cannot_be_had(room: Room) -> None:
    workload = run(room, "unknown", "true", image="nowhere.invalid/nothing:1")
    until(lambda: "nowhere.invalid" in room.server.message(workload), "the runtime's words", PATIENCE)
    assert room.server.phase(workload) == "Initializing"


def test_a_command_beside_it(room: Room) -> None:
    workload = run(room, "beside", "sleep 600", terminationGracePeriodSeconds=1)
    room.until_phase(workload, "Running")
    script = "echo in; echo out >&2; cat; exit 7"
    words = ["exec", "beside", "-p", room.project, "--stdin", "--", "sh", "-c", script]
    command = [sys.executable, "-m", "fairlead", "--data-dir", str(room.server.data_dir), *words]
    done = subprocess.run(command, input="given", capture_output=True, text=True, timeout=PATIENCE)
    assert (done.stdout, done.stderr, done.returncode) == ("in\ngiven", "out\n", 7)


def test_a_url_leads_to_its_pods(room: Room) -> None:
    workload = python(room, "site", SERVE, "inference", servingPort={"container": 8000})
    room.until_phase(workload, "Running")
    urls = room.server.workload(workload)["urls"]
    url = urls[0]["url"] if isinstance(urls[0], dict) else urls[0]
    assert fetch(url) == b"ok"


def fetch(url: str) -> bytes:
    """By the address behind the name, which no resolver has to know."""
    host, _, port = url.removeprefix("http://").rstrip("/").partition(":")
    request = urllib.request.Request(f"http://127.0.0.1:{port}/", headers={"Host": f"{host}:{port}"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        body: bytes = answer.read()
    return body


def test_secrets_reach_the_program(room: Room) -> None:
    body = {"name": "code", "projectId": room.project_id, "data": {"key": "s3cret"}}
    assert room.server.call("POST", "/api/v1/secrets", body).status in (200, 201)
    variable = {"name": "CODE", "secret": {"name": "code", "key": "key"}}
    mounted = {"secretVolume": [{"name": "v", "secret": "code", "mountPath": "/secret"}]}
    script = "echo $CODE; cat /secret/key"
    workload = run(room, "told", script, environmentVariables=[variable], storage=mounted)
    room.until_phase(workload, "Completed", "Failed")
    assert room.server.logs(workload) == "s3cret\ns3cret"
