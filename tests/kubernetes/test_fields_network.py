"""Ports, URLs and probes of real containers on a cluster, from outside and as the program inside is asked."""

import json
import shlex
import socket
import urllib.request
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest

from fairlead.engines.kubernetes.install.preflight import make_certificate
from tests.e2e.server import until
from tests.e2e.web import PROGRAM, bearer, fetch, log_in
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness
from tests.kubernetes.field_cases import ENDS

pytestmark = pytest.mark.kubernetes


def python(harness: ClusterHarness, program: str, *arguments: str) -> dict[str, Any]:
    """What runs a program of Python in a real container."""
    return harness.real("") | {"command": "python3 -c", "args": shlex.join([ENDS + program, *arguments])}


def web(harness: ClusterHarness) -> dict[str, Any]:
    probe = {"periodSeconds": 1, "handler": {"httpGet": {"path": "/ready", "port": 8080}}}
    return python(harness, PROGRAM, "8080", "/tmp") | {"probes": {"readiness": probe}}


def connections(harness: ClusterHarness, workload: str, kind: str) -> list[dict[str, Any]]:
    found = harness.server.workload(workload).get("externalConnections") or []
    return [each for each in found if each["connectionType"] == kind]


def get(address: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://{address}/", timeout=PATIENCE) as answer:
        said: dict[str, Any] = json.loads(answer.read())
    return said


def answers(address: str) -> bool:
    host, _, port = address.partition(":")
    with socket.socket() as tried:
        tried.settimeout(PATIENCE)
        return tried.connect_ex((host, int(port))) == 0


def test_ports_are_services_of_their_type(harness: ClusterHarness) -> None:
    """`ports` with `container`, `serviceType` and `external`: each is reached as such a service is."""
    ports = [
        {"name": "inner", "container": 8080, "serviceType": "ClusterIP"},
        {"name": "fixed", "container": 8080, "serviceType": "NodePort", "external": 31_987, "toolType": "tensorboard"},
        {"name": "outer", "container": 8080, "serviceType": "LoadBalancer", "external": 8088, "toolName": "Curves"},
    ]
    workload = harness.submit("training", "ports", web(harness) | {"ports": ports})
    harness.until_phase(workload, "Running")
    services = {one["spec"]["type"]: one for one in harness.objects("services")}
    addresses = [
        f"{services['ClusterIP']['spec']['clusterIP']}:8080",
        f"{harness.cluster.layout.address}:31987",
        f"{services['LoadBalancer']['spec']['clusterIP']}:8088",
    ]
    [pod] = harness.pods(workload)
    for address in addresses:
        # The node's rules follow a moment after the pod.
        until(partial(answers, address), f"an answer at {address}", PATIENCE)
        assert get(address)["pod"] == pod["name"]
    [fixed] = connections(harness, workload, "NodePort")
    assert (fixed["containerPort"], fixed["toolType"]) == (8080, "tensorboard")
    [outer] = connections(harness, workload, "LoadBalancer")
    assert outer["name"] == "Curves"


def test_urls_lead_to_pods_and_ask_who_comes(harness: ClusterHarness) -> None:
    """`exposedUrls` with `container`, `url`, the three kinds of authorization, and what is shown with them."""
    ada, bob = log_in(harness.server, "ada@example.com", ("vision",)), log_in(harness.server, "bob@example.com")
    rest = {"toolType": "jupyter-notebook", "toolName": "Lab"}
    urls: list[dict[str, Any]] = [
        {"name": "any", "container": 8080, "authorizationType": "authenticatedUsers"},
        {"name": "own", "container": 8080, "url": "https://tools.example.com/board/", **rest},
        {"name": "few", "container": 8080, "authorizedUsers": ["ada@example.com"]},
        {"name": "crew", "container": 8080, "authorizedGroups": ["vision"]},
    ]
    related = [{"name": "runs", "url": "https://wandb.example.com/runs/7", "type": "wandb"}]
    workload = harness.submit("workspace", "board", web(harness) | {"exposedUrls": urls, "relatedUrls": related})
    harness.until_phase(workload, "Running")
    anyone, own, few, crew = [str(each["url"]) for each in connections(harness, workload, "ExternalUrl")]
    assert fetch(anyone).status == 401
    assert fetch(anyone, **bearer(bob)).status == 200
    assert urlsplit(own).hostname == "tools.example.com"
    assert fetch(own, "/x", **bearer(bob)).json["path"] == "/board/x"
    for url in (few, crew):
        assert [fetch(url, **bearer(token)).status for token in (ada, bob)] == [200, 403]
    assert connections(harness, workload, "ExternalUrl")[1]["toolType"] == "jupyter-notebook"
    [shown] = connections(harness, workload, "RelatedUrl")
    assert (shown["url"], shown["toolType"], shown["name"]) == (related[0]["url"], "wandb", "runs")


#: Says of every question how long after the process began it came, for what and for whom. The second one hangs until
#: the third comes, the fifth to seventh are answered badly.
ASKED = """
import http.server, os, ssl, threading, time
ticks = int(open("/proc/self/stat").read().rpartition(")")[2].split()[19])
began, asked, third = ticks / os.sysconf("SC_CLK_TCK"), [], threading.Event()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked.append(round(time.clock_gettime(time.CLOCK_BOOTTIME) - began, 2))
        number = len(asked)
        print(asked[-1], self.path, self.headers["Host"], flush=True)
        if number == 2:
            third.wait()
        third.set() if number == 3 else None
        try:
            self.send_response(503 if number in (5, 6, 7) else 200)
            self.end_headers()
        except OSError:
            pass
    def log_message(self, *words):
        pass
server = http.server.ThreadingHTTPServer(("", 8111), Handler)
if os.path.exists("/keys/tls.key"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("/keys/tls.crt", "/keys/tls.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
TIMES = {"initialDelaySeconds": 6, "periodSeconds": 1, "timeoutSeconds": 1, "successThreshold": 2}


def probe(**get: Any) -> dict[str, Any]:
    asked = {"port": 8111, "path": "/well", "host": "probe.example.com", "scheme": "HTTP", **get}
    return {"readiness": {**TIMES, "failureThreshold": 3, "handler": {"httpGet": asked}}}


def told(harness: ClusterHarness, workload: str, query: str = "") -> list[tuple[float, str]]:
    shown = harness.server.call("GET", f"/api/v1/workloads/{workload}/logs{query}")
    lines = shown.body.decode().splitlines() if shown.status == 200 else []
    return [(float(line.split(maxsplit=1)[0]), line.split(maxsplit=1)[1]) for line in lines]


def has_heard(harness: ClusterHarness, workload: str, query: str, number: int) -> bool:
    return len(told(harness, workload, query)) >= number


def test_readiness_is_asked_as_described(harness: ClusterHarness) -> None:
    """All members of `probes`: first question, period, timeout, both thresholds, path, port, host and scheme."""
    plain = harness.submit("training", "probed", python(harness, ASKED) | {"probes": probe()})
    made = make_certificate("probed")
    body = {"name": "tls", "projectId": harness.project_id, "data": {"tls.key": made.key, "tls.crt": made.chain}}
    assert harness.server.call("POST", "/api/v1/secrets", body).status == 201
    keys = {"storage": {"secretVolume": [{"secret": "tls", "mountPath": "/keys"}]}}
    secure = harness.submit("training", "tls-probed", python(harness, ASKED) | {"probes": probe(scheme="HTTPS")} | keys)
    for workload in (plain, secure):
        # Ready after good answers in a row, not ready after bad ones, ready again.
        until(partial(has_heard, harness, workload, "", 11), "questions enough", PATIENCE)
        harness.until_phase(workload, "Running")
        asked = told(harness, workload)
        assert {words for _, words in asked} == {"/well probe.example.com"}
        # That there is a third question says that the second, which hangs until then, was given up.
        # A cluster knows to the second when a container began.
        assert asked[0][0] >= 5, "the first question waits for the initial delay"
        phases = [
            phase for phase in harness.server.history(workload) if phase in ("Initializing", "Running", "Degraded")
        ]
        assert phases == ["Initializing", "Running", "Degraded", "Running"]


def test_readiness_is_asked_in_each_role(harness: ClusterHarness) -> None:
    pods = {role: python(harness, ASKED) | {"probes": probe()} for role in ("leader", "worker")}
    workload = harness.submit("groups", "asked", {**pods, "workers": 1})
    for pod in ("asked-0", "asked-0-1"):
        until(partial(has_heard, harness, workload, f"?pod={pod}", 4), "questions enough", PATIENCE)
        assert {words for _, words in told(harness, workload, f"?pod={pod}")} == {"/well probe.example.com"}
    harness.until_phase(workload, "Running")
