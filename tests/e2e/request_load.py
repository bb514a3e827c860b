"""Requests that never stop while servers are replaced, each sent once; keeps every answer."""

import contextlib
import http.client
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

#: Method, path and body of the next request.
Request = Callable[[], tuple[str, str, Any]]


class RequestLoad:
    """`choose` gives the server's URL for each request, or None while there is none."""

    def __init__(self, choose: Callable[[], str | None], token: str, trust: ssl.SSLContext | None = None) -> None:
        self._choose = choose
        self._token = token
        self._trust = trust
        self._ends = threading.Event()
        #: What was asked, and its status, or what went wrong.
        self.answers: list[tuple[str, int | str]] = []

    @contextlib.contextmanager
    def running(self, requests: list[Request]) -> Iterator[None]:
        threads = [threading.Thread(target=self._send, args=(request,)) for request in requests]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ends.set()
            for thread in threads:
                thread.join()

    def _send(self, request: Request) -> None:
        while not self._ends.wait(0.02):
            if url := self._choose():
                method, path, body = request()
                self.answers.append((f"{method} {path}", send(url, self._token, (method, path, body), self._trust)))


def send(url: str, token: str, request: tuple[str, str, Any], trust: ssl.SSLContext | None = None) -> int | str:
    """The status of the answer on a connection of its own; the text if it failed."""
    method, path, body = request
    place = urlsplit(url).netloc
    connection = (
        http.client.HTTPSConnection(place, timeout=60, context=trust)
        if trust
        else http.client.HTTPConnection(place, timeout=60)
    )
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        connection.request(method, path, json.dumps(body) if body else None, headers)
        response = connection.getresponse()
        said = response.read()
        return response.status if response.status < 400 else said.decode()
    except (OSError, http.client.HTTPException) as error:
        return repr(error)
    finally:
        connection.close()
