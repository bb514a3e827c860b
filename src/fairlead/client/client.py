"""The client of a Fairlead server: log in, submit, read, follow, wait.

The command line and users' scripts use it. Answers are the server's JSON as plain dicts and lists; failures are the
exceptions of `fairlead.client.errors`. It imports nothing from the server.
"""

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from fairlead.client.connection import MACHINES_OWN, Connection, Response, Trust, read_address
from fairlead.client.duplex import Duplex
from fairlead.client.errors import NotLoggedIn, ServerError, TimedOut, Unreachable, read_error
from fairlead.client.json_object import Json
from fairlead.client.kinds import KindEntry, load_kinds
from fairlead.client.streams import Deadline, Stream, Watch
from fairlead.client.tokens import Credentials, Token, TokenFile, read_token, renewal

#: The type of query parameters; lists are joined by commas, None is omitted.
QueryValue = str | int | bool | Sequence[str] | None

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
#: The final phases.
ENDED = ("Completed", "Failed")
#: The maximum size of a page.
_PAGE = 500


def quote(text: str) -> str:
    """Percent-encode a path segment or a query value."""
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in text.encode())


class Client:
    """A client of one server. `credentials` are used if there is no token, or if the server no longer accepts it."""

    def __init__(
        self,
        url: str,
        *,
        credentials: Credentials | None = None,
        token: str | None = None,
        cache: TokenFile | None = None,
        timeout: float = 30.0,
        trust: Trust = MACHINES_OWN,
    ) -> None:
        self.url = url.rstrip("/")
        self._address = read_address(self.url)
        self._timeout = timeout
        self._trust = trust
        self._connection = Connection(self._address, timeout, trust)
        self._credentials = credentials
        self._cache = cache
        self._token = Token(token) if token else None
        self._kinds: dict[str, KindEntry] | None = None
        #: The version that the server reported last, if any.
        self.server_version: str | None = None
        #: Called with every request and its status, if set.
        self.trace: Callable[[str], None] | None = None

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    # --- Logging in

    def log_in(self, credentials: Credentials) -> Token:
        """Get a token and store it in this client and in its cache."""
        answer = self._exchange("POST", "/api/v1/token", json.dumps(credentials.request()).encode(), token=None)
        token = read_token(_read_json(answer), time.time())
        if not token.access:
            raise NotLoggedIn(f"{self.url} did not return a token.")
        self._keep(token)
        return token

    def log_out(self) -> None:
        """Drop the token, here and in the cache."""
        self._keep(None)

    def token(self) -> str:
        """A valid token: the present one, the cached one, a renewed or a new one."""
        now = time.time()
        if self._token is None and self._cache is not None:
            self._token = self._cache.load(self.url)
        known = self._token
        if known is not None and known.is_fresh(now):
            return known.access
        if self._credentials is not None:
            return self.log_in(self._credentials).access
        if known is not None and known.refresh:
            return self.log_in(renewal(known.refresh)).access
        # Check first that a server answers: logging in to a wrong address would not help.
        self._exchange("GET", "/healthz", None, token=None)
        raise NotLoggedIn(f"You are not logged in to {self.url}.")

    def _keep(self, token: Token | None) -> None:
        self._token = token
        if self._cache is not None:
            self._cache.record(self.url, token)

    # --- Requests

    def request(self, method: str, path: str, body: Any = None, **query: QueryValue) -> Any:
        """Send one request to the REST API and return the JSON of its answer."""
        payload = None if body is None else json.dumps(body).encode()
        return _read_json(self._authorized(method, path + render_query(query), payload))

    def send(self, method: str, path: str, payload: bytes) -> Any:
        """Like `request`, with a body that is JSON text already."""
        return _read_json(self._authorized(method, path, payload))

    def stream(self, path: str, **query: QueryValue) -> Stream:
        """A GET whose answer is a stream. It has its own connection, so that other requests can be made meanwhile."""
        connection = Connection(self._address, self._timeout, self._trust)
        response = self._authorized("GET", path + render_query(query), None, connection)
        connection.wait_at_most(None)
        return Stream(connection, response)

    def duplex(self, path: str, query: str) -> Duplex:
        """A POST whose body and answer are streams at the same time; `query` is rendered already."""
        headers = {"User-Agent": "fairlead-client", "Content-Type": "application/octet-stream"}
        headers["Authorization"] = f"Bearer {self.token()}"
        connection = Connection(self._address, self._timeout, self._trust)
        return Duplex(*connection.open_duplex(f"{path}?{query}", headers))

    def _authorized(
        self, method: str, target: str, payload: bytes | None, connection: Connection | None = None
    ) -> Response:
        try:
            return self._exchange(method, target, payload, self.token(), connection)
        except ServerError as error:
            if error.status != 401:
                raise
            # A cached token may outlive the server's signing key; with credentials, get a new one.
            known = self._token
            self._keep(None)
            credentials = self._credentials or (renewal(known.refresh) if known and known.refresh else None)
            if credentials is None:
                raise NotLoggedIn(f"{self.url} does not accept your token: {error.message}") from error
            return self._exchange(method, target, payload, self.log_in(credentials).access, connection)

    def _exchange(
        self, method: str, target: str, payload: bytes | None, token: str | None, connection: Connection | None = None
    ) -> Response:
        headers = {"Accept": "application/json, text/event-stream, text/plain", "User-Agent": "fairlead-client"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if payload is not None:
            headers["Content-Type"] = "application/json"
        response = (connection or self._connection).send(method, target, headers, payload)
        if self.trace is not None:
            self.trace(f"{method} {target} {response.status} {response.headers.get('x-request-id', '')}")
        self.server_version = response.headers.get("x-fairlead-version", self.server_version)
        if response.status >= 400:
            raise read_error(response.status, _read_loosely(response))
        return response

    # --- Workloads of every kind

    def kind(self, key: str) -> "KindClient":
        """The verbs for workloads of one kind."""
        if self._kinds is None:
            self._kinds = load_kinds()
        return KindClient(self, self._kinds[key])

    def __getattr__(self, name: str) -> "KindClient":
        """Kinds by their REST name, so that scripts may write `client.trainings.submit(…)`."""
        for entry in load_kinds().values():
            if entry.rest.replace("-", "_") == name:
                return KindClient(self, entry)
        raise AttributeError(f"Client has no attribute '{name}'")

    def workloads(self, **query: QueryValue) -> Json:
        """One page of workloads. The query is that of REST: filterBy, sortBy, sortOrder, offset, limit, search …"""
        page: Json = self.request("GET", "/api/v1/workloads", **query)
        return page

    def all_workloads(self, **query: QueryValue) -> Iterator[Json]:
        """All workloads that match the query, page by page."""
        yield from self._all("/api/v1/workloads", "workloads", query)

    def count_workloads(self, **query: QueryValue) -> int:
        return int(self.request("GET", "/api/v1/workloads/count", **query)["count"])

    def workload(self, workload_id: str) -> Json:
        workload: Json = self.request("GET", f"/api/v1/workloads/{quote(workload_id)}")
        return workload

    def pods(self, workload_id: str) -> list[Json]:
        return list(self._all(f"/api/v1/workloads/{quote(workload_id)}/pods", "pods", {}))

    def events(self, workload_id: str, **query: QueryValue) -> list[Json]:
        events: list[Json] = self.request("GET", f"/api/v1/workloads/{quote(workload_id)}/events", **query)["events"]
        return events

    def history(self, workload_id: str) -> list[Json]:
        return list(self._all(f"/api/v1/workloads/{quote(workload_id)}/history", "records", {}))

    def explanation(self, workload_id: str, **query: QueryValue) -> Json:
        """Why the workload is in its phase: what it waits for, who uses that, where its values come from."""
        explanation: Json = self.request("GET", f"/api/v1/workloads/{quote(workload_id)}/explanation", **query)
        return explanation

    def written(self, workload_id: str, dialect: str) -> str:
        """The workload as `yaml`, as a `command` line or as the `rest` request that would create it again."""
        path = f"/api/v1/workloads/{quote(workload_id)}/as/{quote(dialect)}"
        return self._authorized("GET", path, None).read().decode()

    def snapshot(self) -> bytes:
        """The snapshot that the scheduler would use now, as JSON text."""
        return self._authorized("GET", "/api/v1/scheduling/snapshot", None).read()

    def logs(self, workload_id: str, **query: QueryValue) -> Iterator[bytes]:
        """Stream the output of a pod; the query says which pod, how much of it and whether to follow."""
        return self.stream(f"/api/v1/workloads/{quote(workload_id)}/logs", **query).pieces()

    def watch(self, **query: QueryValue) -> Watch:
        """Stream changes of workloads: from now on, or after a given `revision`."""
        return Watch(self.stream("/api/v1/workloads/watch", **query))

    def changes(self, workload_id: str, timeout: float | None = None) -> Iterator[Json]:
        """Yield the workload now and whenever it changes; raises TimedOut after the timeout.

        The watch starts before the first read, so that no change is missed in between. A workload that is
        purged meanwhile is yielded once more, with `deletedAt`.
        """
        deadline = Deadline(timeout)
        watch = self.watch()
        try:
            workload = self.workload(workload_id)
            yield workload
            for change in watch.changes(deadline.left):
                if change is not None and change["workloadId"] == workload_id:
                    workload = change["workload"] or {
                        **workload,
                        "phase": "Deleting",
                        "deletedAt": workload["updatedAt"],
                    }
                    yield workload
                if deadline.is_over():
                    raise TimedOut(_timeout_message(workload))
        except TimedOut as error:
            raise TimedOut(_timeout_message(workload)) from error
        finally:
            watch.close()
        raise Unreachable("The server closed the stream of changes, probably because it stops.")

    def wait(self, workload_id: str, phases: Collection[str], timeout: float | None = None) -> Json:
        """Wait until the workload is in one of the phases or has ended; returns the workload."""
        for workload in self.changes(workload_id, timeout):
            if workload["phase"] in phases or workload["phase"] in ENDED or workload.get("deletedAt"):
                return workload
        raise Unreachable("The server closed the stream of changes.")

    # --- Organization and nodes

    def projects(self, **query: QueryValue) -> list[Json]:
        return list(self._all("/api/v1/org-unit/projects", "projects", query))

    def departments(self, **query: QueryValue) -> list[Json]:
        return list(self._all("/api/v1/org-unit/departments", "departments", query))

    def clusters(self) -> list[Json]:
        clusters: list[Json] = self.request("GET", "/api/v1/clusters")
        return clusters

    def nodes(self, **query: QueryValue) -> list[Json]:
        nodes: list[Json] = self.request("GET", "/api/v1/nodes", **query)["nodes"]
        return nodes

    def node_pools(self, **query: QueryValue) -> list[Json]:
        pools: list[Json] = self.request("GET", "/api/v1/node-pools", **query)["nodepools"]
        return pools

    def workload_types(self) -> list[Json]:
        types: list[Json] = self.request("GET", "/api/v1/workload-types")["types"]
        return types

    def _all(self, path: str, member: str, query: Mapping[str, QueryValue]) -> Iterator[Json]:
        offset: int | None = 0
        while offset is not None:
            page = self.request("GET", path, **{"limit": _PAGE, **query, "offset": offset})
            yield from page[member]
            offset = page.get("next")


def _timeout_message(workload: Json) -> str:
    return f"{workload['name']} is {workload['phase']}. {workload.get('phaseMessage') or ''}".rstrip()


class KindClient:
    """Workloads of one kind: the verbs of its REST path."""

    def __init__(self, client: Client, entry: KindEntry) -> None:
        self._client = client
        self._path = f"/api/v1/workloads/{entry.rest}"
        self.entry = entry

    def submit(self, body: Mapping[str, Any] | bytes, *, origin: str = "", must_fit: bool = False) -> Json:
        """Submit a creation request, given as a dict or as JSON text; returns the new workload.

        `origin` is the kind of object that it was written as, if it is not this one. With `must_fit`, the server
        refuses what could not start even if all nodes were empty.
        """
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        workload: Json = self._client.send(
            "POST", self._path + render_query({"origin": origin or None, "mustFit": must_fit or None}), payload
        )
        return workload

    def dry_run(self, body: Mapping[str, Any]) -> Json:
        """What a creation request would create, with its template applied; nothing is created."""
        workload: Json = self._client.send("POST", f"{self._path}?dryRun=true", json.dumps(body).encode())
        return workload

    def get(self, workload_id: str) -> Json:
        workload: Json = self._client.request("GET", f"{self._path}/{quote(workload_id)}")
        return workload

    def delete(self, workload_id: str) -> Json:
        answer: Json = self._client.request("DELETE", f"{self._path}/{quote(workload_id)}")
        return answer

    def update(self, workload_id: str, spec: Json) -> Json:
        """Change members of the spec of a running workload, if its kind allows it."""
        workload: Json = self._client.request("PATCH", f"{self._path}/{quote(workload_id)}", {"spec": spec})
        return workload

    def suspend(self, workload_id: str) -> Json:
        answer: Json = self._client.request("POST", f"{self._path}/{quote(workload_id)}/suspend")
        return answer

    def resume(self, workload_id: str) -> Json:
        answer: Json = self._client.request("POST", f"{self._path}/{quote(workload_id)}/resume")
        return answer


def render_query(query: Mapping[str, QueryValue]) -> str:
    """The query part of a URL; commas inside list items are encoded, commas between items are not."""
    parts = []
    for name, value in query.items():
        if value is None or value == [] or value == ():
            continue
        if isinstance(value, bool):
            text = "true" if value else "false"
        elif isinstance(value, str | int):
            text = quote(str(value))
        else:
            text = ",".join(quote(item) for item in value)
        parts.append(f"{name}={text}")
    return "?" + "&".join(parts) if parts else ""


def _read_json(response: Response) -> Any:
    content = response.read()
    try:
        return json.loads(content) if content else None
    except ValueError as error:
        raise ServerError(
            response.status, "The answer is not JSON. Is this the address of a Fairlead server?"
        ) from error


def _read_loosely(response: Response) -> object:
    content = response.read()
    try:
        return json.loads(content)
    except ValueError:
        return content.decode("utf-8", "replace")
