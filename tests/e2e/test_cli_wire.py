"""The SDK's own HTTP against servers that answer in every legal and some illegal ways."""

import asyncio
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from fairlead import AsyncClient, __version__
from fairlead.client import Client, NotLoggedIn, ServerError, TimedOut, Trust, Unreachable, application
from tests.e2e.cli_calls import Caller
from tests.e2e.server import until


def with_length(body: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


TOKEN = with_length(b'{"accessToken":"good","expiresIn":100}')
NOT_ALLOWED = with_length(b'{"code":401,"message":"no"}', b"401 Unauthorized")


class Peer:
    """Answers each request with the next of its answers; an answer of None closes the connection instead."""

    def __init__(
        self, answers: list[bytes | None], wrap: Callable[[socket.socket], socket.socket] | None = None
    ) -> None:
        self._answers = iter(answers)
        self._wrap = wrap or (lambda connection: connection)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.requests: list[bytes] = []
        self.connections = 0
        self.ended = 0
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            try:
                with self._wrap(connection) as wrapped, wrapped.makefile("rb") as reader:
                    while self._answer(wrapped, reader):
                        pass
            except OSError:
                # The other end left, or did not like the certificate.
                connection.close()
            self.ended += 1

    def _answer(self, connection: socket.socket, reader: BinaryIO) -> bool:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = reader.readline()
            if not line:
                return False
            head += line
        length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:")), 0)
        self.requests.append(head + reader.read(length))
        answer = next(self._answers, None)
        if answer is None:
            return False
        connection.sendall(answer)
        return b"Connection: close" not in answer and b"HTTP/1.0" not in answer

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)


@pytest.fixture
def peer() -> Iterator[Callable[..., Peer]]:
    made: list[Peer] = []

    def make(*answers: bytes | None, **more: Callable[[socket.socket], socket.socket]) -> Peer:
        made.append(Peer(list(answers), **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(with_length(b'["x"]'), id="with length"),
        pytest.param(
            b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n["\r\n3;ext=1\r\nx"]\r\n0\r\nT: 1\r\n\r\n',
            id="chunked, with extension and trailer",
        ),
        pytest.param(b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n["x"]', id="until the end"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + with_length(b'["x"]'), id="after a preliminary answer"),
        pytest.param(b'HTTP/1.1 200\r\ncontent-LENGTH:5\r\n\r\n["x"]', id="without reason, odd case"),
    ],
)
def test_answers(peer: Callable[..., Peer], answer: bytes) -> None:
    with Client(peer(answer).url, token="t") as client:
        assert list(map(str, client.clusters())) == ["x"]
    assert list(map(str, ask_async(peer(answer).url))) == ["x"]


def ask_async(url: str, trust: Trust | None = None) -> list[Any]:
    """The same request by the client of asyncio."""

    async def ask() -> list[Any]:
        async with AsyncClient(url, token="t", trust=trust, timeout=30) as client:
            return await client.clusters()

    return asyncio.run(ask())


def test_a_connection_is_kept(peer: Callable[..., Peer]) -> None:
    one = peer(*[with_length(b"[]")] * 3)
    with Client(one.url, token="t") as client:
        for _ in range(3):
            client.clusters()
    assert one.connections == 1


def test_what_has_an_effect_is_not_sent_into_a_connection_that_was_closed_meanwhile(peer: Callable[..., Peer]) -> None:
    """The server lets go of connections on which nothing was asked for some seconds."""
    one = peer(with_length(b"[]").replace(b"HTTP/1.1", b"HTTP/1.0"), with_length(b"{}", b"202 Accepted"))
    with Client(one.url, token="t") as client:
        client.clusters()
        until(lambda: one.ended == 1, "the end of the connection")
        client.kind("training").delete("some-id")
    assert [request.split()[0] for request in one.requests] == [b"GET", b"DELETE"]
    assert one.connections == 2


def test_a_connection_that_was_closed_meanwhile_is_opened_anew(peer: Callable[..., Peer]) -> None:
    one = peer(with_length(b"[]"), None, with_length(b"[]"))
    with Client(one.url, token="t") as client:
        client.clusters()
        assert client.clusters() == []
    assert one.connections == 2


def test_what_may_have_been_done_is_not_sent_twice(peer: Callable[..., Peer]) -> None:
    one = peer(with_length(b"[]"), None, with_length(b"{}"))
    with Client(one.url, token="t") as client:
        client.clusters()
        with pytest.raises(Unreachable):
            client.trainings.submit({"name": "x"})
    assert sum(request.startswith(b"POST") for request in one.requests) == 1


def test_logging_in_happens_by_itself(peer: Callable[..., Peer]) -> None:
    one = peer(TOKEN, with_length(b"[]"))
    with Client(one.url, credentials=application("a", "b")) as client:
        client.clusters()
    assert b'"clientSecret": "b"' in one.requests[0]
    assert b"Authorization: Bearer good" in one.requests[1]


def test_a_refused_token_is_replaced_once(peer: Callable[..., Peer]) -> None:
    one = peer(NOT_ALLOWED, TOKEN, with_length(b"[]"))
    with Client(one.url, token="stale", credentials=application("a", "b")) as client:
        assert client.clusters() == []
    two = peer(NOT_ALLOWED, TOKEN, NOT_ALLOWED)
    with Client(two.url, token="stale", credentials=application("a", "b")) as client, pytest.raises(ServerError):
        client.clusters()


def test_without_credentials_a_refused_token_is_the_end(peer: Callable[..., Peer]) -> None:
    with Client(peer(NOT_ALLOWED).url, token="stale") as client, pytest.raises(NotLoggedIn):
        client.clusters()


def test_pages_are_joined(peer: Callable[..., Peer]) -> None:
    pages = (b'{"workloads":[1,2],"next":2}', b'{"workloads":[3]}')
    one = peer(*map(with_length, pages))
    with Client(one.url, token="t") as client:
        assert [str(found) for found in client.all_workloads(filterBy=["name==a"])] == ["1", "2", "3"]
    assert b"offset=2" in one.requests[1]


def test_changes_and_their_revision(peer: Callable[..., Peer]) -> None:
    stream = b': hello\n\nid: 7\nevent: workload\ndata: {"a":\ndata: 1}\n\nid: 9\n\n'
    with Client(peer(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + stream).url, token="t") as client:
        watch = client.watch()
        assert [change for change in watch.changes() if change] == [{"a": 1}]
        assert watch.revision == 9


def test_a_silent_stream_is_not_waited_for_beyond_the_time(peer: Callable[..., Peer]) -> None:
    with Client(peer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").url, token="t") as client:
        watch = client.watch()
        with pytest.raises(TimedOut):
            list(watch.changes(lambda: 0.05))
        watch.close()


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param(None, Unreachable, id="closes without an answer"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n", Unreachable, id="speaks something else"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nConnection: close\r\n\r\n[", Unreachable, id="breaks off"
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Unreachable, id="a chunk without size"
        ),
        pytest.param(with_length(b"<html>"), ServerError, id="a page instead of JSON"),
        pytest.param(with_length(b"<html>", b"502 Bad Gateway"), ServerError, id="a proxy's error page"),
    ],
)
def test_wrong_answers(peer: Callable[..., Peer], answer: bytes | None, want: type[Exception]) -> None:
    one = peer(answer, None)
    with Client(one.url, token="t", timeout=60) as client, pytest.raises(want):
        client.clusters()
    with pytest.raises(want):
        ask_async(peer(answer, None).url)


