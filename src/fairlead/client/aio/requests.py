"""Authorized requests to one server: logging in, tokens, connections. The client's other methods are built on it."""

import json
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any, Self, TypeVar

from fairlead.client.access.discovery import ServerAccess, Surroundings, find_server
from fairlead.client.access.tokens import Credentials, Token, read_token, renewal
from fairlead.client.access.urls import QueryValue, Trust, read_address, render_query
from fairlead.client.aio.connection import AsyncConnection, AsyncResponse
from fairlead.client.aio.streams import AsyncStream
from fairlead.client.errors import NotLoggedIn, ServerError, read_error
from fairlead.client.json_object import Json, read_json, read_loosely

T = TypeVar("T")
#: The most idle connections that are kept.
_IDLE = 8


class AsyncRequests:
    """Requests to one server, with the login that they need. Several tasks or threads can use it."""

    def __init__(
        self,
        server: str | ServerAccess | None = None,
        *,
        credentials: Credentials | None = None,
        token: str | None = None,
        project: str | None = None,
        timeout: float = 30.0,
        trust: Trust | None = None,
    ) -> None:
        if server is None:
            server = find_server(Surroundings(os.environ, os.getcwd()))
        access = ServerAccess(server) if isinstance(server, str) else server
        self.url = access.url.rstrip("/")
        self.address = read_address(self.url)
        self.timeout = timeout
        self.trust = trust or access.trust
        self._idle: list[AsyncConnection] = []
        self._credentials = credentials or access.credentials
        self._cache = None if credentials else access.cache
        known = token or (None if credentials else access.token)
        self._token = Token(known) if known else None
        #: The default project, by name or id.
        self.default_project = project or access.project
        #: Whether it is this machine's own server that runs every job as its owner.
        self.is_personal = access.is_personal
        #: Projects that were looked up, by the name or id that was asked for.
        self._projects: dict[str | None, Json] = {}
        #: The version that the server reported last, if any.
        self.server_version: str | None = None
        #: Called with every request and its status, if set.
        self.trace: Callable[[str], None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.url}>"

    # --- Logging in

    async def log_in(self, credentials: Credentials) -> Token:
        """Get a token and store it in this client and in its cache. Raises NotLoggedIn for wrong credentials."""
        payload = json.dumps(credentials.request()).encode()
        try:
            answer = read_json(*await self._exchange("POST", "/api/v1/token", payload, token=None))
        except ServerError as error:
            if error.status in (400, 401):
                raise NotLoggedIn(error.details or error.message) from error
            raise
        return self.store_token(answer)

    def store_token(self, answer: object) -> Token:
        """Store the token of an answer in this client and in its cache."""
        token = read_token(answer if isinstance(answer, dict) else {}, time.time())
        if not token.access:
            raise NotLoggedIn(f"{self.url} did not return a token.")
        self._keep(token)
        return token

    def log_out(self) -> None:
        """Drop the token, here and in the cache."""
        self._keep(None)

    async def token(self) -> str:
        """A valid token: the present one, the cached one, a renewed or a new one."""
        now = time.time()
        if self._token is None and self._cache is not None:
            self._token = self._cache.load(self.url)
        known = self._token
        if known is not None and known.is_fresh(now):
            return known.access
        if self._credentials is not None:
            return (await self.log_in(self._credentials)).access
        if known is not None and known.refresh:
            return (await self.log_in(renewal(known.refresh))).access
        # Check first that a server answers: logging in to a wrong address would not help.
        await self._exchange("GET", "/healthz", None, token=None)
        raise NotLoggedIn(f"You are not logged in to {self.url}.")

    def _keep(self, token: Token | None) -> None:
        self._token = token
        if self._cache is not None:
            self._cache.record(self.url, token)

    # --- Requests

    async def request(self, method: str, path: str, body: object = None, **query: QueryValue) -> Any:
        """Send one request to the REST API and return the JSON of its answer."""
        payload = None if body is None else json.dumps(body).encode()
        return await self.send(method, path + render_query(query), payload)

    async def request_without_login(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Send a request without a token; returns the status and the JSON of the answer."""
        payload = None if body is None else json.dumps(body).encode()
        status, content = await self._exchange(method, path, payload, token=None)
        return status, read_json(status, content)

    async def send(self, method: str, path: str, payload: bytes | None) -> Any:
        """Like `request`, with a body that is JSON text already."""
        return read_json(*await self.fetch(method, path, payload))

    async def fetch(self, method: str, target: str, payload: bytes | None = None) -> tuple[int, bytes]:
        """Send one request and return the status and the body of its answer."""
        return await self._authorized(lambda token: self._exchange(method, target, payload, token))

    async def stream(self, path: str, **query: QueryValue) -> AsyncStream:
        """A GET whose answer is a stream. It has its own connection, so that other requests can be made meanwhile."""
        target = path + render_query(query)
        return await self._authorized(lambda token: self._open_stream(target, token))

    async def _authorized(self, call: Callable[[str], Awaitable[T]]) -> T:
        try:
            return await call(await self.token())
        except ServerError as error:
            if error.status != 401:
                raise
            # A cached token may outlive the server's signing key; with credentials, get a new one.
            known = self._token
            self._keep(None)
            credentials = self._credentials or (renewal(known.refresh) if known and known.refresh else None)
            if credentials is None:
                raise NotLoggedIn(f"{self.url} does not accept your token: {error.message}") from error
            return await call((await self.log_in(credentials)).access)

    async def _exchange(self, method: str, target: str, payload: bytes | None, token: str | None) -> tuple[int, bytes]:
        connection = self._take_connection()
        is_reusable = False
        try:
            response = await self._send(connection, method, target, payload, token)
            body = await response.read()
            is_reusable = len(self._idle) < _IDLE
        finally:
            if is_reusable:
                self._idle.append(connection)
            else:
                await connection.close()
        if response.status >= 400:
            raise read_error(response.status, read_loosely(body))
        return response.status, body

    async def _open_stream(self, target: str, token: str) -> AsyncStream:
        connection = self._connection()
        is_open = False
        try:
            response = await self._send(connection, "GET", target, None, token)
            if response.status >= 400:
                raise read_error(response.status, read_loosely(await response.read()))
            is_open = True
        finally:
            if not is_open:
                await connection.close()
        connection.wait_at_most(None)
        return AsyncStream(connection, response)

    def _take_connection(self) -> AsyncConnection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._connection()

    def _connection(self) -> AsyncConnection:
        return AsyncConnection(self.address, self.timeout, self.trust)

    async def _send(
        self, connection: AsyncConnection, method: str, target: str, payload: bytes | None, token: str | None
    ) -> AsyncResponse:
        headers = {"Accept": "application/json, text/event-stream, text/plain", "User-Agent": "fairlead-client"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if payload is not None:
            headers["Content-Type"] = "application/json"
        response = await connection.send(method, target, headers, payload)
        if self.trace is not None:
            self.trace(f"{method} {target} {response.status} {response.headers.get('x-request-id', '')}")
        self.server_version = response.headers.get("x-fairlead-version", self.server_version)
        return response
