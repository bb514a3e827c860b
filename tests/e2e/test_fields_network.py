"""Every network field of a training has its effect: ports, URLs and readiness, seen from outside and from inside."""

import http.client
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from fairlead.engines.local.network.plan import PodNetworks
from tests.e2e.server import Server, until
from tests.e2e.web import ask_access, bearer, exposed, fetch, log_in, open_socket, start_web, submit_web

needs_namespaces = pytest.mark.skipif(
    not PodNetworks("/nowhere").is_able, reason="pods get a network of their own only from a server that may make one"
)
pytestmark = needs_namespaces


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("web")


@pytest.fixture(scope="module")
def web(server: Server, folder: Path) -> str:
    """A workload that exposes one URL to everybody who is signed in."""
    return start_web(server, folder / "web", "web", exposedUrls=[{"container": 8080}])


def connections(server: Server, workload: str, kind: str) -> list[dict[str, object]]:
    found = server.workload(workload).get("externalConnections") or []
    return [each for each in found if each["connectionType"] == kind]


# Readiness


def test_probes_readiness(server: Server, folder: Path) -> None:
    """Running means ready; failing again means Degraded, and passing again Running."""
    place = folder / "probed"
    place.mkdir()
    (place / "sick").touch()
    workload = submit_web(server, place, "probed", port=18_080)
    seen = server.until_phase(workload, "Initializing")
    until(lambda: "readiness" in server.workload(workload)["phaseMessage"], "words on the probe")
    (place / "sick").unlink()
    seen = server.until_phase(workload, "Running")
    (place / "sick").touch()
    seen = server.until_phase(workload, "Degraded")
    assert "readiness probe" in seen["phaseMessage"]
    (place / "sick").unlink()
    server.until_phase(workload, "Running")
    pods = server.call("GET", f"/api/v1/workloads/{workload}/pods").json["pods"]
    assert pods


# Ports


def reach(server: Server, workload: str, kind: str) -> dict[str, object]:
    (found,) = connections(server, workload, kind)
    host, _, port = str(found["url"]).partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=120)
    connection.request("GET", "/")
    assert connection.getresponse().status == 200
    connection.close()
    return found


def test_ports_container(server: Server, folder: Path) -> None:
    """Two workloads listen on the same port at once, and each is reached by its own."""
    names = ["twin-one", "twin-two"]
    twins = [
        start_web(server, folder / name, name, ports=[{"container": 8080, "serviceType": "NodePort"}]) for name in names
    ]
    assert len({str(reach(server, twin, "NodePort")["url"]) for twin in twins}) == 2


@pytest.mark.parametrize("kind", ["NodePort", "LoadBalancer", "ClusterIP"])
def test_ports_service_type(server: Server, folder: Path, kind: str) -> None:
    name = f"by-{kind.lower()}"
    workload = start_web(server, folder / name, name, ports=[{"container": 8080, "serviceType": kind}])
    found = reach(server, workload, kind)
    assert found["containerPort"] == 8080
    outside = int(str(found["url"]).partition(":")[2])
    assert outside in (range(29_000, 30_000) if kind == "ClusterIP" else range(30_000, 32_768))


