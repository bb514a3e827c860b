"""A small web server to run as a workload, and a client that talks to exposed URLs, WebSockets and links among them."""

import base64
import hashlib
import http.client
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.e2e.server import Answer, Server

#: Answers what it was sent; below /stream one line at a time, each when it is asked for; upgrades echo.
PROGRAM = r"""
import base64, hashlib, http.server, json, os, socket, sys
port, folder = int(sys.argv[1]), sys.argv[2]
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self, status, body, *headers):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        if self.headers.get("Upgrade"):
            return self.upgrade()
        if self.path.endswith("/stream"):
            return self.stream()
        sick = self.path == "/ready" and os.path.exists(folder + "/sick")
        cookies = [("Set-Cookie", "own=1; Path=/; Domain=localhost"), ("Set-Cookie", "fairlead-url=forged")]
        said = {"pod": socket.gethostname(), "path": self.path, "headers": dict(self.headers)}
        self.answer(503 if sick else 200, json.dumps(said).encode(), *cookies)
    def do_POST(self):
        length = self.headers.get("Content-Length")
        if length is not None:
            return self.answer(200, self.rfile.read(int(length)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        self.answer(200, body)
    def stream(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(3):
            self.wfile.write(b"8\r\ntoken %d\n\r\n" % number)
            self.wfile.flush()
            while not os.path.exists(f"{folder}/go{number}"):
                pass
        self.wfile.write(b"0\r\n\r\n")
    def upgrade(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        while data := self.connection.recv(65536):
            self.connection.sendall(data.upper())
        self.close_connection = True
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer(("", port), Handler).serve_forever()
"""
#: A busy machine may take seconds for an answer; that does not make the pod unready.
PROBE = {
    "readiness": {"periodSeconds": 1, "timeoutSeconds": 30, "handler": {"httpGet": {"path": "/ready", "port": 8080}}}
}


def start_web(server: Server, folder: Path, name: str, port: int = 8080, **spec: Any) -> str:
    """Run the web server as a training; returns the workload's id once it is ready."""
    workload = submit_web(server, folder, name, port, **spec)
    server.until_phase(workload, "Running")
    return workload


def submit_web(server: Server, folder: Path, name: str, port: int = 8080, **spec: Any) -> str:
    folder.mkdir(exist_ok=True)
    program = folder / "web.py"
    program.write_text(PROGRAM)
    probe = json.loads(json.dumps(PROBE))
    probe["readiness"]["handler"]["httpGet"]["port"] = port
    return server.run(name, sys.executable, f"{program} {port} {folder}", **{"probes": probe, **spec})


def exposed(server: Server, workload: str) -> str:
    """The first exposed URL of a workload."""
    connections = server.workload(workload)["externalConnections"]
    return str(next(each["url"] for each in connections if each["connectionType"] == "ExternalUrl"))


def fetch(url: str, path: str = "", method: str = "GET", body: Any = None, **headers: str) -> Answer:
    """Ask an exposed URL, wherever its host's name may lead on this machine."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection("127.0.0.1", where.port, timeout=120)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, where.path.rstrip("/") + (path or "/"), body, {"Host": where.netloc, **named})
        response = connection.getresponse()
        answer = Answer(response.status, response.read(), dict(response.headers))
        answer.headers["all-cookies"] = "\n".join(response.headers.get_all("set-cookie") or ())
        return answer
    finally:
        connection.close()


def ask_access(server: Server, url: str, method: str = "GET", **headers: str) -> Answer:
    """What the server says of a request to an exposed URL that reaches an ingress controller."""
    where = urlsplit(url)
    place = f"{where.hostname}{where.path.rstrip('/')}"
    described = {"X_Original_URL": f"{url}index?a=b", "X_Original_Method": method}
    return fetch(server.url, f"/url-access?url={place}", **described, **headers)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def log_in(server: Server, email: str, groups: tuple[str, ...] = ()) -> str:
    """A new user in these groups; their access token."""
    made = server.call("POST", "/api/v1/users", {"email": email})
    assert made.status == 201, made
    if groups:
        changed = server.call("PATCH", f"/api/v1/users/{made.json['id']}", {"groups": groups})
        assert changed.status == 200, changed
    grant = {"grantType": "password", "username": email, "password": made.json["tempPassword"]}
    answer = server.call("POST", "/api/v1/token", grant)
    assert answer.status == 200, answer
    return str(answer.json["accessToken"])


def open_socket(url: str, path: str = "/", **headers: str) -> tuple[int, socket.socket]:
    """The status of a WebSocket handshake, and the connection."""
    where = urlsplit(url)
    key = base64.b64encode(os.urandom(16)).decode()
    lines = [f"GET {path} HTTP/1.1", f"Host: {where.netloc}", "Upgrade: websocket", "Connection: Upgrade"]
    lines += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", *(f"{k}: {v}" for k, v in headers.items())]
    connected = socket.create_connection(("127.0.0.1", where.port), 120)
    connected.sendall("\r\n".join([*lines, "", ""]).encode())
    head = b""
    while b"\r\n\r\n" not in head:
        piece = connected.recv(1)
        if not piece:
            break
        head += piece
    status = int(head.split()[1])
    if status == 101:
        digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        assert base64.b64encode(digest) in head
    return status, connected
