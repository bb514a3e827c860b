"""A server that plays a busy installation to the page: ten thousand workloads, changes at any rate, a long log.

No real server changes that fast on one machine, and only the page is measured with it. It has the built page and the
few operations that the list and the log ask for.
"""

import http.server
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import fairlead

PAGE = Path(fairlead.__file__).parent / "web"
PHASES = ("Pending", "Running", "Completed", "Failed")
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
LOG_LINES = 100_000
CLUSTER = "00000000-0000-4000-8000-00000000000c"


def workload(number: int, version: int = 0) -> dict[str, Any]:
    phase = PHASES[(number + version) % len(PHASES)]
    return {
        "id": f"00000000-0000-4000-8000-{number:012d}",
        "name": f"workload-{number}",
        "type": "Training",
        "phase": phase,
        "phaseMessage": f"Waiting for {number % 8 + 1} GPUs: all 8 GPUs on node-{number % 64} are in use ({version})",
        "projectName": f"team-{number % 20}",
        "clusterId": CLUSTER,
        "submittedBy": f"person-{number % 50}@lab.example",
        "createdAt": "2026-01-01T00:00:00Z",
        "phaseUpdatedAt": "2026-01-01T00:00:00Z",
        "deletedAt": None,
        "totalPendingTimeSeconds": number % 900,
        "workloadRequestedResources": {"gpu": {"request": number % 8 + 1}},
        "allocatedResources": {"gpu": number % 8 + 1 if phase == "Running" else 0},
    }


class PlayedApi:
    """Use it as a context manager. `send_changes` makes it tell of changes while a page is open."""

    def __init__(self, workloads: int) -> None:
        self.workloads = workloads
        #: How many streams were opened.
        self.streams = 0
        self._wanted = threading.Event()
        self._rate = 0.0
        self._count = 0
        self.sent = threading.Event()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "PlayedApi":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._wanted.set()
        self._server.shutdown()
        self._server.server_close()

    def send_changes(self, count: int, rate: float) -> None:
        """Tell the page of so many changes, so many each second; `sent` is set afterwards."""
        self._count, self._rate = count, rate
        self.sent.clear()
        self._wanted.set()

    def _watch(self) -> Iterator[bytes]:
        self.streams += 1
        yield b": watching\n\n"
        revision = 1
        while self._wanted.wait():
            self._wanted.clear()
            began = time.monotonic()
            for number in range(self._count):
                revision += 1
                changed = workload(number * 7 % self.workloads, revision)
                data = json.dumps({"workloadId": changed["id"], "workload": changed})
                yield f"id: {revision}\nevent: workload\ndata: {data}\n\n".encode()
                ahead = number / self._rate - (time.monotonic() - began)
                if ahead > 0:
                    time.sleep(ahead)
            self.sent.set()

    def _list(self, query: dict[str, list[str]]) -> dict[str, Any]:
        first, limit = int(query["offset"][0]), int(query["limit"][0])
        return {"workloads": [workload(number) for number in range(first, min(first + limit, self.workloads))]}

    def _answer(self, path: str, query: dict[str, list[str]]) -> Any:
        if path == "/api/v1/session":
            return {"username": "ada", "isAdministrator": False, "csrfToken": "x", "permissions": []}
        if path == "/api/v1/workloads":
            return self._list(query)
        if path == "/api/v1/clusters":
            return [{"uuid": CLUSTER, "name": "default", "engine": "local"}]
        if path.endswith("/pods"):
            return {"pods": []}
        if path.endswith("/estimate"):
            return {"status": "unknown", "message": "Nobody knows"}
        return workload(0) if path.startswith("/api/v1/workloads/") else None

    def _handler(played) -> type[http.server.BaseHTTPRequestHandler]:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = urlsplit(self.path)
                if asked.path.startswith("/ui/"):
                    self._send_file(asked.path.removeprefix("/ui/"))
                elif asked.path.endswith("/watch"):
                    self._start("text/event-stream")
                    for piece in played._watch():
                        self.wfile.write(piece)
                elif asked.path.endswith("/logs"):
                    self._start("text/plain")
                    for number in range(LOG_LINES):
                        self.wfile.write(f"\x1b[32mstep {number}\x1b[0m loss={number / 7:.4f} lr=0.0003\n".encode())
                else:
                    self._send_json(played._answer(asked.path, parse_qs(asked.query)))

            def _start(self, kind: str, status: int = 200, **headers: str) -> None:
                self.send_response(status)
                for name, value in {"content-type": kind, **headers}.items():
                    self.send_header(name, value)
                self.end_headers()

            def _send_json(self, answer: Any) -> None:
                status = 404 if answer is None else 200
                self._start("application/json", status, **{"x-fairlead-revision": "1"})
                self.wfile.write(json.dumps(answer or {"message": "not played"}).encode())

            def _send_file(self, name: str) -> None:
                file = PAGE / name if name and (PAGE / name).is_file() else PAGE / "index.html"
                self._start(TYPES.get(file.suffix, "application/octet-stream"))
                self.wfile.write(file.read_bytes())

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except (BrokenPipeError, ConnectionResetError):
                    # The page has gone on.
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                """A bench prints its table only."""

        return Handler
