"""Connections that keep the server waiting are closed, the slowest first; those with work to do are not."""

import select
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fairlead.api.http.connection_limits import ConnectionLimits
from tests.contract.api.api_server import ApiServer, trusting_all

BRIEF = ConnectionLimits(
    head_seconds=0.5,
    body_pause_seconds=0.5,
    body_seconds=2.0,
    check_seconds=0.05,
    handshake_seconds=0.5,
    read_pause_seconds=1.0,
    read_rate=100_000,
)
FEW = ConnectionLimits(max_connections=30, max_per_address=20)
HEAD = "POST /api/v1/token HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
BODY = b'{"grantType": "password", "username": "ada", "password": "wrong"}'


@pytest.fixture
def connect() -> Iterator[Callable[..., socket.socket]]:
    with ExitStack() as stack:

        def open_connection(api: ApiServer, said: str = "", source: str = "127.0.0.1") -> socket.socket:
            connection = socket.create_connection(("127.0.0.1", api.port), 30, (source, 0))
            stack.callback(connection.close)
            connection.sendall(said.encode())
            return connection

        yield open_connection


def is_closed(connection: socket.socket) -> bool:
    """Waits for the server to close it."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def is_open(connection: socket.socket) -> bool:
    """Reads what has come; whether that ends with waiting for more."""
    connection.settimeout(0.1)
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return True
    return False


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("", id="silence"),
        pytest.param("GET /healthz HT", id="half a head"),
        pytest.param(HEAD + "Content-Length: 100\r\n\r\n{", id="half a body"),
        pytest.param(HEAD + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", id="half a body in chunks"),
    ],
)
def test_who_keeps_the_server_waiting_is_cut_off(
    make_api: Callable[..., ApiServer], connect: Callable[..., socket.socket], said: str
) -> None:
    assert is_closed(connect(make_api(connections=BRIEF), said))


def test_a_body_that_drips_is_cut_off(
    make_api: Callable[..., ApiServer], connect: Callable[..., socket.socket]
) -> None:
    api = make_api(connections=BRIEF)
    connection = connect(api, HEAD + "Content-Length: 1000000\r\n\r\n")
    connection.settimeout(0.1)
    closed = False
    for _ in range(200):
        try:
            connection.sendall(b" ")
            closed = connection.recv(1) == b""
        except TimeoutError:
            continue
        except (ConnectionResetError, BrokenPipeError):
            closed = True
        if closed:
            break
    assert closed


def test_streams_and_slow_but_steady_clients_are_not_cut_off(
    make_api: Callable[..., ApiServer], connect: Callable[..., socket.socket]
) -> None:
    api = make_api(connections=BRIEF)
    watch = connect(
        api, f"GET /api/v1/workloads/watch HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {api.token}\r\n\r\n"
    )
    assert watch.recv(12) == b"HTTP/1.1 200"
    steady = connect(api, HEAD + f"Content-Length: {len(BODY)}\r\n\r\n")
    # Each silent one lasts longer than a pause is allowed to, so that the stream has been silent for long.
    for piece in (BODY[:5], BODY[5:]):
        steady.sendall(piece)
    assert steady.recv(12) == b"HTTP/1.1 400"
    for _ in range(2):
        assert is_closed(connect(api))
    assert is_open(watch)


def test_one_address_cannot_take_all_connections(
    make_api: Callable[..., ApiServer], connect: Callable[..., socket.socket]
) -> None:
    api = make_api(connections=FEW)
    silent = [connect(api) for _ in range(100)]
    assert api.call("GET", "/healthz").status == 200
    # The oldest were closed for the newest; ten seconds for a head have not passed.
    assert all(is_closed(connection) for connection in silent[:80])
    silent[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
    assert silent[-1].recv(12) == b"HTTP/1.1 200"


def test_the_address_with_most_connections_makes_room(
    make_api: Callable[..., ApiServer], connect: Callable[..., socket.socket]
) -> None:
    api = make_api(connections=FEW)
    few = [connect(api, source="127.0.0.2") for _ in range(5)]
    many = [connect(api, source="127.0.0.3") for _ in range(20)]
    more = [connect(api, source="127.0.0.4") for _ in range(10)]
    assert all(is_closed(connection) for connection in many[:5])
    for connection in (*few, *more):
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 200"


LARGE = "GET /api/openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"


def connect_with_small_buffer(api: ApiServer) -> socket.socket:
    """So that answers wait in the server, not in the kernel."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(120)
    connection.connect(("127.0.0.1", api.port))
    return connection


def read_to_end(connection: socket.socket) -> int:
    """How many bytes there are until the server closes the connection."""
    total = 0
    while data := connection.recv(65_536):
        total += len(data)
    return total


def test_who_does_not_read_its_answers_is_cut_off(make_api: Callable[..., ApiServer]) -> None:
    api = make_api(connections=BRIEF)
    with connect_with_small_buffer(api) as silent:
        silent.sendall(LARGE.encode() * 8)
        closed = select.poll()
        closed.register(silent, 0)
        assert closed.poll(30_000), "its connection is still open"


def test_who_reads_steadily_gets_all_answers(make_api: Callable[..., ApiServer]) -> None:
    api = make_api(connections=BRIEF)
    whole = len(api.call("GET", "/api/openapi.json").body)
    count = 1_500_000 // whole + 1
    with connect_with_small_buffer(api) as steady:
        steady.sendall(LARGE.encode() * count)
        assert read_to_end(steady) > whole * count


@pytest.fixture
def tls(tmp_path: Path) -> ssl.SSLContext:
    file = tmp_path / "certificate.pem"
    subject = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=somebody"]
    made = subprocess.run(["openssl", "req", *subject, "-keyout", "-"], check=True, capture_output=True)
    file.write_bytes(made.stdout)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def test_a_handshake_that_does_not_come_is_cut_off(
    make_api: Callable[..., ApiServer], connect: Callable[..., socket.socket], tls: ssl.SSLContext
) -> None:
    api = make_api(connections=BRIEF, tls=tls)
    assert is_closed(connect(api))
    assert is_closed(connect(api, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"))
    # After the handshake the other limits hold.
    with trusting_all().wrap_socket(connect(api)) as secured:
        assert is_closed(secured)
    assert api.call("GET", "/healthz").status == 200


def test_connections_before_their_handshake_count(
    make_api: Callable[..., ApiServer], connect: Callable[..., socket.socket], tls: ssl.SSLContext
) -> None:
    api = make_api(connections=FEW, tls=tls)
    silent = [connect(api) for _ in range(100)]
    assert api.call("GET", "/healthz").status == 200
    # Ten seconds for a handshake have not passed.
    assert all(is_closed(connection) for connection in silent[:80])
