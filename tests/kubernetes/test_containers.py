"""Real containers on the cluster's real node: what they print, commands in them, their ports, and how they end."""

import json
import subprocess
import sys
import urllib.request
from typing import Any

import pytest

from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness

pytestmark = pytest.mark.kubernetes

SERVE = (
    # The first process of a container is not ended by a signal that it does not know.
    "import http.server, signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit()); "
    "Handler = type('Handler', (http.server.BaseHTTPRequestHandler,), dict(do_GET=lambda self: ("
    "self.send_response(200), self.send_header('Content-Length', '2'), self.end_headers(), self.wfile.write(b'ok')))); "
    "print('up', flush=True); "
    "http.server.HTTPServer(('', 8000), Handler).serve_forever()"
)


def run(harness: ClusterHarness, name: str, script: str, kind: str = "training", **spec: Any) -> str:
    return harness.submit(kind, name, harness.real(script) | spec)


def python(harness: ClusterHarness, name: str, program: str, kind: str = "training", **spec: Any) -> str:
    return harness.submit(kind, name, harness.real("") | {"command": "python3 -c", "args": json.dumps(program)} | spec)


def test_output_is_read_and_followed(harness: ClusterHarness) -> None:
    workload = run(harness, "speaks", "echo first; sleep 2; echo last")
    harness.until_phase(workload, "Running")
    assert harness.server.logs(workload, "?follow=true") == "first\nlast\n"
    harness.until_phase(workload, "Completed")
    assert harness.server.logs(workload) == "first\nlast\n"
    assert harness.server.logs(workload, "?tail=1") == "last\n"


def test_who_it_is_and_where(harness: ClusterHarness) -> None:
    workload = run(harness, "knows", "echo $RUNAI_JOB_NAME $RUNAI_PROJECT $NODE_NAME ${RUNAI_JOB_UUID}")
    harness.until_phase(workload, "Completed")
    assert harness.server.logs(workload).split() == ["knows", harness.project, "worker-1", workload]


@pytest.mark.parametrize(
    ("script", "want"),
    [("exit 3", "Exit code 3"), ("sh -c 'kill -9 $$'; exit $?", "Exit code 137")],
    ids=["code", "signal"],
)
def test_how_it_ended_is_reported(harness: ClusterHarness, script: str, want: str) -> None:
    workload = run(harness, "ends", script, backoffLimit=0)
    failed = harness.until_phase(workload, "Failed", "Completed")
    assert failed["phase"] == "Failed"
    assert want in failed["phaseMessage"]


def test_too_much_memory(harness: ClusterHarness) -> None:
    compute = {"cpuMemoryRequest": "30M", "cpuMemoryLimit": "30M"}
    workload = python(harness, "greedy", "x = bytearray(200 << 20)", compute=compute, backoffLimit=0)
    assert "OOMKilled" in harness.until_phase(workload, "Failed")["phaseMessage"]


def test_an_image_that_cannot_be_had(harness: ClusterHarness) -> None:
    workload = run(harness, "unknown", "true", image="nowhere.invalid/nothing:1")
    until(lambda: "nowhere.invalid" in harness.server.message(workload), "the runtime's words", PATIENCE)
    assert harness.server.phase(workload) == "Initializing"


def test_a_command_beside_it(harness: ClusterHarness) -> None:
    workload = run(harness, "beside", "sleep 600", terminationGracePeriodSeconds=1)
    harness.until_phase(workload, "Running")
    script = "echo in; echo out >&2; cat; exit 7"
    words = ["exec", "beside", "-p", harness.project, "--stdin", "--", "sh", "-c", script]
    command = [sys.executable, "-m", "fairlead", "--data-dir", str(harness.server.data_dir), *words]
    done = subprocess.run(command, input="given", capture_output=True, text=True, timeout=PATIENCE)
    assert (done.stdout, done.stderr, done.returncode) == ("in\ngiven", "out\n", 7)


def test_a_url_leads_to_its_pods(harness: ClusterHarness) -> None:
    workload = python(harness, "site", SERVE, "inference", servingPort={"container": 8000})
    harness.until_phase(workload, "Running")
    urls = harness.server.workload(workload)["urls"]
    url = urls[0]["url"] if isinstance(urls[0], dict) else urls[0]
    assert fetch(url) == b"ok"


def fetch(url: str) -> bytes:
    """By the address behind the name, which no resolver has to know."""
    host, _, port = url.removeprefix("http://").rstrip("/").partition(":")
    request = urllib.request.Request(f"http://127.0.0.1:{port}/", headers={"Host": f"{host}:{port}"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        body: bytes = answer.read()
    return body


def test_secrets_reach_the_program(harness: ClusterHarness) -> None:
    body = {"name": "code", "projectId": harness.project_id, "data": {"key": "s3cret"}}
    assert harness.server.call("POST", "/api/v1/secrets", body).status in (200, 201)
    variable = {"name": "CODE", "secret": {"name": "code", "key": "key"}}
    mounted = {"secretVolume": [{"name": "v", "secret": "code", "mountPath": "/secret"}]}
    script = "echo $CODE; cat /secret/key"
    workload = run(harness, "told", script, environmentVariables=[variable], storage=mounted)
    harness.until_phase(workload, "Completed", "Failed")
    assert harness.server.logs(workload) == "s3cret\ns3cret"
