"""Requests and watches against an API server that misbehaves on purpose: full, cut off, too old, gone for a while."""

import asyncio
import base64
import functools
import json
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import APPLY, Api, ApiError
from fairlead.engines.kubernetes.client.connection import ServerPlace, connect
from fairlead.engines.kubernetes.client.identity import ApiIdentity
from fairlead.engines.kubernetes.client.kubeconfig import Access
from fairlead.engines.kubernetes.client.watch import ObjectWatch
from fairlead.engines.kubernetes.observe.unacknowledged import UnacknowledgedPods
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload
from fairlead.engines.kubernetes.shared_files import share_files
from fairlead.model.errors import Refused

DEADLINE = 60.0
Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Scripted:
    """Answers one request after the other as the script says; keeps what was asked."""

    def __init__(self, *script: Answer, patience: float = DEADLINE) -> None:
        self.patience = patience
        self.script = list(script)
        self.asked: list[str] = []
        self.bodies: list[bytes] = []
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Api:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.api = Api(Access(host="127.0.0.1", port=port, identify=ApiIdentity), self.patience)
        return self.api

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self.api.close()
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.asked.append(head.split("\r\n", 1)[0])
                length = next((int(line.split(":")[1]) for line in head.split("\r\n") if "ontent-Length" in line), 0)
                self.bodies.append(await reader.readexactly(length))
                await self.script.pop(0)(writer) if self.script else await hang(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


def answer(status: int, body: Any, *, headers: str = "") -> Answer:
    async def send(writer: asyncio.StreamWriter) -> None:
        data = json.dumps(body).encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n{headers}\r\n"
        writer.write(head.encode() + data)
        await writer.drain()

    return send


def stream(*lines: dict[str, Any], stays: bool = False) -> Answer:
    """A watch that says these lines, then ends as a server ends it, or stays open."""

    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for line in lines:
            data = json.dumps(line).encode() + b"\n"
            # In two pieces, as networks cut where they like.
            for piece in (data[:7], data[7:]):
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                await writer.drain()
        if stays:
            await hang(writer)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    return send


async def hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()
    raise ConnectionResetError


async def hang(writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


def scenario(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    @functools.wraps(test)
    def run() -> None:
        async def within() -> None:
            async with asyncio.timeout(DEADLINE):
                await test()

        asyncio.run(within())

    # The functions take no fixtures, whatever the wrapped one's signature says.
    del run.__wrapped__
    return run


def pod(name: str, version: str, phase: str = "Running") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": version},
        "status": {"phase": phase},
    }


def listed(version: str, *pods: dict[str, Any]) -> Answer:
    return answer(200, {"metadata": {"resourceVersion": version}, "items": list(pods)})


@scenario
async def test_a_full_and_a_restarting_server_are_asked_again() -> None:
    refusal = {"kind": "Status", "message": "too many"}
    server = Scripted(
        answer(429, refusal, headers="Retry-After: 0\r\n"), answer(503, refusal), hang_up, answer(200, {})
    )
    async with server as api:
        assert await api.request("PATCH", "/x", {"a": 1}) == b"{}"
    assert len(server.asked) == 4


@scenario
async def test_a_refusal_has_the_message_of_the_server() -> None:
    said = {"kind": "Status", "reason": "Invalid", "message": "spec.x: unknown"}
    async with Scripted(answer(422, said)) as api:
        with pytest.raises(ApiError, match="unknown") as refused:
            await api.request("POST", "/x", {})
        assert (refused.value.status, refused.value.reason) == (422, "Invalid")


@scenario
async def test_what_contradicts_itself_is_not_sent_again() -> None:
    """The API server calls it an error of its own."""
    said = {"kind": "Status", "message": "failed to create typed patch object (n/a): duplicate entries for key"}
    server = Scripted(answer(500, said), answer(200, {}))
    async with server as api:
        with pytest.raises(ApiError, match="duplicate") as refused:
            await api.request("PATCH", "/x", {}, content=APPLY)
    assert (refused.value.status, len(server.asked)) == (422, 1)


@scenario
async def test_patience_ends() -> None:
    async with Scripted(*[answer(503, {"message": "later"})] * 50, patience=0.3) as api:
        with pytest.raises(ApiError, match="later"):
            await api.get("/x")


@scenario
async def test_no_server_answers() -> None:
    api = Api(Access(host="127.0.0.1", port=1, identify=ApiIdentity), patience=0.2)
    with pytest.raises(OSError, match=r"111|refused|connect"):
        await api.get("/x")


@scenario
async def test_a_conflict_is_tried_again_unless_the_request_is_exact() -> None:
    conflict = answer(409, {"reason": "Conflict", "message": "the object has been modified"})
    async with Scripted(conflict, answer(200, {}), conflict) as api:
        assert await api.request("PATCH", "/x", {}, content=APPLY) == b"{}"
        with pytest.raises(ApiError, match="modified"):
            await api.request("PATCH", "/x", {}, content=APPLY, is_exact=True)


@scenario
async def test_connections_are_kept() -> None:
    server = Scripted(*[answer(200, {})] * 5)
    async with server as api:
        for _ in range(5):
            await api.request("GET", "/x")
        assert len(api._idle) == 1


class Seen:
    """What a watch told, as (before's version, after's version)."""

    def __init__(self, api: Api) -> None:
        self.told: list[tuple[str | None, str | None]] = []
        self._more = asyncio.Event()
        self.watch = ObjectWatch(api, "/api/v1/pods", objects.Pod, self._hear, "app=x")

    def _hear(self, before: objects.Pod | None, after: objects.Pod | None) -> None:
        versions = [one.metadata.resource_version if one else None for one in (before, after)]
        self.told.append((versions[0], versions[1]))
        self._more.set()

    async def until(self, number: int) -> Sequence[tuple[str | None, str | None]]:
        task = asyncio.create_task(self.watch.run())
        try:
            while len(self.told) < number:
                self._more.clear()
                await self._more.wait()
            return self.told
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@scenario
async def test_a_watch_that_ends_at_once_without_a_word_lists_anew() -> None:
    server = Scripted(listed("10", pod("a", "3")), stream(), listed("20", pod("b", "15")), stream(stays=True))
    async with server as api:
        assert await Seen(api).until(3) == [(None, "3"), ("3", None), (None, "15")]


@scenario
async def test_a_watch_that_ends_continues_from_where_it_was() -> None:
    server = Scripted(
        listed("10", pod("a", "3")),
        stream({"type": "MODIFIED", "object": pod("a", "11")}),
        stream({"type": "DELETED", "object": pod("a", "12")}, stays=True),
    )
    async with server as api:
        assert await Seen(api).until(3) == [(None, "3"), ("3", "11"), ("11", None)]
    assert "resourceVersion=10" in server.asked[1]
    assert "resourceVersion=11" in server.asked[2]
    assert "labelSelector=app%3Dx" in server.asked[0]


@scenario
async def test_a_watch_that_is_cut_continues_too() -> None:
    server = Scripted(
        listed("10"),
        hang_up,
        stream({"type": "ADDED", "object": pod("a", "11")}, stays=True),
    )
    async with server as api:
        assert await Seen(api).until(1) == [(None, "11")]
    assert "resourceVersion=10" in server.asked[2]


@scenario
async def test_a_watch_that_is_never_answered_is_asked_for_again() -> None:
    server = Scripted(listed("10"), hang, stream({"type": "ADDED", "object": pod("a", "11")}, stays=True))
    async with server as api:
        seen = Seen(api)
        seen.watch.idle_timeout = 0.2
        assert await seen.until(1) == [(None, "11")]
    assert "resourceVersion=10" in server.asked[2]


@scenario
async def test_an_object_that_cannot_be_read_does_not_hide_others() -> None:
    class Strict(Seen):
        def _hear(self, before: objects.Pod | None, after: objects.Pod | None) -> None:
            if after is not None and after.metadata.name == "bad":
                raise ValueError
            super()._hear(before, after)

    server = Scripted(
        listed("10", pod("bad", "2"), pod("a", "3")),
        stream(
            {"type": "MODIFIED", "object": pod("bad", "11")},
            {"type": "MODIFIED", "object": pod("a", "12")},
            stays=True,
        ),
    )
    async with server as api:
        assert await Strict(api).until(2) == [(None, "3"), ("3", "12")]
    assert len(server.asked) == 2


@scenario
async def test_bookmarks_move_the_point_and_say_nothing() -> None:
    empty = {"kind": "Pod", "metadata": {"resourceVersion": "99"}, "spec": {"containers": None}}
    server = Scripted(
        listed("10"),
        stream({"type": "BOOKMARK", "object": empty}),
        stream({"type": "ADDED", "object": pod("a", "100")}, stays=True),
    )
    async with server as api:
        assert await Seen(api).until(1) == [(None, "100")]
    assert "resourceVersion=99" in server.asked[2]


@scenario
async def test_a_point_that_is_too_old_lists_anew() -> None:
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}
    server = Scripted(
        listed("10", pod("a", "1"), pod("b", "2"), pod("c", "3")),
        stream(gone),
        listed("50", pod("a", "1"), pod("b", "20"), pod("d", "40")),
        stream(stays=True),
    )
    async with server as api:
        told = await Seen(api).until(6)
    assert told[:3] == [(None, "1"), (None, "2"), (None, "3")]
    assert sorted(told[3:], key=str) == sorted([("3", None), ("2", "20"), (None, "40")], key=str)


@scenario
async def test_lists_come_in_pages() -> None:
    first = {"metadata": {"resourceVersion": "10", "continue": "more"}, "items": [pod("a", "1")]}
    server = Scripted(answer(200, first), listed("10", pod("b", "2")), stream(stays=True))
    async with server as api:
        assert await Seen(api).until(2) == [(None, "1"), (None, "2")]
    assert "continue=more" in server.asked[1]


def secret(**files: bytes) -> Answer:
    data = {name: base64.b64encode(content).decode() for name, content in files.items()}
    return answer(200, {"metadata": {"resourceVersion": "7"}, "data": data})


@scenario
async def test_the_first_servers_keys_become_everybodys() -> None:
    missing = answer(404, {"reason": "NotFound", "message": "not found"})
    server = Scripted(missing, answer(201, {}))
    async with server as api:
        assert await share_files(api, "n/keys", {"signing.key": b"mine"}) == {"signing.key": b"mine"}
    assert [line.split()[0] for line in server.asked] == ["GET", "POST"]


@scenario
async def test_who_comes_second_takes_the_keys_that_are_there() -> None:
    missing = answer(404, {"reason": "NotFound", "message": "not found"})
    taken = answer(409, {"reason": "AlreadyExists", "message": "exists"})
    async with Scripted(missing, taken, secret(key=b"theirs")) as api:
        assert await share_files(api, "n/keys", {"key": b"mine"}) == {"key": b"theirs"}


@scenario
async def test_what_the_secret_lacks_is_added() -> None:
    server = Scripted(secret(key=b"theirs"), answer(200, {}))
    async with server as api:
        kept = await share_files(api, "n/keys", {"key": b"mine", "credentials.json": b"{}"})
    assert kept == {"key": b"theirs", "credentials.json": b"{}"}
    assert server.asked[1].startswith("PATCH /api/v1/namespaces/n/secrets/keys")


@scenario
async def test_of_two_that_add_at_once_one_takes_the_others() -> None:
    taken = answer(409, {"reason": "Conflict", "message": "changed"})
    server = Scripted(secret(), taken, secret(key=b"theirs"))
    async with server as api:
        assert await share_files(api, "n/keys", {"key": b"mine"}) == {"key": b"theirs"}
    assert json.loads(server.bodies[1])["metadata"] == {"resourceVersion": "7"}


@scenario
async def test_keys_that_cannot_be_shared_refuse_the_start() -> None:
    with pytest.raises(Refused, match="NAMESPACE/NAME"):
        await share_files(Api(Access(host="", port=0, identify=ApiIdentity)), "keys", {})
    async with Scripted(answer(403, {"reason": "Forbidden", "message": "not yours"})) as api:
        with pytest.raises(Refused, match="not yours"):
            await share_files(api, "n/keys", {})


def test_an_unreachable_server_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []

    async def ask() -> None:
        server = Scripted(answer(200, {}), answer(200, {}), patience=0.3)
        async with server as api:
            api.notify_away = lambda: told.append(api.unreachable_reason)
            await api.get("/there")
            there, api._place = api._place, ServerPlace("127.0.0.1", 1)
            api.close()
            with pytest.raises(ConnectionRefusedError):
                await api.get("/away")
            api._place = there
            await api.get("/back")

    asyncio.run(ask())
    words = "the cluster's API server at 127.0.0.1:1 does not answer: Connection refused"
    assert told == [words, ""]
    [said] = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert said == f"{words}; retrying"


def test_who_lets_a_connection_wait_is_named_with_how_long_it_was() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        with pytest.raises(ConnectionError, match=f"127.0.0.1:{port} accepted no connection within 0.2 s"):
            asyncio.run(connect(ServerPlace(host, port), ssl.create_default_context(), 0.2))


PIPELINED = {"message": "on n", "reason": "Pipelined", "lastTimestamp": "2026-01-01T00:00:00Z"}
SCHEDULED = {"message": "assigned to n", "reason": "Scheduled", "lastTimestamp": "2026-01-01T00:00:05Z"}


@pytest.mark.parametrize(
    ("events", "want"),
    [
        ([], "No KAI scheduler of node pool default"),
        ([{"message": "tried again", "reason": "PodGrouperWarning"}], "No KAI scheduler of node pool default"),
        (
            [{"message": "on n", "reason": "Pipelined"}],
            "KAI reserved a place for it, and waits until other pods have left: on n",
        ),
        ([PIPELINED, SCHEDULED], "its binder does not bind the pod to it; check that the binder runs: assigned to n"),
        ([SCHEDULED, {**PIPELINED, "lastTimestamp": "2026-01-01T00:00:09Z"}], "KAI reserved a place for it"),
        (
            [SCHEDULED, {"message": "no", "reason": "BindingError", "lastTimestamp": "2026-01-01T00:00:09Z"}],
            "KAI's binder is retrying: no",
        ),
    ],
    ids=["nobody says anything", "another part of KAI", "a place is kept", "no binder", "kept anew", "not bound"],
)
def test_a_long_silence_is_investigated_and_reported(events: list[Any], want: str) -> None:
    group = msgspec.convert({"metadata": {"name": "g"}}, objects.PodGroup)
    metadata = {"name": "p", "uid": "u", "namespace": "n", "annotations": {"pod-group-name": "g"}}
    waits = ObservedWorkload(pods=[msgspec.convert({"metadata": metadata}, objects.Pod)], groups=[group])

    async def listen(server: Scripted) -> list[str]:
        told = asyncio.Event()
        async with server as api, asyncio.TaskGroup() as tasks:
            silences = UnacknowledgedPods(api, tasks.create_task, lambda _: told.set(), patience=0.05)
            said = [silences.message("w", waits)]
            async with asyncio.timeout(DEADLINE):
                await told.wait()
            # Asked again and again, until KAI has spoken.
            return [*said, silences.message("w", waits), silences.message("w", ObservedWorkload())]

    server = Scripted(*(answer(200, {"items": events}) for _ in range(100)))
    first, later, last = asyncio.run(listen(server))
    assert (first, last) == ("", "")
    assert want in later
    assert server.asked[0] == "GET /api/v1/namespaces/n/events?fieldSelector=involvedObject.uid%3Du&limit=50 HTTP/1.1"


@scenario
async def test_a_binder_that_was_asked_a_moment_ago_is_not_blamed() -> None:
    """The event is seen once; at the next look the pod is kept a place for again."""
    later = {**PIPELINED, "lastTimestamp": "2026-01-01T00:00:09Z"}
    looks = ([SCHEDULED], [SCHEDULED, later])
    waits = ObservedWorkload(
        pods=[msgspec.convert({"metadata": {"name": "p", "uid": "u", "namespace": "n"}}, objects.Pod)]
    )
    said: list[str] = []
    told = asyncio.Event()
    async with Scripted(*(answer(200, {"items": events}) for events in looks)) as api, asyncio.TaskGroup() as tasks:
        silences = UnacknowledgedPods(api, tasks.create_task, lambda _: told.set(), patience=0.05)
        silences.message("w", waits)
        await told.wait()
        said.append(silences.message("w", waits))
        silences.message("w", ObservedWorkload())
    assert said == ["KAI reserved a place for it, and waits until other pods have left: on n"]
