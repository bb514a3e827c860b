"""The proxy's connections are bounded too: whoever opens many must not take the files that the server needs."""

import asyncio
import socket

from fairlead.api.http.connection_limits import ConnectionLimits
from fairlead.api.proxy.access import RequestDenied, UrlGate
from fairlead.api.proxy.messages import RequestHead
from fairlead.api.proxy.server import Proxy
from fairlead.api.proxy.upstream import Upstreams
from fairlead.control.serving.urls import Route
from tests.contract.test_proxy_upstream import SilentPods, in_loop

ASK = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


class NoUrls(UrlGate):
    """No URL exists."""

    def __init__(self) -> None:
        pass

    def find(self, request: RequestHead) -> Route:
        raise RequestDenied(404, "There is no such URL.")


def test_silent_connections_make_room_for_new_ones() -> None:
    async def run() -> None:
        proxy = Proxy(NoUrls(), Upstreams(SilentPods()), ConnectionLimits(max_connections=30, max_per_address=20))
        listening = socket.create_server(("127.0.0.1", 0))
        listening.setblocking(False)
        await proxy.start(listening)
        opened = [await asyncio.open_connection(*listening.getsockname()) for _ in range(50)]
        try:
            async with asyncio.timeout(120):
                # The oldest were closed for the newest, which are served, again and again.
                for reader, _ in opened[:30]:
                    assert await _is_closed(reader)
                for _ in range(2):
                    for reader, writer in opened[30:]:
                        writer.write(ASK)
                        assert await reader.readline() == b"HTTP/1.1 404 Not Found\r\n"
                        await reader.readuntil(b"There is no such URL.\n")
        finally:
            # A loop with open connections may not close.
            for _, writer in opened:
                writer.close()
            await proxy.stop()

    in_loop(run())


async def _is_closed(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True
