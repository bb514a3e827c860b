"""The reverse proxy before a workload's URL: requests a second on one core, and what it adds to the time of each.

Measured from outside with a real server and a real pod: the server on one core, the pod and the caller on the other.
"""

import os
import selectors
import socket
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from bench.server import Server, serving, wait_until
from bench.table import Measurement, Options

#: Answers every request with the same few bytes, faster than anything in front of it.
UPSTREAM = """
import asyncio, sys, uvloop
class Answer(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.pending = transport, b""
    def data_received(self, data):
        self.pending += data
        while b"\\r\\n\\r\\n" in self.pending:
            _, _, self.pending = self.pending.partition(b"\\r\\n\\r\\n")
            self.transport.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 12\\r\\n\\r\\nhello, world")
async def main():
    server = await asyncio.get_running_loop().create_server(Answer, "0.0.0.0", int(sys.argv[1]))
    await server.serve_forever()
uvloop.run(main())
"""
PORT = 18_080
CONNECTIONS = 32


def ask(connected: socket.socket, request: bytes) -> None:
    connected.sendall(request)
    answer = b""
    while not answer.endswith(b"hello, world"):
        piece = connected.recv(65_536)
        if not piece:
            raise SystemExit(f"the connection ended: {answer!r}")
        answer += piece


def measure_times(address: tuple[str, int], request: bytes, number: int) -> float:
    """The median time of one request after another on one connection, in milliseconds."""
    with socket.create_connection(address) as connected:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        times = []
        for _ in range(number):
            began = time.perf_counter_ns()
            ask(connected, request)
            times.append((time.perf_counter_ns() - began) / 1e6)
    return statistics.median(times)


def measure_rate(address: tuple[str, int], request: bytes, number: int) -> float:
    """Requests a second over many connections, each with one on its way."""
    selector = selectors.DefaultSelector()
    for _ in range(CONNECTIONS):
        connected = socket.create_connection(address)
        selector.register(connected, selectors.EVENT_READ, [b""])
        connected.sendall(request)
    sent, done, began = CONNECTIONS, 0, time.perf_counter()
    while done < number:
        for key, _ in selector.select():
            connected = cast(socket.socket, key.fileobj)
            key.data[0] += connected.recv(65_536)
            if key.data[0].endswith(b"hello, world"):
                done += 1
                key.data[0] = b""
                if sent < number:
                    sent += 1
                    connected.sendall(request)
    seconds = time.perf_counter() - began
    for key in list(selector.get_map().values()):
        cast(socket.socket, key.fileobj).close()
    return number / seconds


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start_workload(server: Server, folder: Path) -> tuple[str, str, tuple[str, int]]:
    """A workload that answers: its id, its exposed URL, and where its pod itself is reached."""
    program = folder / "upstream.py"
    program.write_text(UPSTREAM)
    get = {"port": PORT}
    body = {
        "name": "upstream",
        "projectId": "1",
        "clusterId": server.credentials["clusterId"],
        "spec": {
            "image": "none",
            "command": f"{sys.executable} {program} {PORT}",
            "exposedUrls": [{"container": PORT}],
            "ports": [{"container": PORT, "serviceType": "ClusterIP"}],
            "probes": {"readiness": {"handler": {"httpGet": get}}},
        },
    }
    workload = server.call("POST", "/api/v1/workloads/trainings", body)["workloadId"]
    wait_until(lambda: server.call("GET", f"/api/v1/workloads/{workload}")["phase"] == "Running")
    found = server.call("GET", f"/api/v1/workloads/{workload}")
    url = next(each["url"] for each in found["externalConnections"] if each["connectionType"] == "ExternalUrl")
    hosts = next((server.data / "pods" / "network").glob("*.hosts"), None)
    lines = hosts.read_text().splitlines() if hosts else []
    address = next((line.split()[0] for line in lines if "upstream-0-0" in line), "127.0.0.1")
    return workload, url, (address, PORT)


def measure(options: Options) -> Iterator[Measurement]:
    cores = sorted(os.sched_getaffinity(0))
    with serving(options.folder / "network", ["--personal"], {cores[0]}) as server:
        os.sched_setaffinity(0, {cores[-1]})
        try:
            yield from measure_proxy(server, options)
        finally:
            os.sched_setaffinity(0, set(cores))


def measure_proxy(server: Server, options: Options) -> Iterator[Measurement]:
    rounds, number = (1, 500) if options.quick else (5, 5_000)
    workload, url, pod = start_workload(server, options.folder)
    try:
        where = urlsplit(url)
        head = f"GET / HTTP/1.1\r\nHost: {where.netloc}\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode()
        proxied = ("127.0.0.1", where.port or 80)
        measure_times(proxied, head, 100)
        added = [measure_times(proxied, head, number) - measure_times(pod, head, number) for _ in range(rounds)]
        yield Measurement("reverse proxy: added to a request, p50", "ms", added, goal=1.0, note="one connection")
        used = cpu_seconds(server.process.pid)
        rates = [measure_rate(proxied, head, number) for _ in range(rounds)]
        used = cpu_seconds(server.process.pid) - used
        note = f"{CONNECTIONS} connections, checked by token"
        yield Measurement("reverse proxy: requests a second on one core", "1/s", rates, 2_000, True, note)
        per_second = [rounds * number / used]
        yield Measurement(
            "reverse proxy: requests per second of CPU", "1/s", per_second, 2_000, True, "whatever else runs"
        )
    finally:
        server.call("DELETE", f"/api/v1/workloads/trainings/{workload}")
