"""The URL of a service of groups: who may send requests, who answers, streams and sockets, and no request lost."""

import http.client
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.e2e.server import Server, until
from tests.e2e.several import (
    GROUPS,
    SLEEP,
    delete,
    kill_pod,
    needs_networks,
    pods,
    program,
    request,
    scale,
    serve,
    until_pods,
)
from tests.e2e.web import PROBE, PROGRAM, bearer, exposed, fetch, log_in, open_socket

pytestmark = needs_networks


def leader(folder: Path, **members: Any) -> dict[str, Any]:
    """A leader that answers on port 8080, streams, and takes WebSockets (`web.PROGRAM`)."""
    folder.mkdir(exist_ok=True)
    path = folder / "web.py"
    path.write_text(PROGRAM)
    return {"image": "x", "command": f"{sys.executable} {path} 8080 {folder}", "probes": PROBE, **members}


def started(server: Server, folder: Path, name: str, **spec: Any) -> tuple[str, str]:
    """A service that runs: its id and URL."""
    given = {"leader": leader(folder), "servingPort": {"port": 8080}} | spec
    workload_id = serve(server, name, **given)
    server.until_phase(workload_id, "Running")
    return workload_id, exposed(server, workload_id)


def answering(url: str, number: int = 8) -> set[str]:
    """Which pods answer."""
    return {fetch(url).json["pod"] for _ in range(number)}


def test_only_named_users_may(server: Server, tmp_path: Path) -> None:
    port = {"port": 8080, "authorizationType": "authorizedUsers", "authorizedUsers": ["ada@example.com"]}
    workload_id, url = started(server, tmp_path, "named", servingPort=port)
    tokens = [log_in(server, name) for name in ("ada@example.com", "bob@example.com")]
    assert [fetch(url, **bearer(token)).status for token in tokens] == [200, 403]
    assert fetch(url).status == 401
    found = fetch(url, **bearer(tokens[0]))
    assert tokens[0] not in found.body.decode()
    delete(server, workload_id)


def test_only_members_of_named_groups_may(server: Server, tmp_path: Path) -> None:
    port = {"port": 8080, "authorizationType": "authorizedGroups", "authorizedGroups": ["crew"]}
    workload_id, url = started(server, tmp_path, "crewed", servingPort=port)
    tokens = [log_in(server, "eve@example.com", ("crew", "other")), log_in(server, "joe@example.com", ("other",))]
    assert [fetch(url, **bearer(token)).status for token in tokens] == [200, 403]
    assert fetch(url).status == 401
    delete(server, workload_id)


def test_everybody_may_where_it_is_public(server: Server, tmp_path: Path) -> None:
    workload_id, url = started(server, tmp_path, "open", servingPort={"port": 8080, "authorizationType": "public"})
    assert fetch(url).status == 200
    delete(server, workload_id)


def test_a_url_of_ones_own_that_is_taken_fails_the_workload(server: Server, tmp_path: Path) -> None:
    port = {"port": 8080, "exposedUrl": "https://models.example.com/tiny/"}
    workload_id, url = started(server, tmp_path, "chosen", servingPort=port)
    assert urlsplit(url).hostname == "models.example.com"
    assert fetch(url, "/x").json["path"] == "/tiny/x"
    second = serve(server, "chosen-too", leader=leader(tmp_path), servingPort=port)
    assert "taken by workload chosen" in server.until_phase(second, "Failed")["phaseMessage"]
    assert "Running" not in server.history(second)
    delete(server, workload_id)


def test_without_a_serving_port_there_is_no_url(server: Server) -> None:
    workload_id = serve(server, "mute", leader=program(SLEEP))
    server.until_phase(workload_id, "Running")
    workload = server.workload(workload_id)
    assert not workload.get("urls")
    assert not workload.get("externalConnections")
    delete(server, workload_id)


ASK = """
import json, sys, urllib.request
print(sorted({json.load(urllib.request.urlopen("http://" + sys.argv[1], timeout=30))["pod"] for _ in range(6)}))
"""


def test_inside_the_cluster_only(server: Server, tmp_path: Path) -> None:
    """Workloads of this machine reach its leaders, from the machine's network and from one of their own; others not."""
    # Workers listen on the same port, and must never be asked.
    spec = {"replicas": 2, "workers": 1, "leader": leader(tmp_path), "worker": leader(tmp_path)}
    workload_id = serve(server, "inside", **spec, servingPort={"port": 8080, "exposeExternally": False})
    server.until_phase(workload_id, "Running")
    [found] = server.workload(workload_id)["externalConnections"]
    assert (found["connectionType"], found["containerPort"]) == ("ClusterIP", 8080)
    port = int(found["url"].rpartition(":")[2])
    want = "['inside-0', 'inside-1']\n"
    plain = server.run("asks-plainly", sys.executable, f"-c '{ASK}' localhost:{port}")
    own = {"ports": [{"container": 9999, "serviceType": "NodePort"}]}
    apart = server.run("asks-from-afar", sys.executable, f"-c '{ASK}' host.fairlead.internal:{port}", **own)
    for asking in (plain, apart):
        server.until_phase(asking, "Completed")
        assert server.logs(asking) == want
    assert {address.split(".")[0] for address in listening(port)} == {"127", "10"}
    delete(server, workload_id)
    until(lambda: not listening(port), "the port given back")


def listening(port: int) -> set[str]:
    """The addresses of this machine at which somebody listens on a port."""
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *_ = line.split()
        address, _, number = local.partition(":")
        if state == "0A" and int(number, 16) == port:
            found.add(".".join(map(str, reversed(bytes.fromhex(address)))))
    return found


