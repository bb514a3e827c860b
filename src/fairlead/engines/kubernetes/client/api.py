"""Requests to the Kubernetes API: JSON, streams for watches and logs, upgrades for sessions.

Every request of the engine may be sent twice without harm. So a broken connection, an overloaded server (429) and a
restarting server (5xx) are retried here with growing pauses, until the caller's patience is over.

Why not a library: see "Talking to the API server" in docs/designs/0006-kubernetes-engine.md, with measurements.
"""

import asyncio
import logging
import math
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar
from urllib.parse import quote, urlencode

import msgspec

from fairlead.engines.kubernetes.client.connection import Answer, ApiConnection, ServerPlace, connect, render_head
from fairlead.engines.kubernetes.client.identity import ApiIdentity
from fairlead.engines.kubernetes.client.kubeconfig import Access

log = logging.getLogger(__name__)

Result = TypeVar("Result")
#: Connections that are kept for the next request, and requests at the same time.
_KEPT, _AT_ONCE = 16, 16
_CONNECT_SECONDS = 10.0
#: Seconds that one try may take.
_TRY_SECONDS = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
#: Seconds until the next try if credentials cannot be renewed, and between two tries after refusals.
_RENEW_SECONDS, _REFUSED_SECONDS = 10.0, 1.0
_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
#: How the message begins if an applied object contradicts itself. The status is 500, and would stay so.
_CONTRADICTION = "failed to create typed patch object"
JSON, APPLY, MERGE = "application/json", "application/apply-patch+yaml", "application/merge-patch+json"


