"""Ingress objects for workloads' URLs on a cluster: where they lead, who is asked about them, and that they go."""

import socket
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest

from deploy.cluster import cluster as clusters
from tests.e2e.server import Answer, until
from tests.e2e.web import bearer, exposed, fetch, log_in
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness
from tests.kubernetes.conftest import CRDS
from tests.kubernetes.test_fields_network import answers, get, web

pytestmark = pytest.mark.kubernetes

NGINX = "nginx.ingress.kubernetes.io"
SERVER, DOMAIN = "fairlead.example.com", "apps.example.com"
KINDS = "ingresses,services"


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


@pytest.fixture(scope="module")
def harness(cluster: clusters.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterHarness]:
    words = ("--ingress-class", "nginx", "--ingress-server", SERVER, "--domain", DOMAIN)
    ports = ("--port", free_port(), "--proxy-port", free_port())
    harness = ClusterHarness(cluster, tmp_path_factory.mktemp("server"), arguments=(*words, *ports))
    try:
        harness.open(CRDS)
        yield harness
    finally:
        harness.close()


def found(harness: ClusterHarness) -> dict[str, dict[str, Any]]:
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in harness.objects(KINDS)}


def way(ingress: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Host, path and backend of the only rule."""
    [rule] = ingress["spec"]["rules"]
    [path] = rule["http"]["paths"]
    return rule["host"], path["path"], path["backend"]["service"]


def ask(harness: ClusterHarness, ingress: dict[str, Any], path: str = "/", **headers: str) -> Answer:
    """What a controller is answered that reads the object, for a request to its host."""
    asked = urlsplit(ingress["metadata"]["annotations"][f"{NGINX}/auth-url"])
    assert asked.hostname == SERVER
    assert asked.port == urlsplit(harness.server.url).port
    described = {"X_Original_URL": f"http://{way(ingress)[0]}{path}", "X_Original_Method": "GET"}
    return fetch(harness.server.url, f"{asked.path}?{asked.query}", **described, **headers)


def test_a_url_is_an_ingress_that_asks_us(harness: ClusterHarness) -> None:
    ada, bob = log_in(harness.server, "ada@example.com"), log_in(harness.server, "bob@example.com")
    users = ["ada@example.com", "fairlead"]
    url = {"container": 8080, "authorizationType": "authorizedUsers", "authorizedUsers": users}
    workload = harness.submit("training", "web", web(harness) | {"exposedUrls": [url]})
    harness.until_phase(workload, "Running")
    host = f"web-{harness.project}.{DOMAIN}"
    assert exposed(harness.server, workload) == f"http://{host}/"
    want = ["Ingress/web-sign-in", "Ingress/web-url", "Service/web-clusterip", "Service/web-proxy"]
    until(lambda: sorted(found(harness)) == want, "the objects", PATIENCE)
    there = found(harness)
    ingress, service = there["Ingress/web-url"], there["Service/web-clusterip"]
    assert way(ingress) == (host, "/", {"name": "web-clusterip", "port": {"number": 8080}})
    address = f"{service['spec']['clusterIP']}:8080"
    # The node's rules follow a moment after the pod.
    until(partial(answers, address), "an answer of the Service", PATIENCE)
    assert get(address)["path"] == "/"
    proxy = int(harness.server.arguments[-1])
    backend = {"name": "web-proxy", "port": {"number": proxy}}
    assert way(there["Ingress/web-sign-in"]) == (host, "/.fairlead/sign-in", backend)
    assert there["Service/web-proxy"]["spec"]["externalName"] == SERVER
    for one in there.values():
        assert [owner["kind"] for owner in one["metadata"]["ownerReferences"]] == ["Job"]
    # A controller gets its answers for it, and a link signs in by way of the other Ingress.
    assert [ask(harness, ingress, **bearer(token)).status for token in (ada, bob)] == [200, 403]
    assert ask(harness, ingress).status == 401
    [link] = harness.server.call("POST", f"/api/v1/workloads/{workload}/sign-in-links").json["links"]
    followed = urlsplit(link["signInUrl"])
    assert (followed.netloc, followed.path) == (host, "/.fairlead/sign-in")
    signed = fetch(f"http://{host}:{proxy}", f"{followed.path}?{followed.query}")
    passed = ask(harness, ingress, Cookie=signed.headers["set-cookie"].partition(";")[0])
    assert (passed.status, passed.headers["x-forwarded-user"]) == (200, "fairlead")


def test_they_come_and_go_with_their_workload(harness: ClusterHarness) -> None:
    spec = harness.spec(gpus=0, exposedUrls=[{"container": 8080}])
    workload = harness.submit("training", "leaves", spec)
    harness.until_phase(workload, "Running")
    until(lambda: len(found(harness)) == 4, "the objects", PATIENCE)
    names = set(found(harness))
    harness.server.stop()
    harness.server.start()
    harness.until_phase(workload, "Running")
    harness.act("suspend", workload)
    harness.until_phase(workload, "Stopped")
    assert found(harness) == {}
    harness.act("resume", workload)
    harness.until_phase(workload, "Running")
    until(lambda: set(found(harness)) == names, "the objects again", PATIENCE)
    harness.act("delete", workload)
    until(lambda: found(harness) == {}, "nothing to be left", PATIENCE)


def test_what_may_sleep_leads_to_our_proxy(harness: ClusterHarness) -> None:
    spec = web(harness) | {"servingPort": {"container": 8080}, "autoscaling": {"minReplicas": 0, "maxReplicas": 1}}
    workload = harness.submit("inference", "sleeper", spec)
    until(lambda: "Ingress/sleeper-url" in found(harness), "the Ingress", PATIENCE)
    there = found(harness)
    host, path, backend = way(there["Ingress/sleeper-url"])
    assert (path, backend["name"]) == ("/", "sleeper-proxy")
    assert f"{NGINX}/auth-url" not in there["Ingress/sleeper-url"]["metadata"]["annotations"]
    assert "Ingress/sleeper-sign-in" not in there
    harness.until_phase(workload, "Running")
    assert fetch(f"http://{host}:{backend['port']['number']}", "/awake").json["path"] == "/awake"
