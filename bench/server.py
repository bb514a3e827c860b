"""A server for a bench: started from cold with a data folder of its own, pinned to a core, asked over HTTP, stopped."""

import contextlib
import functools
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

FAIRLEAD = Path(sys.executable).parent / "fairlead"
DEADLINE_SECONDS = 120.0
#: The server closes connections that were idle for five seconds; ours is opened anew before that.
KEPT_ALIVE_SECONDS = 3.0


class Server:
    """A running `fairlead serve`; `ready_after` is the time from its start to its first answer to /readyz."""

    def __init__(self, data: Path, arguments: Sequence[str] = (), cores: set[int] | None = None) -> None:
        self.data = data
        data.mkdir(parents=True, exist_ok=True)
        record = data / "server.json"
        record.unlink(missing_ok=True)
        command = [str(FAIRLEAD), "serve", "--data-dir", str(data), "--port", "0", *arguments]
        self.log = (data / "bench.log").open("ab")
        began = time.perf_counter()
        # Pinned by a program in between, so that the server has its core from its first instruction.
        pinned = ["taskset", "--cpu-list", ",".join(map(str, cores))] if cores else []
        self.process = subprocess.Popen([*pinned, *command], stdout=self.log, stderr=self.log)
        wait_until(lambda: self._is_ready(record), every=0.002)
        self.ready_after = time.perf_counter() - began
        self.credentials = json.loads((data / "credentials.json").read_text())
        self.used_at = time.monotonic()
        self.token = self._sign_in()

    def _is_ready(self, record: Path) -> bool:
        if self.process.poll() is not None:
            raise SystemExit(f"the server ended with {self.process.returncode}; see {self.data / 'bench.log'}")
        try:
            url = json.loads(record.read_text())["url"]
        except (FileNotFoundError, ValueError):
            return False
        self.host, port = url.split("//", 1)[1].rstrip("/").rsplit(":", 1)
        self.port = int(port)
        self.connection = http.client.HTTPConnection(self.host, self.port, timeout=DEADLINE_SECONDS)
        with contextlib.suppress(OSError):
            self.connection.request("GET", "/readyz")
            return self._answer()[0] == 200
        return False

    def _answer(self) -> tuple[int, bytes]:
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def _sign_in(self) -> str:
        keys = {"clientId": "clientId", "clientSecret": "clientSecret"}
        body = {"grantType": "client_credentials", **{key: self.credentials[key] for key in keys}}
        self.connection.request("POST", "/api/v1/token", json.dumps(body), {"Content-Type": "application/json"})
        status, content = self._answer()
        if status != 200:
            raise SystemExit(f"signing in answered {status}: {content.decode()}")
        return str(json.loads(content)["accessToken"])

    def call(self, method: str, path: str, body: object = None, accepts: tuple[int, ...] = ()) -> Any:
        """The decoded answer; anything but a success, or an accepted status, ends the bench."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        if time.monotonic() - self.used_at > KEPT_ALIVE_SECONDS:
            self.connection.close()
        self.used_at = time.monotonic()
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)
        status, content = self._answer()
        if status >= 300 and status not in accepts:
            raise SystemExit(f"{method} {path} answered {status}: {content.decode()}")
        return json.loads(content) if content.startswith((b"{", b"[")) else content

    @functools.cached_property
    def project_id(self) -> str:
        return str(self.call("GET", "/api/v1/org-unit/projects")["projects"][0]["id"])

    def submission(self, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        """The body of a training that runs on this machine."""
        return {
            "name": name,
            "projectId": self.project_id,
            "clusterId": self.credentials["clusterId"],
            "spec": {"image": "bench", **spec},
        }

    def stop(self) -> None:
        self.connection.close()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(DEADLINE_SECONDS)
        self.log.close()

    def family(self) -> list[int]:
        """The server and what it left running below its data folder: the fork server and its supervisors."""
        return [self.process.pid, *(pid for pid in find_processes(self.data) if pid != self.process.pid)]


@contextlib.contextmanager
def serving(data: Path, arguments: Sequence[str] = (), cores: set[int] | None = None) -> Iterator[Server]:
    server = Server(data, arguments, cores)
    try:
        yield server
    finally:
        server.stop()
        # The fork server ends by itself once neither a server nor a pod is left; the next round must not meet it.
        wait_until(lambda: not find_processes(data))


def delete_workloads(server: Server) -> None:
    """Delete every training, and wait until none is listed; those that are being deleted are listed too."""
    ids: list[str] = []
    while found := server.call("GET", f"/api/v1/workloads?limit=500&offset={len(ids)}")["workloads"]:
        ids += [one["id"] for one in found]
    for id in ids:
        server.call("DELETE", f"/api/v1/workloads/trainings/{id}", accepts=(404,))
    wait_until(lambda: not server.call("GET", "/api/v1/workloads/count")["count"], every=1, deadline=1800)


def wait_until(is_true: Callable[[], bool], every: float = 0.01, deadline: float = DEADLINE_SECONDS) -> None:
    end = time.monotonic() + deadline
    while not is_true():
        if time.monotonic() > end:
            raise SystemExit(f"waited {deadline:.0f} s for something that did not happen")
        time.sleep(every)


def find_processes(folder: Path) -> list[int]:
    """Processes that have the folder, or something in it, as a word of their command line."""
    whole, inside = str(folder).encode(), f"{folder}/".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if any(word == whole or word.startswith(inside) for word in words):
                    found.append(int(entry.name))
    return found


def memory_of(pids: Sequence[int]) -> float:
    """Proportional set size in MB, summed; a process that ends meanwhile weighs nothing."""
    total = 0
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total / 1024
