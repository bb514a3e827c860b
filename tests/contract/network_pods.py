"""What tests of the local engine's network and sessions share: a web server to run as a pod, and ways to ask it."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.engines.base import PodReport, PodState, Session
from fairlead.engines.local.network.plan import PodNetworks
from fairlead.model.pods.podset import PodSpec
from tests.contract.engine_harness import DEADLINE, EngineHarness, pod

#: An HTTP server that answers with its own name and, while the file `sick` is there, with 503.
SERVER = """
import http.server, os, socket, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        with open(sys.argv[2], "a") as file:
            file.write(self.headers["Host"] + " " + self.path + "\\n")
        body = socket.gethostname().encode()
        self.send_response(503 if os.path.exists(sys.argv[2] + ".sick") else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer((sys.argv[3], int(sys.argv[1])), Handler)
if len(sys.argv) > 4:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[4])
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
needs_namespaces = pytest.mark.skipif(
    not PodNetworks("/nowhere").is_able, reason="pods get a network of their own only from a server that may make one"
)


def probe(port: int, **times: Any) -> dict[str, Any]:
    get = {"port": port, "path": "/", "scheme": times.pop("scheme", "HTTP")} | times.pop("get", {})
    defaults = {
        "initialDelaySeconds": 0,
        "periodSeconds": 10,
        "timeoutSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    return {"probes": {"readiness": {**defaults, **times, "handler": {"httpGet": get}}}}


def server(seen: Path, port: int, address: str = "0.0.0.0", *more: str, **members: Any) -> PodSpec:
    return pod(sys.executable, "-c", SERVER, str(port), str(seen), address, *more, **members)


async def until_ready(harness: EngineHarness, spec: PodSpec, wanted: bool = True) -> PodReport:
    async with asyncio.timeout(DEADLINE):
        while True:
            await harness.look()
            report = harness.last(spec)
            if report is not None and report.state is PodState.RUNNING and report.ready is wanted:
                return report
            await asyncio.sleep(0.005)


async def until_said(harness: EngineHarness, spec: PodSpec, is_enough: Callable[[bytes], bool]) -> bytes:
    """What a pod has written, when it is enough."""
    async with asyncio.timeout(DEADLINE):
        while True:
            said = await harness.output(spec)
            if is_enough(said):
                return said
            await asyncio.sleep(0.01)


async def ask(host: str, port: int) -> bytes:
    """The body that an HTTP server answers with."""
    reader, writer = await asyncio.open_connection(host, port)
    return await exchange(reader, writer)


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer.partition(b"\r\n\r\n")[2]


async def whole_output(session: Session) -> tuple[bytes, bytes, bytes]:
    """Everything that a session says: output, errors, and how it ended."""
    said = {"output": b"", "error": b"", "exit": b""}
    async with asyncio.timeout(DEADLINE):
        while True:
            name, piece = await session.read()
            said[name] += piece
            if name == "exit":
                await session.close()
                return said["output"], said["error"], said["exit"]


def ports(*given: dict[str, Any]) -> dict[str, Any]:
    return {"ports": [{"serviceType": "NodePort", **each} for each in given]}


@contextlib.contextmanager
def beyond() -> Iterator[tuple[str, int]]:
    """Another machine, played by a network namespace beside ours: it tells whoever connects what their address is."""
    program = (
        "import socket; s = socket.create_server(('198.51.100.2', 4711)); print('up', flush=True)\n"
        "while True: c, a = s.accept(); c.sendall(a[0].encode()); c.close()"
    )
    there = subprocess.Popen(
        [
            "unshare",
            "-n",
            "sh",
            "-c",
            f'read go; ip addr add 198.51.100.2/24 dev far; ip link set far up; exec {sys.executable} -c "$1"',
            "sh",
            program,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert there.stdin is not None
    assert there.stdout is not None
    mine = os.stat("/proc/self/ns/net").st_ino
    while os.stat(f"/proc/{there.pid}/ns/net").st_ino == mine:
        os.sched_yield()
    try:
        subprocess.run(
            ["ip", "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", str(there.pid)], check=True
        )
        subprocess.run(["ip", "addr", "add", "198.51.100.1/24", "dev", "near"], check=True)
        subprocess.run(["ip", "link", "set", "near", "up"], check=True)
        there.stdin.write(b"go\n")
        there.stdin.flush()
        assert there.stdout.readline() == b"up\n"
        yield "198.51.100.2", 4711
    finally:
        there.kill()
        there.communicate()
        subprocess.run(["ip", "link", "del", "near"], capture_output=True)
