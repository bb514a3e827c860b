"""The order in which the server stops: its address is withdrawn while nobody else can take it."""

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import uvicorn

from fairlead.api.server.http_server import HttpServer


async def _answer(scope: object, receive: object, send: object) -> None:
    raise AssertionError("no request is sent")


def _is_taken(address: tuple[str, int]) -> bool:
    with socket.socket() as other:
        return other.connect_ex(address) == 0


def test_the_address_is_withdrawn_before_its_port_is_free() -> None:
    withdrawn_while_taken: list[bool] = []
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    context: Any = SimpleNamespace(stopping=False)
    config = uvicorn.Config(_answer, log_level="critical", lifespan="off")
    server = HttpServer(config, context, lambda: withdrawn_while_taken.append(_is_taken(address)))
    # It stops in the first round of its loop.
    server.should_exit = True
    asyncio.run(server.serve(sockets=[listener]))
    assert withdrawn_while_taken == [True]
    assert not _is_taken(address)
