"""A small service to run as an inference, and what tests do with services: submit, ask, change, count its pods."""

import json
import shlex
import sys
import threading
from pathlib import Path
from typing import Any

from tests.e2e.server import Answer, Server, until
from tests.e2e.web import fetch

PATH = "/api/v1/workloads/inferences"
#: Says who it is. Below /hold/NAME it answers when the file NAME is there, below /slow after 200 ms, below /events with
#: one event now and one when the file `end` is there; upgrades echo. With LATE it listens when that file is there.
PROGRAM = r"""
import asyncio, json, os, sys, time
folder, port = sys.argv[1], int(sys.argv[2])
if "FAIL" in os.environ:
    sys.exit("it was told to fail")
while "LATE" in os.environ and not os.path.exists(folder + "/" + os.environ["LATE"]):
    time.sleep(0.01)
now, peak = 0, 0
waits = {}
async def there(name):
    # One look for all who wait for the same.
    if name not in waits:
        waits[name] = asyncio.ensure_future(looked_for(name))
    await asyncio.shield(waits[name])
async def looked_for(name):
    while not os.path.exists(folder + "/" + name):
        await asyncio.sleep(0.01)
async def answer(reader, writer):
    global now, peak
    now += 1
    peak = max(peak, now)
    try:
        await serve(reader, writer)
    finally:
        now -= 1
        writer.close()
async def serve(reader, writer):
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    path = head.split()[1]
    if "upgrade: websocket" in head.lower():
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        while data := await reader.read(65536):
            writer.write(data.upper())
        return
    if path.startswith("/events"):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"d\r\ndata: first\n\n\r\n")
        await writer.drain()
        await there("end")
        writer.write(b"c\r\ndata: last\n\n\r\n0\r\n\r\n")
        await writer.drain()
        return
    if path.startswith("/hold/"):
        await there(path[6:])
    if path.startswith("/slow"):
        await asyncio.sleep(0.2)
    said = {"pod": os.uname().nodename, "version": os.environ.get("VERSION", "1"), "peak": peak}
    body = json.dumps(said).encode()
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    await writer.drain()
async def main():
    server = await asyncio.start_server(answer, "", port, backlog=512)
    await server.serve_forever()
asyncio.run(main())
"""


def spec_of(folder: Path, port: int, **members: Any) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    program = folder / "service.py"
    program.write_text(PROGRAM)
    given = {"image": "python:3", "command": sys.executable, "args": f"{program} {shlex.quote(str(folder))} {port}"}
    return given | {"servingPort": {"container": port}} | members


def submit(server: Server, name: str, spec: dict[str, Any]) -> Answer:
    body = {"name": name, "projectId": "1", "clusterId": server.credentials["clusterId"], "spec": spec}
    return server.call("POST", PATH, body)


def start(server: Server, name: str, spec: dict[str, Any]) -> str:
    answer = submit(server, name, spec)
    assert answer.status == 202, answer
    return str(answer.json["workloadId"])


def change(server: Server, workload_id: str, **spec: Any) -> Answer:
    return server.call("PATCH", f"{PATH}/{workload_id}", {"spec": spec})


def version(number: str, **more: str) -> list[dict[str, str]]:
    """The variables of a version of the service."""
    return [{"name": name, "value": value} for name, value in {"VERSION": number, **more}.items()]


def url_of(server: Server, workload_id: str) -> str:
    [url] = server.workload(workload_id)["urls"]
    return str(url)


def ask(url: str, path: str = "/") -> dict[str, Any]:
    answer = fetch(url, path)
    assert answer.status == 200, answer
    said: dict[str, Any] = answer.json
    return said


def pods(server: Server, workload_id: str) -> list[str]:
    """The names of its pods that have not been told to end."""
    found = server.call("GET", f"/api/v1/workloads/{workload_id}/pods?limit=500").json["pods"]
    return sorted(pod["name"] for pod in found if pod["k8sPhase"] in ("Pending", "Running"))


def until_pods(server: Server, workload_id: str, number: int) -> list[str]:
    until(lambda: len(pods(server, workload_id)) == number, f"{number} pods")
    return pods(server, workload_id)


def revisions(server: Server, workload_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.call("GET", f"{PATH}/{workload_id}/revisions").json["revisions"]
    return found


def events(server: Server, workload_id: str, reason: str) -> list[dict[str, Any]]:
    found = server.call("GET", f"/api/v1/workloads/{workload_id}/events?limit=500&sortOrder=asc").json["events"]
    return [event for event in found if event["reason"] == reason]


def delete(server: Server, workload_id: str) -> None:
    assert server.call("DELETE", f"{PATH}/{workload_id}").status == 202
    until(lambda: server.workload(workload_id)["runningPods"] == 0, "its end")


class Callers:
    """Requests from threads of their own; what each of them was answered."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self._threads: list[threading.Thread] = []
        self._goes_on = True

    def ask(self, url: str, path: str, times: int = 1) -> None:
        """So many requests at once."""
        for _ in range(times):
            self._run(lambda: self.answers.append(fetch(url, path)))

    def keep_asking(self, url: str, path: str = "/") -> None:
        """One request after the other, until `end`."""

        def ask() -> None:
            while self._goes_on:
                self.answers.append(fetch(url, path))

        self._run(ask)

    def _run(self, work: Any) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def end(self) -> list[Answer]:
        self._goes_on = False
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a request got no answer"
        return self.answers

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(answer.body) for answer in self.answers]
