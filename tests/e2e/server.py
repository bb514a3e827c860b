"""A real server for tests: `fairlead serve` as a process of its own, with a small HTTP client beside it."""

import contextlib
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from fairlead.client import Client, application

PATIENCE = 120.0
#: Processes of a data folder without pods, beside the server: the fork server and the fork that it keeps ready.
IDLE_PROCESSES = 2


class Answer:
    def __init__(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.status = status
        self.body = body
        self.headers = headers

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def __repr__(self) -> str:
        return f"{self.status} {self.body[:2000]!r}"


def until(condition: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    """Wait until the condition holds, and return what it gave; fail with its last value otherwise."""
    deadline = time.monotonic() + patience
    pause = 0.01
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come about within {patience} s; last seen: {found!r}")
        time.sleep(pause)
        # Whoever takes long needs the processor more than we do.
        pause = min(0.2, pause * 1.1)


class Process(NamedTuple):
    parent: int
    #: Its command line.
    words: list[str]
    #: The pod that it belongs to, by the mark in its environment.
    pod: str


def observe_processes() -> dict[int, Process]:
    """All processes that this user may look into; those that have ended and wait for their parent are left out."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                arguments = (entry / "cmdline").read_text(errors="replace").split("\0")
                variables = (entry / "environ").read_bytes().split(b"\0")
                parent = int((entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
            except OSError:
                continue
            marks = [text.decode() for text in variables if text.startswith(b"FAIRLEAD_ATTEMPT=")]
            pod = marks[0].partition("=")[2].rpartition(".")[0] if marks else ""
            if arguments != [""]:
                found[int(entry.name)] = Process(parent, arguments, pod)
    return found


class Server:
    """One data folder and, while started, the server on it."""

    def __init__(self, data_dir: Path, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self.environment = environment
        self.data_dir = data_dir
        self.arguments = arguments
        self.process: subprocess.Popen[bytes] | None = None
        self.token = ""
        #: Whom a server that speaks TLS is known by.
        self.authority: Path | None = None

    def program(self) -> list[str]:
        """The command `fairlead`; further words follow."""
        return [sys.executable, "-m", "fairlead"]

    def start(self) -> "Server":
        self.data_dir.mkdir(parents=True, exist_ok=True)
        command = ["serve", "--port", "0", "--data-dir", str(self.data_dir), *self.arguments]
        with open(self.data_dir / "stderr.txt", "ab") as errors:
            self.process = subprocess.Popen(
                [*self.program(), *command], stdout=subprocess.DEVNULL, stderr=errors, env=self.environment
            )
        until(self._is_ready, "the server")
        return self

    def _is_ready(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.errors()}")
        try:
            return json.loads((self.data_dir / "server.json").read_bytes())["pid"] == self.process.pid
        except (OSError, ValueError):
            return False

    def errors(self) -> str:
        return (self.data_dir / "stderr.txt").read_text()[-4000:]

    def kill(self, after: float = 0) -> None:
        """End it as a power cut would end the process, now or so many seconds later: no handler runs."""
        assert self.process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(after)
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(PATIENCE)

    def close(self) -> None:
        """Stop it and every process that it left running in its data folder."""
        self.stop()
        for pid in self.leftovers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def leftovers(self) -> list[int]:
        """Processes that belong to this data folder: fork server, supervisors, pods, a server in the background."""
        processes = observe_processes()
        ours = {pid for pid, process in processes.items() if self._owns(process)}
        # Parents have mostly smaller numbers than their children, but not always: look until nothing is added.
        while more := {pid for pid, process in processes.items() if process.parent in ours} - ours:
            ours |= more
        return sorted(ours - {os.getpid(), self.process.pid if self.process else 0})

    def _owns(self, process: "Process") -> bool:
        if f"{self.data_dir}/pods" in process.words:
            return True
        if str(self.data_dir) in process.words and "serve" in process.words:
            return True
        # What a killed supervisor left behind carries the name of its pod, whose output is still here.
        return bool(process.pod) and (self.data_dir / "pods" / "logs" / process.pod).exists()

    @property
    def url(self) -> str:
        return str(json.loads((self.data_dir / "server.json").read_bytes())["url"])

    @property
    def credentials(self) -> dict[str, str]:
        decoded: dict[str, str] = json.loads((self.data_dir / "credentials.json").read_bytes())
        return decoded

    def client(self) -> Client:
        """Our own client, logged in as the administrator."""
        credentials = self.credentials
        return Client(self.url, credentials=application(credentials["clientId"], credentials["clientSecret"]))

    def log_in(self) -> str:
        credentials = self.credentials
        body = {
            "grantType": "client_credentials",
            "clientId": credentials["clientId"],
            "clientSecret": credentials["clientSecret"],
        }
        self.token = ""
        answer = self.call("POST", "/api/v1/token", body)
        assert answer.status == 200, answer
        self.token = answer.json["accessToken"]
        return self.token

    def call(self, method: str, path: str, body: Any = None, patience: float = PATIENCE) -> Answer:
        if not self.token and not path.startswith("/api/v1/token"):
            self.log_in()
        where = urlsplit(self.url)
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=patience)
        if where.scheme == "https":
            tls = ssl.create_default_context(cafile=self.authority)
            connection = http.client.HTTPSConnection(where.hostname or "", where.port, timeout=patience, context=tls)
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        payload = None
        if body is not None:
            payload = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, path, payload, headers)
            response = connection.getresponse()
            return Answer(response.status, response.read(), dict(response.headers))
        finally:
            connection.close()

    def submit(self, name: str, command: str, args: str | None = None, **spec: Any) -> Answer:
        body = {
            "name": name,
            "projectId": "1",
            "clusterId": self.credentials["clusterId"],
            "spec": {"image": "python:3", "command": command} | ({"args": args} if args else {}) | spec,
        }
        return self.call("POST", "/api/v1/workloads/trainings", body)

    def run(self, name: str, command: str, args: str | None = None, **spec: Any) -> str:
        """Submit a training that must be accepted; returns its id."""
        answer = self.submit(name, command, args, **spec)
        assert answer.status == 202, answer
        return str(answer.json["workloadId"])

    def workload(self, workload_id: str) -> dict[str, Any]:
        answer = self.call("GET", f"/api/v1/workloads/{workload_id}")
        assert answer.status == 200, answer
        found: dict[str, Any] = answer.json
        return found

    def phase(self, workload_id: str) -> str:
        return str(self.workload(workload_id)["phase"])

    def message(self, workload_id: str) -> str:
        return str(self.workload(workload_id).get("phaseMessage", ""))

    def until_phase(self, workload_id: str, *phases: str, patience: float = PATIENCE) -> dict[str, Any]:
        seen: dict[str, Any] = {}

        def is_there() -> bool:
            nonlocal seen
            seen = self.workload(workload_id)
            return seen["phase"] in phases

        try:
            until(is_there, f"phase {' or '.join(phases)} of {workload_id}", patience)
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {seen['phase']}: {seen.get('phaseMessage')}") from error
        return seen

    def logs(self, workload_id: str, query: str = "") -> str:
        answer = self.call("GET", f"/api/v1/workloads/{workload_id}/logs{query}")
        assert answer.status == 200, answer
        return answer.body.decode()

    def history(self, workload_id: str) -> list[str]:
        """The phases that it went through, in order."""
        answer = self.call("GET", f"/api/v1/workloads/{workload_id}/history?limit=500")
        assert answer.status == 200, answer
        records = answer.json["records"]
        records.sort(key=lambda record: record["meta"]["creationTimestamp"])
        return [r["spec"]["phaseUpdate"]["phase"] for r in records if r["meta"]["type"] == "PhaseUpdate"]
