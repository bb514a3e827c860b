"""Services that sleep: from a request to the first answer, beside the program's own start; and many open streams.

Measured from outside on a real server. The program is started by itself first, to know what is not the server's doing.
"""

import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from bench.server import Server, serving, wait_until
from bench.table import Measurement, Options

PATH = "/api/v1/workloads/inferences"
PORT = 18_090
STREAMS = 200
#: Listens at once, answers every request; below /events it sends a line now and one when the file is there.
PROGRAM = r"""
import os, select, socket, sys
port, file = int(sys.argv[1]), sys.argv[2]
server = socket.create_server(("", port), backlog=512)
poll = select.poll()
poll.register(server, select.POLLIN)
open_ones, streams = {}, []
while True:
    for number, _ in poll.poll(1 if streams else None):
        if number == server.fileno():
            link = server.accept()[0]
            open_ones[link.fileno()] = link
            poll.register(link, select.POLLIN)
            continue
        link = open_ones[number]
        data = link.recv(65536)
        if not data:
            poll.unregister(link)
            del open_ones[number]
            link.close()
        elif b" /events " in data:
            link.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nfirst\n\r\n")
            streams.append(link)
        else:
            link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    if streams and os.path.exists(file):
        for link in streams:
            link.sendall(b"5\r\nlast\n\r\n0\r\n\r\n")
        streams = []
"""


def measure_start(program: Path, file: Path) -> float:
    """Milliseconds from the start of the program, as pods start it, until somebody can connect to it."""
    began = time.perf_counter()
    with subprocess.Popen([sys.executable, str(program), str(PORT), str(file)]) as process:
        while True:
            try:
                socket.create_connection(("127.0.0.1", PORT), 1).close()
                break
            except OSError:
                time.sleep(0.0005)
        took = (time.perf_counter() - began) * 1000
        process.kill()
    return took


def start_service(server: Server, program: Path, file: Path, least: int) -> tuple[str, str]:
    """Its id and its URL, once it runs."""
    spec = {
        "command": sys.executable,
        "args": f"{program} {PORT} {file}",
        "servingPort": {"container": PORT},
        "autoscaling": {"minReplicas": least},
    }
    id = str(server.call("POST", PATH, server.submission("service", spec))["workloadId"])
    wait_until(lambda: server.call("GET", f"/api/v1/workloads/{id}")["phase"] == "Running")
    return id, str(server.call("GET", f"/api/v1/workloads/{id}")["urls"][0])


def connect(url: str, path: str) -> socket.socket:
    where = urlsplit(url)
    link = socket.create_connection(("127.0.0.1", where.port or 80), 60)
    link.sendall(f"GET {path} HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode())
    return link


def read_until(link: socket.socket, words: bytes) -> None:
    heard = b""
    while words not in heard:
        piece = link.recv(4096)
        if not piece:
            raise SystemExit(f"the connection ended: {heard!r}")
        heard += piece


def measure_waking(server: Server, id: str, url: str) -> float:
    """Milliseconds from a request to a service without pods until its whole answer is there."""
    wait_until(lambda: server.call("GET", f"/api/v1/workloads/{id}")["runningPods"] == 0)
    began = time.perf_counter()
    with connect(url, "/") as link:
        read_until(link, b"hello")
    return (time.perf_counter() - began) * 1000


def measure_streams(url: str, file: Path) -> float:
    """Milliseconds from an event until all who listen have it."""
    links = [connect(url, "/events") for _ in range(STREAMS)]
    for link in links:
        read_until(link, b"first")
    began = time.perf_counter()
    file.touch()
    for link in links:
        read_until(link, b"0\r\n\r\n")
        link.close()
    return (time.perf_counter() - began) * 1000


def measure(options: Options) -> Iterator[Measurement]:
    rounds = 3 if options.quick else 15
    folder = options.folder / "waking"
    folder.mkdir(parents=True, exist_ok=True)
    program, file = folder / "service.py", folder / "event"
    program.write_text(PROGRAM)
    alone = [measure_start(program, file) for _ in range(rounds)]
    with serving(folder / "data", ("--personal", "--proxy-port", "0", "--scaling-window", "1")) as server:
        id, url = start_service(server, program, file, least=0)
        woken = [measure_waking(server, id, url) for _ in range(rounds)]
        server.call("PATCH", f"{PATH}/{id}", {"spec": {"autoscaling": {"minReplicas": 1}}})
        wait_until(lambda: server.call("GET", f"/api/v1/workloads/{id}")["runningPods"] == 1)
        told = []
        for _ in range(rounds):
            file.unlink(missing_ok=True)
            told.append(measure_streams(url, file))
        server.call("DELETE", f"{PATH}/{id}")
        wait_until(lambda: server.call("GET", f"/api/v1/workloads/{id}")["runningPods"] == 0)
    own = statistics.median(alone)
    waking = [each - own for each in woken]
    note = f"the program alone: {own:.0f} ms"
    yield Measurement("first answer from zero pods, less the program's own start", "ms", waking, goal=150, note=note)
    yield Measurement(f"an event to all of {STREAMS} open streams", "ms", told)
