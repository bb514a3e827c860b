"""Connections to pods end with their pods, even where the last packet of a pod is lost."""

import asyncio
import socket
from collections.abc import Callable, Coroutine

import pytest
import uvloop

from fairlead.api.proxy.upstream import Upstreams
from fairlead.control.workloads.sessions import Dialler


class SilentPods(Dialler):
    """A way to pods that take connections and never say anything, as one whose network has gone."""

    def __init__(self) -> None:
        self.cut: Callable[[str], None] = lambda pod_id: None
        self.others: list[socket.socket] = []
        #: Those that end while a connection to them is made.
        self.ending: set[str] = set()

    def listen_for_ends(self, cut: Callable[[str], None]) -> None:
        self.cut = cut

    async def dial(self, pod_id: str, port: int) -> int:
        ours, other = socket.socketpair()
        self.others.append(other)
        if pod_id in self.ending:
            self.cut(pod_id)
        return ours.detach()


def test_what_waits_for_a_pod_learns_that_it_has_ended() -> None:
    async def run() -> None:
        pods = SilentPods()
        upstreams = Upstreams(pods)
        ended, goes_on = [await upstreams.get(pod, 8080) for pod in ("ended", "goes-on")]
        async with asyncio.timeout(120):
            answer = asyncio.create_task(ended.reader.read())
            await asyncio.sleep(0)
            pods.others[0].sendall(b"its last words")
            pods.cut("ended")
            assert await answer == b"its last words"
        assert not goes_on.writer.is_closing()
        upstreams.keep(goes_on)
        assert await upstreams.get("goes-on", 8080) is goes_on
        upstreams.keep(goes_on)
        pods.cut("goes-on")
        assert await goes_on.reader.read() == b""
        another = await upstreams.get("goes-on", 8080)
        assert another is not goes_on
        for each in (ended, goes_on, another):
            each.close()
            await each.writer.wait_closed()
        for other in pods.others:
            other.close()

    in_loop(run())


def test_a_pod_that_ends_while_it_is_dialled_is_not_waited_for() -> None:
    async def run() -> None:
        pods = SilentPods()
        upstreams = Upstreams(pods)
        pods.ending = {"ending"}
        with pytest.raises(ConnectionResetError):
            await upstreams.get("ending", 8080)
        pods.others[0].close()

    in_loop(run())


def in_loop(work: Coroutine[None, None, None]) -> None:
    """As the server runs it."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)