class ApiError(Exception):
    """The API server refused: HTTP status, reason and message."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message


class CredentialsRefused(ConnectionError):
    """401, also with renewed credentials. As bad as no answer: nothing is known, and a later try may succeed."""


class _Status(msgspec.Struct):
    message: str = ""
    reason: str = ""


class Api:
    def __init__(self, access: Access, patience: float = 60.0) -> None:
        """A request is retried for at most `patience` seconds."""
        self._access = access
        self._patience = patience
        self._idle: list[ApiConnection] = []
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._place = ServerPlace(access.host, access.port, access.name, access.proxy)
        self._identity: ApiIdentity | None = None
        self._identity_until = 0.0
        self._identity_since = -math.inf
        self._renewal_failure = ""
        self._renewing = asyncio.Lock()
        #: Why the API server does not answer; empty while it does.
        self.unreachable_reason = ""
        #: Called when that changes.
        self.notify_away: Callable[[], None] = _ignore

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        content: str = JSON,
        is_exact: bool = False,
    ) -> bytes:
        """One request, retried if necessary; raises ApiError, or OSError if the API server does not answer.

        An applied object does not depend on a version unless it `is_exact`: a conflict only means that somebody else
        was faster.
        """
        data = b"" if body is None else msgspec.json.encode(body)
        now = asyncio.get_running_loop().time
        give_up = now() + self._patience
        pause = _FIRST_PAUSE
        while True:
            wait = pause
            try:
                async with self._slots, asyncio.timeout(_TRY_SECONDS):
                    answer, content_read = await self._exchange(method, _target(path, query), data, content)
                self._on_answer()
                if answer.status < 400:
                    return content_read
                refusal = _read_error(answer.status, content_read)
                failure: Exception = refusal
                is_overtaken = content == APPLY and refusal.reason == "Conflict" and not is_exact
                if refusal.status not in _AGAIN and not is_overtaken:
                    raise failure
                wait = max(pause, _retry_after(answer))
            except TimeoutError:
                failure = ConnectionResetError(f"the API server did not answer within {_TRY_SECONDS:g} s")
            except OSError as error:
                failure = error
            if isinstance(failure, OSError):
                self._on_unreachable(failure)
            if now() + wait > give_up:
                raise failure
            # Not all requests at once after a restart of the server.
            await asyncio.sleep(wait * random.uniform(0.5, 1.0))
            pause = min(_LONGEST_PAUSE, pause * 2)

    async def _exchange(self, method: str, target: str, data: bytes, content: str) -> tuple[Answer, bytes]:
        """One try; with renewed credentials a second one if these are refused."""
        identity = await self._identify()
        answer = await self._send(method, target, data, content, identity)
        body = await self._read(answer)
        if answer.status == 401:
            identity, refused = await self._identify(identity), identity
            if identity is not refused:
                answer = await self._send(method, target, data, content, identity)
                body = await self._read(answer)
        if answer.status == 401:
            raise self._refusal(_read_error(401, body).message)
        return answer, body

    def _on_unreachable(self, error: OSError) -> None:
        """Reported once, until the server answers again."""
        if not self.unreachable_reason:
            where = f"{self._place.host}:{self._place.port}"
            # asyncio's message for a refused connection repeats the address.
            why = (
                os.strerror(error.errno) if isinstance(error, ConnectionError) and error.errno else error_message(error)
            )
            verb = "refuses Fairlead" if isinstance(error, CredentialsRefused) else "does not answer"
            self.unreachable_reason = f"the cluster's API server at {where} {verb}: {why}"
            log.warning("%s; retrying", self.unreachable_reason)
            self.notify_away()

    def _on_answer(self) -> None:
        if self.unreachable_reason:
            self.unreachable_reason = ""
            self.notify_away()

    async def get(self, path: str, **query: str) -> bytes:
        return await self.request("GET", path, query=query)

    async def find(self, path: str) -> bytes | None:
        """The object; None if it does not exist."""
        try:
            return await self.request("GET", path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str] | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        """A body that may never end, piece by piece, on a connection of its own; not retried."""
        answer = await self._start("GET", _target(path, query), {})
        try:
            self._on_answer()
            if answer.status >= 400:
                raise _read_error(answer.status, await answer.body())
            yield answer.pieces()
        finally:
            answer.connection.close()

    async def upgrade(self, target: str, headers: dict[str, str]) -> tuple[ApiConnection, Answer]:
        """A connection that uses another protocol from now on; the caller closes it."""
        answer = await self._start("GET", target, headers)
        try:
            if answer.status != 101:
                raise _read_error(answer.status, await answer.body())
        except BaseException:
            answer.connection.close()
            raise
        return answer.connection, answer

    async def _start(self, method: str, target: str, headers: dict[str, str]) -> Answer:
        """The head of an answer on a new connection; asked again with renewed credentials if these are refused."""
        identity = await self._identify()
        for is_last in (False, True):
            connection = await self._open(identity)
            try:
                answer = await connection.send(self._head(method, target, b"", JSON, identity, headers), b"")
                if answer.status != 401:
                    return answer
                message = _read_error(401, await answer.body()).message
            except BaseException:
                connection.close()
                raise
            connection.close()
            identity, refused = await self._identify(identity), identity
            if is_last or identity is refused:
                break
        error = self._refusal(message)
        self._on_unreachable(error)
        raise error

    async def _open(self, identity: ApiIdentity) -> ApiConnection:
        try:
            return await connect(self._place, identity.tls, _CONNECT_SECONDS)
        except OSError as error:
            self._on_unreachable(error)
            raise

    async def _send(self, method: str, target: str, data: bytes, content: str, identity: ApiIdentity) -> Answer:
        """On a kept connection, or on a new one if there is none or the server has closed it."""
        head = self._head(method, target, data, content, identity)
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_usable:
                connection.close()
                continue
            try:
                return await connection.send(head, data)
            except ConnectionError:
                connection.close()
            except BaseException:
                connection.close()
                raise
        connection = await self._open(identity)
        try:
            return await connection.send(head, data)
        except BaseException:
            connection.close()
            raise

    async def _read(self, answer: Answer) -> bytes:
        connection = answer.connection
        try:
            body = await answer.body()
        except BaseException:
            connection.close()
            raise
        if answer.may_be_kept and len(self._idle) < _KEPT:
            self._idle.append(connection)
        else:
            connection.close()
        return body

    def _head(
        self,
        method: str,
        target: str,
        data: bytes,
        content: str,
        identity: ApiIdentity,
        more: dict[str, str] | None = None,
    ) -> bytes:
        access = self._access
        headers = {"Host": f"{access.host}:{access.port}", "User-Agent": "fairlead", "Accept": JSON, **(more or {})}
        if identity.authorization:
            headers["Authorization"] = identity.authorization
        if data:
            headers["Content-Type"] = content
        return render_head(method, access.prefix + target, headers, len(data))

    async def _identify(self, refused: ApiIdentity | None = None) -> ApiIdentity:
        """The credentials to use now; another identity than the refused one if it could be renewed."""
        if self._identity is not None and refused is None and time.monotonic() < self._identity_until:
            return self._identity
        async with self._renewing:
            now, known = time.monotonic(), self._identity
            is_due = refused is known and now - self._identity_since >= _REFUSED_SECONDS if refused else False
            if known is not None and now < self._identity_until and not is_due:
                return known
            self._identity_since = now
            try:
                # From files, or from a program that may be slow.
                loaded = await asyncio.to_thread(self._access.identify)
            except OSError as error:
                if known is None:
                    raise
                self._renewal_failure = f", and cannot be renewed: {error_message(error)}"
                if refused is known:
                    return known
                log.warning(
                    "Cannot renew the credentials of %s; using the previous ones: %s", self._access.source, error
                )
                self._identity_until = now + _RENEW_SECONDS
                return known
            self._identity_until = time.monotonic() + loaded.lasts
            self._renewal_failure = ""
            if known is not None and (known.tls, known.authorization) == (loaded.tls, loaded.authorization):
                return known
            if known is not None and known.tls is not loaded.tls:
                # The server sees the new certificate on new connections only.
                self.close()
            self._identity = loaded
            return loaded

    def _refusal(self, message: str) -> CredentialsRefused:
        advice = self._renewal_failure or "; renew them"
        return CredentialsRefused(f"the credentials of {self._access.source} are not accepted ({message}){advice}")

    def close(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()


def _ignore() -> None:
    """Nobody listens yet."""


def _target(path: str, query: Mapping[str, str] | None) -> str:
    return f"{quote(path)}?{urlencode(query)}" if query else quote(path)


def _retry_after(answer: Answer) -> float:
    text = answer.headers.get("retry-after", "")
    return min(float(text), _LONGEST_PAUSE) if text.isdecimal() else 0.0


def _read_error(status: int, body: bytes) -> ApiError:
    try:
        status_object = msgspec.json.decode(body, type=_Status)
    except msgspec.DecodeError:
        status_object = _Status(message=body.decode("utf-8", "replace").strip()[:500])
    is_final = status == 500 and status_object.message.startswith(_CONTRADICTION)
    return ApiError(422 if is_final else status, status_object.reason, status_object.message or f"HTTP {status}")


def error_message(error: Exception) -> str:
    """The text of an error; not every error has one."""
    return str(error) or ("no answer in time" if isinstance(error, TimeoutError) else type(error).__name__)


async def retry_forever(act: Callable[[], Awaitable[Result]], message: str) -> Result:
    """Retry until the cluster carries it out."""
    pause = _FIRST_PAUSE
    while True:
        try:
            return await act()
        except (ApiError, OSError) as error:
            log.warning("%s; retrying: %s", message, error_message(error))
        await asyncio.sleep(pause)
        pause = min(_LONGEST_PAUSE, pause * 2)