def test_ports_external(server: Server, folder: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    asked = [{"container": 8080, "serviceType": "LoadBalancer", "external": port}]
    workload = start_web(server, folder / "external", "external", ports=asked)
    assert reach(server, workload, "LoadBalancer")["url"] == f"localhost:{port}"
    second = server.run("external-too", "/bin/true", ports=asked)
    failed = server.until_phase(second, "Failed")
    assert (
        f"port {port} cannot be opened: it is in use by workload external of project default" in failed["phaseMessage"]
    )
    assert "Running" not in server.history(second)


def test_ports_tool(server: Server, folder: Path) -> None:
    """Name, type and tool of a port are shown with it."""
    port = {"container": 8080, "serviceType": "NodePort", "toolType": "tensorboard", "toolName": "Curves", "name": "tb"}
    workload = start_web(server, folder / "tool", "tool", ports=[port])
    (found,) = connections(server, workload, "NodePort")
    assert (found["toolType"], found["name"]) == ("tensorboard", "Curves")


# Exposed URLs


def test_exposed_urls_container(server: Server, web: str) -> None:
    url = exposed(server, web)
    assert re.fullmatch(r"http://web-default\.localhost:\d+/", url)
    answer = fetch(url, "/a/b?c=d", **bearer(server.token))
    assert answer.status == 200
    assert (answer.json["pod"], answer.json["path"]) == ("web-0-0", "/a/b?c=d")


def test_exposed_urls_url(server: Server, folder: Path) -> None:
    """A URL of one's own, with the prefix kept; taken by one workload it fails the next."""
    asked = [{"container": 8080, "url": "https://tools.example.com/team/board/"}]
    workload = start_web(server, folder / "custom", "custom", exposedUrls=asked)
    url = exposed(server, workload)
    assert urlsplit(url).hostname == "tools.example.com"
    answer = fetch(url, "/x", **bearer(server.token))
    assert answer.json["path"] == "/team/board/x"
    assert answer.json["headers"]["x-forwarded-prefix"] == "/team/board"
    second = server.run("custom-too", "/bin/true", exposedUrls=asked)
    failed = server.until_phase(second, "Failed")
    assert "tools.example.com/team/board is taken by workload custom of project default" in failed["phaseMessage"]


def test_exposed_urls_two_on_one_workload(server: Server, folder: Path) -> None:
    workload = start_web(server, folder / "pair", "pair", exposedUrls=[{"container": 8080}, {"container": 8080}])
    urls = [str(each["url"]) for each in connections(server, workload, "ExternalUrl")]
    assert len(set(urls)) == 2
    assert all(fetch(url, **bearer(server.token)).status == 200 for url in urls)


def test_exposed_urls_authorization_type(server: Server, web: str) -> None:
    """Whoever is signed in may, nobody else, and no forged or foreign token."""
    url = exposed(server, web)
    assert fetch(url).status == 401
    assert fetch(url, **bearer(server.token[:-4] + "AAAA")).status == 401
    assert fetch(url, Cookie="fairlead-url=forged").status == 401
    assert fetch(url, **bearer(log_in(server, "anyone@example.com"))).status == 200


def test_exposed_urls_authorized_users(server: Server, folder: Path) -> None:
    ada, bob = log_in(server, "ada@example.com"), log_in(server, "bob@example.com")
    urls = [{"container": 8080, "authorizationType": "authorizedUsers", "authorizedUsers": ["ada@example.com"]}]
    url = exposed(server, start_web(server, folder / "users", "for-users", exposedUrls=urls))
    assert fetch(url, **bearer(ada)).status == 200
    assert fetch(url, **bearer(bob)).status == 403
    assert fetch(url).status == 401


def test_exposed_urls_authorized_groups(server: Server, folder: Path) -> None:
    cat, dan = log_in(server, "cat@example.com", ("vision",)), log_in(server, "dan@example.com", ("speech",))
    urls = [{"container": 8080, "authorizedGroups": ["vision"]}]
    url = exposed(server, start_web(server, folder / "groups", "for-groups", exposedUrls=urls))
    assert fetch(url, **bearer(cat)).status == 200
    assert fetch(url, **bearer(dan)).status == 403


def test_exposed_urls_tool(server: Server, folder: Path) -> None:
    urls = [{"container": 8080, "toolType": "jupyter-notebook", "toolName": "Lab", "name": "lab"}]
    workload = start_web(server, folder / "lab", "lab", exposedUrls=urls)
    (found,) = connections(server, workload, "ExternalUrl")
    assert (found["toolType"], found["name"], found["containerPort"]) == ("jupyter-notebook", "Lab", 8080)


def test_related_urls(server: Server) -> None:
    related = [{"name": "runs", "url": "https://wandb.example.com/runs/7", "type": "wandb"}]
    workload = server.run("related", "/bin/true", relatedUrls=related)
    (found,) = connections(server, workload, "RelatedUrl")
    assert (found["url"], found["toolType"], found["name"]) == (related[0]["url"], "wandb", "runs")
    assert related[0]["url"] in server.workload(workload)["urls"]


# The proxy


def test_nothing_of_ours_reaches_a_workload(server: Server, web: str) -> None:
    url = exposed(server, web)
    answer = fetch(url, **bearer(server.token), Cookie="a=1; fairlead-url=x; b=2", X_Forwarded_User="root")
    seen = {name.lower(): value for name, value in answer.json["headers"].items()}
    assert "authorization" not in seen
    assert seen["cookie"] == "a=1; b=2"
    assert seen["x-forwarded-user"] == "fairlead"
    assert seen["host"] == urlsplit(url).netloc
    assert server.token not in answer.body.decode()
    # Nor does a workload set our cookie, or one for its neighbours.
    assert answer.headers["all-cookies"] == "own=1; Path=/"


def test_a_workloads_own_authorization_passes(server: Server, web: str) -> None:
    link = sign_in(server, web)
    answer = fetch(exposed(server, web), Authorization="token jupyter", Cookie=link)
    assert answer.json["headers"]["authorization"] == "token jupyter"


def sign_in(server: Server, workload: str) -> str:
    """Follow a one-time link; the cookie that it left."""
    (made,) = server.call("POST", f"/api/v1/workloads/{workload}/sign-in-links").json["links"]
    link = urlsplit(made["signInUrl"])
    followed = fetch(made["url"], f"{link.path}?{link.query}")
    assert (followed.status, followed.headers["location"]) == (303, "/")
    cookie = followed.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "Domain" not in cookie
    again = fetch(made["url"], f"{link.path}?{link.query}")
    assert again.status == 401, "a link works once"
    return cookie.partition(";")[0]


def test_a_one_time_link_signs_a_browser_in_to_that_url_alone(server: Server, folder: Path, web: str) -> None:
    cookie = sign_in(server, web)
    assert fetch(exposed(server, web), Cookie=cookie).status == 200
    other = start_web(server, folder / "other", "other", exposedUrls=[{"container": 8080}])
    assert fetch(exposed(server, other), Cookie=cookie).status == 401
    # The cookie is no access token.
    token = cookie.partition("=")[2]
    with_cookie = Server(server.data_dir)
    with_cookie.token = token
    assert with_cookie.call("GET", "/api/v1/workloads").status == 401


def test_pages_of_others_cannot_act_for_their_viewers(server: Server, web: str) -> None:
    url, cookie = exposed(server, web), sign_in(server, web)
    origin = url.rstrip("/")
    assert fetch(url, method="POST", body=b"x", Cookie=cookie, Origin=origin).status == 200
    assert fetch(url, method="POST", body=b"x", Cookie=cookie, Origin="http://evil.localhost").status == 403
    for sender, want in ((origin, 101), ("http://evil.localhost", 403)):
        status, connected = open_socket(url, Cookie=cookie, Origin=sender)
        connected.close()
        assert status == want


def test_ingress_controllers_get_the_same_answer(server: Server, folder: Path, web: str) -> None:
    """By token, by the cookie of a one-time link, and for named users."""
    url, cookie = exposed(server, web), sign_in(server, web)
    assert ask_access(server, url).status == 401
    assert ask_access(server, url, **bearer(server.token)).status == 200
    passed = ask_access(server, url, Cookie=f"a=1; {cookie}")
    assert (passed.status, passed.headers["cookie"], passed.headers["x-forwarded-user"]) == (200, "a=1", "fairlead")
    assert ask_access(server, url, "POST", Cookie=cookie, Origin="http://evil.localhost").status == 403
    eve, fay = log_in(server, "eve@example.com"), log_in(server, "fay@example.com")
    urls = [{"container": 8080, "authorizationType": "authorizedUsers", "authorizedUsers": ["eve@example.com"]}]
    workload = start_web(server, folder / "named", "named", exposedUrls=urls)
    named = exposed(server, workload)
    assert ask_access(server, named, **bearer(eve)).headers["x-forwarded-user"] == "eve@example.com"
    assert ask_access(server, named, **bearer(fay)).status == 403
    assert ask_access(server, named, Cookie=cookie).status == 401
    server.call("DELETE", f"/api/v1/workloads/trainings/{workload}")
    until(lambda: ask_access(server, named, **bearer(eve)).status == 404, "the URL to be gone")


def test_websockets(server: Server, web: str) -> None:
    status, connected = open_socket(exposed(server, web), **bearer(server.token))
    assert status == 101
    with connected:
        for text in (b"hello", b"x" * 300_000):
            connected.sendall(text)
            heard = b""
            while len(heard) < len(text):
                heard += connected.recv(65_536)
            assert heard == text.upper()
    refused, connected = open_socket(exposed(server, web))
    connected.close()
    assert refused == 401


def test_answers_stream_as_they_are_made(server: Server, folder: Path, web: str) -> None:
    where = urlsplit(exposed(server, web))
    connection = http.client.HTTPConnection("127.0.0.1", where.port, timeout=120)
    connection.request("GET", "/stream", headers={"Host": where.netloc, **bearer(server.token)})
    response = connection.getresponse()
    for number in range(3):
        # The next one is made only after this one was read.
        assert response.readline() == b"token %d\n" % number
        (folder / "web" / f"go{number}").touch()
    assert response.read() == b""
    connection.close()


@pytest.mark.parametrize("size", [0, 1, 70_000, 5_000_000])
def test_bodies_of_any_size_pass_both_ways(server: Server, web: str, size: int) -> None:
    body = os.urandom(size)
    url = exposed(server, web)
    assert fetch(url, method="POST", body=body, **bearer(server.token)).body == body
    pieces = (body[start : start + 1000] for start in range(0, size, 1000))
    assert fetch(url, method="POST", body=pieces, **bearer(server.token)).body == body


def test_only_ready_pods_are_asked_and_all_of_them(server: Server, folder: Path) -> None:
    spec: dict[str, Any] = {"exposedUrls": [{"container": 8080}], "parallelism": 2, "completions": 2}
    workload = start_web(server, folder / "two", "two", **spec)
    url = exposed(server, workload)
    until(lambda: "2 pods running," in server.workload(workload)["phaseMessage"], "both ready")
    pods = {fetch(url, **bearer(server.token)).json["pod"] for _ in range(8)}
    assert pods == {"two-0-0", "two-0-1"}


def test_without_a_ready_pod_it_says_so(server: Server, folder: Path) -> None:
    place = folder / "late"
    place.mkdir()
    (place / "sick").touch()
    workload = submit_web(server, place, "late", exposedUrls=[{"container": 8080}])
    server.until_phase(workload, "Initializing")
    answer = fetch(exposed(server, workload), **bearer(server.token))
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert b"No pod behind this URL is ready" in answer.body


@pytest.mark.parametrize(
    "head",
    [
        "GET / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: xchunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: {host}\r\nHost: other\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : {host}\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: {host}\r\nA: b\r\n c\r\n\r\n",
        "GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: {host}\r\nA: b\nAuthorization: c\r\n\r\n",
    ],
)
def test_requests_that_two_could_read_differently_are_refused(server: Server, web: str, head: str) -> None:
    where = urlsplit(exposed(server, web))
    with socket.create_connection(("127.0.0.1", where.port), 120) as connected:
        connected.sendall(head.format(host=where.netloc).encode())
        assert connected.recv(65_536).startswith(b"HTTP/1.1 400 ")


def test_urls_by_path_keep_their_prefix(make_server: Callable[..., Server], tmp_path: Path) -> None:
    server = make_server("--personal", "--url-paths", "--domain", "apps.example.com")
    workload = start_web(server, tmp_path / "web", "by-path", exposedUrls=[{"container": 8080}])
    url = exposed(server, workload)
    assert re.fullmatch(r"http://apps\.example\.com:\d+/default/by-path/", url)
    assert fetch(url, "/x", **bearer(server.token)).json["path"] == "/default/by-path/x"


def test_urls_and_ports_survive_a_killed_server(make_server: Callable[..., Server], tmp_path: Path) -> None:
    server = make_server("--personal", "--proxy-port", "0")
    spec: dict[str, Any] = {
        "exposedUrls": [{"container": 8080}],
        "ports": [{"container": 8080, "serviceType": "NodePort"}],
    }
    workload = start_web(server, tmp_path / "web", "survivor", **spec)
    port = reach(server, workload, "NodePort")["url"]
    server.kill()
    server.start()
    until(lambda: fetch(exposed(server, workload), **bearer(server.token)).status == 200, "the URL again")
    assert connections(server, workload, "NodePort")[0]["url"] == port
    until(lambda: reach(server, workload, "NodePort"), "the port again")


# The command line


@pytest.fixture
def fairlead(server: Server) -> Iterator[list[str]]:
    os.environ["FAIRLEAD_DATA_DIR"] = str(server.data_dir)
    yield [sys.executable, "-m", "fairlead"]
    del os.environ["FAIRLEAD_DATA_DIR"]


def test_exec_runs_in_the_pod_and_returns_its_exit_code(server: Server, web: str, fairlead: list[str]) -> None:
    ran = subprocess.run([*fairlead, "exec", "web", "--", "sh", "-c", "hostname; exit 42"], capture_output=True)
    assert (ran.stdout, ran.returncode) == (b"web-0-0\n", 42)
    piped = subprocess.run(
        [*fairlead, "exec", "web", "-i", "--", "wc", "-c"], input=b"x" * 500_000, capture_output=True
    )
    assert (piped.stdout.strip(), piped.returncode) == (b"500000", 0)


def test_exec_with_a_terminal_is_one(server: Server, web: str, fairlead: list[str]) -> None:
    ran = subprocess.run([*fairlead, "exec", "web", "-t", "--", "sh", "-c", "tty; stty size"], capture_output=True)
    assert re.fullmatch(rb"/dev/pts/\d+\r\n24 80\r\n", ran.stdout), ran


def test_attach_is_at_the_input_and_output_of_the_pod(server: Server, fairlead: list[str]) -> None:
    server.until_phase(
        server.run("listener", "/bin/sh", "-c 'read line; echo got $line; exit 3'", stdin=True, backoffLimit=0),
        "Running",
    )
    ran = subprocess.run([*fairlead, "attach", "listener"], input=b"hello\n", capture_output=True, timeout=120)
    assert (ran.stdout, ran.returncode) == (b"got hello\n", 3)


def test_port_forward_reaches_a_port_of_the_pod(server: Server, web: str, fairlead: list[str]) -> None:
    command = [*fairlead, "port-forward", "web", "--port", "0:8080"]
    forwarding = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert forwarding.stderr is not None
        line = forwarding.stderr.readline().decode()
        match = re.search(r"Forwarding (\S+):(\d+) to port 8080 of web", line)
        assert match, line
        for _ in range(2):
            connection = http.client.HTTPConnection("127.0.0.1", int(match[2]), timeout=120)
            connection.request("GET", "/here")
            assert b'"/here"' in connection.getresponse().read()
            connection.close()
    finally:
        forwarding.send_signal(signal.SIGINT)
        forwarding.communicate(timeout=180)
    assert forwarding.returncode == 0


def test_port_forward_says_that_the_pod_ended_a_connection_without_a_word(server: Server, fairlead: list[str]) -> None:
    curt = "import socket; s = socket.create_server(('', 8081))\nwhile 1: s.accept()[0].recv(1)"
    server.until_phase(server.run("curt", f"{sys.executable} -c", shlex.quote(curt)), "Running")
    command = [*fairlead, "port-forward", "curt", "--port", "0:8081"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as forwarding:
        try:
            assert forwarding.stderr is not None
            match = re.search(r":(\d+) to port 8081", forwarding.stderr.readline())
            assert match
            words = "The pod closed a connection to port 8081 without sending anything. Does it listen there?\n"
            said = forwarding.stderr
            # A line for each connection, also for those that come before it listens.
            until(lambda: hears_nothing(int(match[1]), b"x") and said.readline() == words, "the words")
            # Who says nothing and leaves is owed no answer.
            assert hears_nothing(int(match[1]), b"")
        finally:
            forwarding.send_signal(signal.SIGINT)
            assert forwarding.communicate(timeout=180)[1] == ""


def hears_nothing(port: int, said: bytes) -> bool:
    with socket.create_connection(("127.0.0.1", port), 120) as connected:
        connected.sendall(said)
        if not said:
            connected.shutdown(socket.SHUT_WR)
        return connected.recv(1) == b""


def test_sessions_refuse_a_container_that_the_pod_does_not_have(server: Server, web: str, fairlead: list[str]) -> None:
    for words in (["exec", "web", "-c", "other", "--", "true"], ["logs", "web", "-c", "other"]):
        ran = subprocess.run([*fairlead, *words], capture_output=True, text=True, timeout=120)
        assert (ran.returncode, "has no container 'other'" in ran.stderr) == (3, True), ran
    known = [*fairlead, "exec", "web", "-c", "web", "--", "true"]
    assert subprocess.run(known, capture_output=True, timeout=120).returncode == 0


def test_port_forward_to_what_has_ended_says_so(server: Server, fairlead: list[str]) -> None:
    server.until_phase(server.run("over", "/bin/true"), "Completed")
    command = [*fairlead, "port-forward", "over", "--port", "0:8080"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    other = subprocess.run([*fairlead, "exec", "over", "--", "true"], capture_output=True, text=True, timeout=120)
    assert "no running pod; it is Completed" in ran.stderr
    assert (ran.returncode, "no running pod; it is Completed" in other.stderr) == (other.returncode, True)


def test_url_prints_a_link_that_signs_in(server: Server, web: str, fairlead: list[str]) -> None:
    ran = subprocess.run([*fairlead, "url", "web"], capture_output=True, text=True)
    link = urlsplit(ran.stdout.strip())
    assert fetch(exposed(server, web), f"{link.path}?{link.query}").status == 303
