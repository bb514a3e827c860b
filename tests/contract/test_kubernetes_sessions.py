"""Sessions into pods against an API server that says how they fail: programs that are not there, shut ports."""

import asyncio
import json
import socket
import struct
from typing import Any

import msgspec
import pytest

from fairlead.engines.base import ExecRequest
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.websocket import WebSocket
from fairlead.engines.kubernetes.sessions import CommandSession, dial, read_end
from tests.contract.test_kubernetes_api import DEADLINE, Answer, Scripted, hang, scenario

_METADATA = {"name": "p", "uid": "u", "namespace": "n"}
POD = msgspec.convert({"metadata": _METADATA, "spec": {"containers": [{"name": "main"}]}}, objects.Pod)
_PREFIX = "Internal error occurred: error executing command in container: failed to exec in container: "
RUNC = _PREFIX + "OCI runtime exec failed: exec failed: unable to start container process: "
CRUN = _PREFIX + "OCI runtime exec failed: "


def ended(message: str, *causes: dict[str, str]) -> bytes:
    return json.dumps({"status": "Failure", "message": message, "details": {"causes": list(causes)}}).encode()


@pytest.mark.parametrize(
    ("status", "want"),
    [
        (b'{"status": "Success"}', ("", b"0")),
        (ended("it ended with 3", {"reason": "ExitCode", "message": "3"}), ("", b"3")),
        (
            ended(RUNC + 'exec: "nonexist": executable file not found in $PATH: unknown', {"message": "x"}),
            ('exec: "nonexist": executable file not found in $PATH', b"127"),
        ),
        (
            ended(RUNC + 'exec: "/a/b": stat /a/b: no such file or directory: unknown'),
            ('exec: "/a/b": stat /a/b: no such file or directory', b"127"),
        ),
        (
            ended(RUNC + 'exec: "/etc/passwd": permission denied: unknown'),
            ('exec: "/etc/passwd": permission denied', b"126"),
        ),
        (
            ended(CRUN + "executable file `nonexist` not found in $PATH: No such file or directory"),
            ("executable file `nonexist` not found in $PATH: No such file or directory", b"127"),
        ),
        (ended('container not found ("main")'), ('container not found ("main")', b"1")),
    ],
    ids=["well", "a code", "not on the path", "no such file", "no program", "the other runtime", "no container"],
)
def test_how_a_command_ended(status: bytes, want: tuple[str, bytes]) -> None:
    assert read_end(status) == want


def test_an_unreadable_end_is_reported() -> None:
    words, code = read_end(b"?")
    assert ("cannot be read" in words, code) == (True, b"1")


def upgraded(*messages: bytes) -> Answer:
    """A session that says these messages and stays open."""

    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        for message in messages:
            writer.write(struct.pack("!BBH", 0x82, 126, len(message)) + message)
        await writer.drain()
        await hang(writer)

    return send


@pytest.mark.parametrize(("tty", "end"), [(False, b"\n"), (True, b"\r\n")], ids=["piped", "on a terminal"])
def test_a_missing_program_is_reported_before_the_exit_code(tty: bool, end: bytes) -> None:
    status = ended(RUNC + 'exec: "nonexist": executable file not found in $PATH: unknown')

    async def execute() -> list[tuple[str, bytes]]:
        async with asyncio.timeout(DEADLINE), Scripted(upgraded(b"\x01", b"\x03" + status)) as api:
            session = await CommandSession.run(api, POD, ExecRequest(pod_id="u", command=("nonexist",), tty=tty))
            pieces = [await session.read(), await session.read()]
            await session.close()
            return pieces

    words = b'exec: "nonexist": executable file not found in $PATH'
    assert asyncio.run(execute()) == [("error", words + end), ("exit", b"127")]


def with_main(restarts: int, state: dict[str, Any], last: dict[str, Any] | None = None) -> objects.Pod:
    status = {"name": "main", "restartCount": restarts, "state": state, "lastState": last or {}}
    return msgspec.convert(
        {"metadata": _METADATA, "spec": {"containers": [{"name": "main"}]}, "status": {"containerStatuses": [status]}},
        objects.Pod,
    )


def ends(code: int) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": "Error"}}


@pytest.mark.parametrize(
    ("states", "want"),
    [
        ([with_main(0, {"running": {}}), with_main(0, ends(3))], b"3"),
        ([with_main(0, {"running": {}}), with_main(1, {"running": {}}, ends(4))], b"4"),
        ([with_main(0, {"waiting": {"reason": "CrashLoopBackOff"}}, ends(5))], b"5"),
        ([with_main(0, ends(0))], b"0"),
        ([None], b""),
    ],
    ids=["ended", "restarted", "waits to restart", "succeeded", "deleted"],
)
def test_attach_ends_with_the_exit_code_of_the_process(states: list[objects.Pod | None], want: bytes) -> None:
    left = list(states)

    async def attach() -> list[tuple[str, bytes]]:
        async with asyncio.timeout(DEADLINE), Scripted(upgraded(b"\x01out", b'\x03{"status": "Success"}')) as api:
            session = await CommandSession.attach(api, POD, lambda: left.pop(0) if left[1:] else left[0])
            pieces = [await session.read(), await session.read()]
            await session.close()
            return pieces

    assert asyncio.run(attach()) == [("output", b"out"), ("exit", want)]


@scenario
async def test_a_message_in_fragments_is_one_and_nothing_is_sent_after_the_close() -> None:
    def frame(head: int, data: bytes) -> bytes:
        return bytes([head, len(data)]) + data

    async def send(writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: v5\r\n\r\n"
        # A ping between two fragments; the first frame comes together with the head.
        writer.write(head + frame(0x02, b"\x01hel") + frame(0x89, b"?") + frame(0x80, b"lo"))
        writer.write(frame(0x82, b"") + frame(0x88, b"\x03\xe8"))
        await writer.drain()
        await hang(writer)

    async with Scripted(send) as api:
        link = await WebSocket.open(api, "/x", [], ["v5"])
        assert (link.subprotocol, await link.receive(), await link.receive()) == ("v5", b"\x01hello", b"")
        assert await link.receive() is None
        with pytest.raises(OSError, match="closed the session"):
            await link.send(b"late")
        link.close()


def test_a_port_without_a_listener_is_logged_and_its_connection_ends(caplog: pytest.LogCaptureFixture) -> None:
    number = struct.pack("<H", 8099)
    server = Scripted(upgraded(b"\x00" + number, b"\x01" + number, b"\x01connect: connection refused"))

    @scenario
    async def connect() -> None:
        async with server as api:
            file: Any = await dial(api, POD, 8099)
            reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=file))
            assert await reader.read() == b""
            writer.close()

    with caplog.at_level("INFO"):
        connect()
    assert "port 8099 of pod p refused a connection: connect: connection refused" in caplog.text
