"""Connections that a server standing by passes on: both ways, to wherever the holder is, and nowhere without one."""

import asyncio
import contextlib
import socket

import pytest

from fairlead.api.proxy.relay import Relay


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers in capitals once the other side has said all."""
    writer.write((await reader.read()).upper())
    writer.close()
    await writer.wait_closed()


async def call(listening: socket.socket, words: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(*listening.getsockname())
    writer.write(words)
    writer.write_eof()
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def test_both_ways_and_half_closed() -> None:
    async def pass_on() -> None:
        there = await asyncio.start_server(echo, "127.0.0.1", 0)
        port = there.sockets[0].getsockname()[1]

        async def find() -> str:
            return f"127.0.0.1:{port}"

        with socket.create_server(("127.0.0.1", 0)) as listening:
            relay = Relay(find)
            await relay.start(listening)
            assert await call(listening, b"x" * 1_000_000) == b"X" * 1_000_000
            await relay.stop()
            # Whoever takes over listens on the same socket.
            mine = await asyncio.start_server(echo, sock=listening.dup())
            assert await call(listening, b"mine") == b"MINE"
            mine.close()
            await mine.wait_closed()
        there.close()
        await there.wait_closed()

    asyncio.run(asyncio.wait_for(pass_on(), 60))


@pytest.mark.parametrize("where", ["", "127.0.0.1:1"], ids=["nobody holds it", "nobody listens there"])
def test_without_a_holder_connections_end(where: str) -> None:
    async def try_it() -> None:
        async def find() -> str:
            return where

        with socket.create_server(("127.0.0.1", 0)) as listening:
            relay = Relay(find)
            await relay.start(listening)
            assert await call(listening, b"hello") == b""
            await relay.stop()

    asyncio.run(asyncio.wait_for(try_it(), 60))
