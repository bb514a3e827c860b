"""A real API server for tests: uvicorn on loopback and SQLite, in a thread; no loop runs, so records stay as put."""

import asyncio
import http.client
import itertools
import json
import socket
import ssl
import threading
import uuid
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import uvicorn

from fairlead.api.application import RequestSettings, make_application
from fairlead.api.http.connection_limits import ConnectionLimits
from fairlead.api.server.connections import make_protocol
from fairlead.control.bootstrap import ensure_defaults
from fairlead.control.context import Context, ControlSettings
from fairlead.control.directory import Directory
from fairlead.control.people.authentication import AccountCredentials, Authenticator, ensure_accounts
from fairlead.control.people.sign_on.settings import SignOnSettings
from fairlead.control.people.sign_on.sign_on import make_sign_on
from fairlead.control.people.tokens import load_signer
from fairlead.engines.base import ExecRequest, LogRequest, Session
from fairlead.engines.kubernetes.render.workload import render_spec
from fairlead.model.errors import NotFound
from fairlead.model.records.event import Event
from fairlead.model.records.organization import Node
from fairlead.model.records.workload import Pod, Workload
from fairlead.store.base import Change, Put
from fairlead.store.collections import NODES, PODS, WORKLOADS
from fairlead.store.sqlite import open_sqlite

T = TypeVar("T")
START = 1_700_000_000_000


class FixedClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


class RecordedOutput:
    """Sessions that know what each pod wrote, and remember what they were asked."""

    def __init__(self) -> None:
        self.output: dict[str, list[bytes]] = {}
        self.asked: list[LogRequest] = []

    async def logs(self, request: LogRequest) -> AsyncIterator[bytes]:
        self.asked.append(request)
        for piece in self.output.get(request.pod_id, []):
            yield piece

    async def exec(self, request: ExecRequest) -> Session:
        raise NotFound(f"nothing runs in {request.pod_id}")

    async def attach(self, pod_id: str, *, from_start: bool = False) -> Session:
        raise NotFound(f"nothing runs in {pod_id}")

    async def dial(self, pod_id: str, port: int) -> int:
        raise NotFound(f"nothing listens in {pod_id}")


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self._headers = response.getheaders()
        self.headers = {name.lower(): value for name, value in self._headers}
        self.body = response.read()

    def all_headers(self, name: str) -> list[str]:
        return [value for given, value in self._headers if given.lower() == name]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def __repr__(self) -> str:
        return f"{self.status} {self.body[:1000]!r}"


def trusting_all() -> ssl.SSLContext:
    """For a server whose certificate is made up."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class ApiServer:
    """One server. Use it as a context manager."""

    def __init__(
        self,
        folder: Path,
        limits: RequestSettings | None = None,
        token_seconds: int = 86_400,
        connections: ConnectionLimits | None = None,
        tls: ssl.SSLContext | None = None,
        sign_on: SignOnSettings | None = None,
    ) -> None:
        self.sign_on = sign_on
        self.folder = folder
        # No server ever takes over here, so no read waits for one.
        self.limits = limits or RequestSettings(takeover_seconds=0)
        self.token_seconds = token_seconds
        self.connections = connections or ConnectionLimits()
        self.tls = tls
        self.clock = FixedClock()
        self.sessions = RecordedOutput()
        self.token = ""
        self.context: Context
        self.credentials: AccountCredentials
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._numbers = itertools.count(1)

    def __enter__(self) -> "ApiServer":
        self._thread.start()
        assert self._started.wait(120), "the server did not start"
        self.token = self.log_in()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(120)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        store = await open_sqlite(self.folder / "fairlead.db")
        self.context = Context(
            render_objects=render_spec,
            store=store,
            clock=self.clock,
            directory=Directory(store),
            sessions=self.sessions,
            settings=ControlSettings(),
            new_id=lambda: str(uuid.uuid4()),
            new_suffix=lambda: f"n{next(self._numbers)}",
        )
        await ensure_defaults(self.context)
        self.cluster_id = self.context.directory.cluster.id
        made = await ensure_accounts(self.context, self.folder, self.cluster_id)
        assert made is not None
        self.credentials = made
        node = Node(id="alpha", name="alpha", cpu_milli=4000, memory_bytes=2**33, created_at=START)
        await store.commit(Change(writes=(Put(NODES, node),)))
        await self.context.directory.load()
        signer = load_signer(self.folder, self.cluster_id, self.clock, self.token_seconds)
        sign_on = make_sign_on(self.context, self.sign_on or SignOnSettings())
        self.authenticator = Authenticator(self.context, signer, sign_on)
        self.application = make_application(self.context, self.authenticator, self.limits)
        self._server = uvicorn.Server(
            uvicorn.Config(
                self.application,
                lifespan="off",
                log_config=None,
                http=make_protocol(self.connections, self.tls),
                timeout_graceful_shutdown=1,
            )
        )
        listener = socket.socket(proto=socket.IPPROTO_TCP)
        listener.bind(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        listener.listen(128)
        self._loop = asyncio.get_running_loop()
        self._started.set()
        try:
            await self._server.serve(sockets=[listener])
        finally:
            listener.close()
            await store.close()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the server's own event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(120)

    def put(self, *records: Workload | Pod, events: tuple[Event, ...] = ()) -> None:
        writes = tuple(Put(WORKLOADS if isinstance(record, Workload) else PODS, record) for record in records)
        self.do(self.context.store.commit(Change(writes=writes, events=events)))

    def log_in(self) -> str:
        body = {
            "grantType": "client_credentials",
            "clientId": self.credentials.client_id,
            "clientSecret": self.credentials.client_secret,
        }
        answer = self.call("POST", "/api/v1/token", body, token="")
        assert answer.status == 200, answer
        return str(answer.json["accessToken"])

    def open(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, token: str | None = None
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Send a request and leave its answer to be read."""
        given = dict(headers or {})
        if token is None:
            token = self.token
        if token:
            given.setdefault("Authorization", f"Bearer {token}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            given.setdefault("Content-Type", "application/json")
        if self.tls is None:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        else:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=120, context=trusting_all())
        connection.request(method, path, body, given)
        return connection, connection.getresponse()

    def call(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, token: str | None = None
    ) -> Answer:
        connection, response = self.open(method, path, body, headers, token)
        try:
            return Answer(response)
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """The JSON of a read that must succeed."""
        answer = self.call("GET", path)
        assert answer.status == 200, answer
        return answer.json

    def training(self, name: str = "train", **members: Any) -> dict[str, Any]:
        body = {"name": name, "projectId": "1", "clusterId": self.cluster_id, "spec": {"image": "python:3"}}
        return body | members

    def submit(self, name: str = "train", **members: Any) -> str:
        answer = self.call("POST", "/api/v1/workloads/trainings", self.training(name, **members))
        assert answer.status == 202, answer
        return str(answer.json["workloadId"])