def test_answers_come_from_ready_leaders_only(server: Server, tmp_path: Path) -> None:
    spec = {"leader": leader(tmp_path), "worker": leader(tmp_path), "workers": 1, "replicas": 2}
    workload_id, url = started(server, tmp_path, "fair", **spec)
    assert answering(url) == {"fair-0", "fair-1"}
    (tmp_path / "sick").touch()
    until(lambda: fetch(url).status == 503, "nobody who is ready")
    (tmp_path / "sick").unlink()
    until(lambda: fetch(url).status == 200 and len(answering(url)) == 2, "both again")
    delete(server, workload_id)


def test_streams_come_token_by_token(server: Server, tmp_path: Path) -> None:
    """Two at once, one from each group; each token is there before the next one is made."""
    workload_id, url = started(server, tmp_path, "stream", replicas=2)
    where = urlsplit(url)
    connections = [http.client.HTTPConnection("127.0.0.1", where.port, timeout=60) for _ in range(2)]
    for connection in connections:
        connection.request("GET", "/stream", headers={"Host": where.netloc, "Accept": "text/event-stream"})
    answers = [connection.getresponse() for connection in connections]
    for number in range(3):
        assert [answer.readline() for answer in answers] == [b"token %d\n" % number] * 2
        (tmp_path / f"go{number}").touch()
    assert [answer.read() for answer in answers] == [b"", b""]
    for connection in connections:
        connection.close()
    delete(server, workload_id)


def test_sockets_stay_open_while_it_is_scaled(server: Server, tmp_path: Path) -> None:
    workload_id, url = started(server, tmp_path, "talk")
    status, connected = open_socket(url)
    assert status == 101
    scale(server, workload_id, 3)
    # The one that is spoken with is asked last.
    until(lambda: {"talk-1", "talk-2"} <= answering(url), "the new ones")
    scale(server, workload_id, 1)
    until_pods(server, workload_id, "talk-0")
    connected.sendall(b"still here")
    assert connected.recv(100) == b"STILL HERE"
    connected.close()
    delete(server, workload_id)


class Caller(threading.Thread):
    """Sends one request after another over a connection that is kept; what was no good answer is noted."""

    def __init__(self, url: str, method: str) -> None:
        super().__init__(daemon=True)
        self.url = urlsplit(url)
        self.method = method
        self.ended = threading.Event()
        self.answers = 0
        self.bad: list[str] = []

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.url.port, timeout=60)
        body = b"x" * 100 if self.method == "POST" else None
        while not self.ended.is_set():
            try:
                connection.request(self.method, "/", body, {"Host": self.url.netloc})
                answer = connection.getresponse()
                said = answer.read()
                if answer.status != 200:
                    self.bad.append(f"{answer.status} {said!r}")
            except OSError as error:
                self.bad.append(repr(error))
                connection.close()
            self.answers += 1
        connection.close()


@contextmanager
def calling(url: str, *methods: str) -> Iterator[list[Caller]]:
    callers = [Caller(url, method) for method in methods]
    for caller in callers:
        caller.start()
    try:
        yield callers
    finally:
        for caller in callers:
            caller.ended.set()
        for caller in callers:
            caller.join(60)


def go_on(callers: list[Caller]) -> None:
    """Until each has had some more answers."""
    before = [caller.answers for caller in callers]
    until(lambda: all(one.answers > seen + 20 for one, seen in zip(callers, before, strict=True)), "more answers")


def test_no_request_is_lost_while_it_is_scaled(server: Server, tmp_path: Path) -> None:
    workload_id, url = started(server, tmp_path, "steady", replicas=1)
    with calling(url, "GET", "POST") as callers:
        for replicas in (3, 2, 4, 1):
            assert scale(server, workload_id, replicas).status == 202
            until_pods(server, workload_id, *(f"steady-{number}" for number in range(replicas)))
            go_on(callers)
    assert [caller.bad for caller in callers] == [[], []]
    delete(server, workload_id)


def test_no_request_is_lost_while_a_group_is_made_again(server: Server, tmp_path: Path) -> None:
    spec = {"leader": leader(tmp_path), "worker": program(SLEEP), "workers": 1, "replicas": 2}
    workload_id, url = started(server, tmp_path, "mended", **spec)
    before = pods(server, workload_id)
    with calling(url, "GET", "GET") as callers:
        kill_pod(before["mended-1-1"]["id"])
        until(
            lambda: (
                (now := pods(server, workload_id)).keys() == before.keys()
                and now["mended-1"]["id"] != before["mended-1"]["id"]
            ),
            "the group made again",
        )
        server.until_phase(workload_id, "Running")
        go_on(callers)
    assert [caller.bad for caller in callers] == [[], []]
    until(lambda: answering(url) == {"mended-0", "mended-1"}, "both groups")
    delete(server, workload_id)


def test_contradictions_of_the_serving_port_are_refused(server: Server) -> None:
    port = {"port": 70_000, "authorizationType": "authorizedUsers", "authorizedGroups": ["a"]}
    spec = {"leader": program(SLEEP), "servingPort": port}
    answer = server.call("POST", GROUPS, request(server, "contradicts", spec))
    assert answer.status == 400
    for path in ("spec.servingPort.port", "spec.servingPort.authorizedGroups", "spec.servingPort.authorizedUsers"):
        assert path in answer.json["details"], answer
