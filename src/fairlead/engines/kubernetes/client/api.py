"""Requests to the Kubernetes API: JSON in and out, watches line by line, upgrades for sessions; what failed says why.

Every request that the engine makes may be sent twice without harm, so a broken connection, a full server (429) and a
server that restarts (5xx) are tried again here, with growing pauses, until the time that the caller gave is over.
"""

import asyncio
import logging
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from fairlead.engines.kubernetes.client.connection import Answer, ApiConnection, connect, render_head
from fairlead.engines.kubernetes.client.kubeconfig import TOKEN_SECONDS, Access

log = logging.getLogger(__name__)

Result = TypeVar("Result")
#: Connections that are kept for the next request, and requests that are under way at the same time.
_KEPT, _AT_ONCE = 16, 16
_CONNECT_SECONDS = 10.0
#: How long one try may take.
_TRY_SECONDS = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
#: How the API server begins when what is applied contradicts itself. It says 500, and would say so for ever.
_CONTRADICTION = "failed to create typed patch object"
JSON, APPLY, MERGE = "application/json", "application/apply-patch+yaml", "application/merge-patch+json"


class ApiError(Exception):
    """The API server refused: the status of HTTP, its word for the reason, and its sentence."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message


class _Status(msgspec.Struct):
    message: str = ""
    reason: str = ""


class Api:
    def __init__(self, access: Access, patience: float = 60.0) -> None:
        """A request is tried again for at most `patience` seconds."""
        self._access = access
        self._patience = patience
        self._idle: list[ApiConnection] = []
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._token = ""
        self._token_until = 0.0
        self._renewing = asyncio.Lock()
        #: Why nobody answers; empty while somebody does.
        self.unreachable_reason = ""
        #: Called when that has changed.
        self.notify_away: Callable[[], None] = _ignore

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content: str = JSON,
        is_exact: bool = False,
    ) -> bytes:
        """One request, tried again if need be; raises ApiError, or OSError when nobody answers.

        What is applied depends on no version unless it `is_exact`: a conflict says only that somebody was quicker.
        """
        data = b"" if body is None else msgspec.json.encode(body)
        give_up = time.monotonic() + self._patience
        pause = _FIRST_PAUSE
        while True:
            wait = pause
            try:
                async with self._slots, asyncio.timeout(_TRY_SECONDS):
                    answer = await self._send(method, _target(path, query), data, content)
                    found = await self._read(answer)
                self._note_answer()
                if answer.status < 400:
                    return found
                refusal = _read_error(answer.status, found)
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
                self._tell_away(failure)
            if time.monotonic() + wait > give_up:
                raise failure
            # Not all at once after a restart of the server.
            await asyncio.sleep(wait * random.uniform(0.5, 1.0))
            pause = min(_LONGEST_PAUSE, pause * 2)

    def _tell_away(self, error: OSError) -> None:
        """Once, until it answers again."""
        if not self.unreachable_reason:
            where = f"{self._access.host}:{self._access.port}"
            # The loop's own words for a refused connection name the address a second time.
            why = (
                os.strerror(error.errno) if isinstance(error, ConnectionError) and error.errno else error_message(error)
            )
            self.unreachable_reason = f"the cluster's API server at {where} does not answer: {why}"
            log.warning("%s; trying again", self.unreachable_reason)
            self.notify_away()

    def _note_answer(self) -> None:
        if self.unreachable_reason:
            self.unreachable_reason = ""
            self.notify_away()

    async def get(self, path: str, **query: str) -> bytes:
        return await self.request("GET", path, query=query)

    async def find(self, path: str) -> bytes | None:
        """What is there; None if nothing is."""
        try:
            return await self.request("GET", path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str] | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        """A body that may never end, piece by piece, on a connection of its own; not tried again."""
        connection = await self._open()
        try:
            answer = await connection.send(await self._head("GET", _target(path, query), b"", JSON), b"")
            self._note_answer()
            if answer.status >= 400:
                raise _read_error(answer.status, await answer.body())
            yield answer.pieces()
        finally:
            connection.close()

    async def upgrade(self, target: str, headers: dict[str, str]) -> tuple[ApiConnection, Answer]:
        """A connection that speaks another protocol from now on; the caller closes it."""
        connection = await self._open()
        try:
            answer = await connection.send(await self._head("GET", target, b"", JSON, headers), b"")
            if answer.status != 101:
                raise _read_error(answer.status, await answer.body())
        except BaseException:
            connection.close()
            raise
        return connection, answer

    async def _open(self) -> ApiConnection:
        access = self._access
        try:
            return await connect(access.host, access.port, access.tls, _CONNECT_SECONDS)
        except OSError as error:
            self._tell_away(error)
            raise

    async def _send(self, method: str, target: str, data: bytes, content: str) -> Answer:
        """On a kept connection if there is one; it may have been closed meanwhile, then on a new one."""
        head = await self._head(method, target, data, content)
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
        connection = await self._open()
        try:
            return await connection.send(head, data)
        except BaseException:
            connection.close()
            raise

    async def _read(self, answer: Answer) -> bytes:
        connection = answer.connection
        try:
            found = await answer.body()
        except BaseException:
            connection.close()
            raise
        if answer.may_be_kept and len(self._idle) < _KEPT:
            self._idle.append(connection)
        else:
            connection.close()
        return found

    async def _head(
        self, method: str, target: str, data: bytes, content: str, more: dict[str, str] | None = None
    ) -> bytes:
        access = self._access
        headers = {"Host": f"{access.host}:{access.port}", "User-Agent": "fairlead", "Accept": JSON, **(more or {})}
        token = await self._bearer()
        if token:
            headers["Authorization"] = f"Bearer {token}"
        elif access.basic:
            headers["Authorization"] = f"Basic {access.basic}"
        if data:
            headers["Content-Type"] = content
        return render_head(method, access.prefix + target, headers, len(data))

    async def _bearer(self) -> str:
        if time.monotonic() >= self._token_until:
            async with self._renewing:
                if time.monotonic() >= self._token_until:
                    # A file, or a program that may take its time.
                    self._token = await asyncio.to_thread(self._access.token)
                    self._token_until = time.monotonic() + TOKEN_SECONDS
        return self._token

    def close(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()


def _ignore() -> None:
    """Nobody wants to know."""


def _target(path: str, query: Mapping[str, str] | None) -> str:
    return f"{quote(path)}?{urlencode(query)}" if query else quote(path)


def _retry_after(answer: Answer) -> float:
    text = answer.headers.get("retry-after", "")
    return min(float(text), _LONGEST_PAUSE) if text.isdecimal() else 0.0


def _read_error(status: int, body: bytes) -> ApiError:
    try:
        said = msgspec.json.decode(body, type=_Status)
    except msgspec.DecodeError:
        said = _Status(message=body.decode("utf-8", "replace").strip()[:500])
    is_final = status == 500 and said.message.startswith(_CONTRADICTION)
    return ApiError(422 if is_final else status, said.reason, said.message or f"HTTP {status}")


def error_message(error: Exception) -> str:
    """Not every error has words of its own."""
    return str(error) or ("nothing was heard in time" if isinstance(error, TimeoutError) else type(error).__name__)


async def retry_forever(act: Callable[[], Awaitable[Result]], trouble: str) -> Result:
    """Again and again, until the cluster lets it be done."""
    pause = _FIRST_PAUSE
    while True:
        try:
            return await act()
        except (ApiError, OSError) as error:
            log.warning("%s: %s", trouble, error_message(error))
        await asyncio.sleep(pause)
        pause = min(_LONGEST_PAUSE, pause * 2)
