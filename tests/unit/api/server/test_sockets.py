"""The listening socket of a server, and the one that keeps its port."""

import asyncio
import errno
import os
import socket

import pytest

from fairlead.api.server import sockets


def leave_an_ended_connection() -> int:
    """A port with a connection in TIME_WAIT, on the side that listened."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        address = listening.getsockname()
        with socket.create_connection(address) as client:
            accepted, _ = listening.accept()
            accepted.close()
            client.recv(1)
    return int(address[1])


def test_a_port_can_be_kept_whose_last_connections_have_just_ended() -> None:
    port = leave_an_ended_connection()
    with (
        sockets.listen("127.0.0.1", port, 0, is_secured=False) as listening,
        sockets.reserve(listening) as kept,
    ):
        assert kept.getsockname() == listening.getsockname()


def test_a_kept_port_cannot_be_taken_by_asking_for_its_address() -> None:
    listening = sockets.listen("127.0.0.1", 0, 0, is_secured=False)
    with sockets.reserve(listening) as kept, socket.socket() as thief:
        listening.close()
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match=os.strerror(errno.EADDRINUSE)):
            thief.bind(kept.getsockname())


def test_answers_are_sent_without_delay() -> None:
    """Without this option, the second answer on a connection waits for the client's delayed acknowledgement."""

    async def option_of_a_connection() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            sock: socket.socket = writer.get_extra_info("socket")
            found.set_result(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listening = sockets.listen("127.0.0.1", 0, 0, is_secured=False)
        server = await asyncio.start_server(connected, sock=listening)
        async with server:
            _, writer = await asyncio.open_connection(*listening.getsockname())
            option = await found
            writer.close()
            await writer.wait_closed()
        return option

    assert asyncio.run(option_of_a_connection()) != 0
