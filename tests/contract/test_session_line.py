"""The connection of a session to a supervisor that ends."""

import asyncio
import socket
import struct
from pathlib import Path

import pytest

from fairlead.engines.local.sessions import Line
from fairlead.model.errors import Unavailable


def test_a_supervisor_that_resets_the_connection_has_ended(tmp_path: Path) -> None:
    async def ask() -> None:
        with socket.socket(socket.AF_UNIX) as listening:
            path = str(tmp_path / "control")
            listening.bind(path)
            listening.listen()
            line = Line(path)
            connected, _ = listening.accept()
            # What was sent and not read makes the end a reset.
            await line.send({"op": "input"})
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connected.close()
            try:
                await line.ask({"op": "input"})
            finally:
                line.close()

    with pytest.raises(Unavailable, match="the pod ended"):
        asyncio.run(ask())