def test_no_server_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}", token="t") as client, pytest.raises(Unreachable, match=f":{port}"):
        client.clusters()


def test_no_server_is_reported_before_a_missing_login() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}") as client, pytest.raises(Unreachable, match=f":{port}"):
        client.clusters()


def test_a_server_that_knows_no_user(peer: Callable[..., Peer]) -> None:
    with Client(peer(with_length(b"{}")).url) as client, pytest.raises(NotLoggedIn):
        client.clusters()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost"
    names = ("-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost")
    out = ("-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem"))
    subprocess.run(["openssl", *words.split(), *names, *out], check=True, capture_output=True)
    return folder / "certificate.pem", folder / "key.pem"


def test_tls(peer: Callable[..., Peer], certificate: tuple[Path, Path]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)

    def wrap(connection: socket.socket) -> socket.socket:
        return context.wrap_socket(connection, server_side=True)

    one = peer(with_length(b"[]"), wrap=wrap)
    url = f"https://127.0.0.1:{one.port}"
    with Client(url, token="t") as client, pytest.raises(Unreachable, match="certificate"):
        client.clusters()
    with Client(url, token="t", trust=Trust(str(certificate[0]))) as client:
        assert client.clusters() == []


def test_tls_with_asyncio(peer: Callable[..., Peer], certificate: tuple[Path, Path]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    one = peer(*[with_length(b"[]")] * 2, wrap=lambda connection: context.wrap_socket(connection, server_side=True))
    url = f"https://127.0.0.1:{one.port}"
    with pytest.raises(Unreachable, match="certificate"):
        ask_async(url)
    assert ask_async(url, Trust(str(certificate[0]))) == []
    assert ask_async(url, Trust(certificate_file=str(certificate[0]))) == []


@pytest.mark.parametrize(
    ("version", "want"),
    [
        pytest.param("99.1.0", True, id="of another series"),
        pytest.param(".".join([*__version__.split(".")[:2], "99"]), False, id="another patch"),
    ],
)
def test_a_server_of_another_version_is_mentioned(
    peer: Callable[..., Peer], tmp_path: Path, version: str, want: bool
) -> None:
    answer = b"HTTP/1.1 200 OK\r\nX-Fairlead-Version: %b\r\nContent-Length: 2\r\n\r\n[]" % version.encode()
    caller = Caller(tmp_path / "data")
    called = caller("cluster", "list", "--json", FAIRLEAD_URL=peer(answer).url, FAIRLEAD_TOKEN="t")
    assert (called.code, called.out) == (0, "[]\n")
    assert (f"the server is {version}" in called.err) == want
