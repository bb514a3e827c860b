"""Connections that keep the server waiting are closed, the slowest first; those with work to do are not."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from fairlead.api.server.connections import ConnectionLimits
from tests.contract.api.api_server import ApiServer

BRIEF = ConnectionLimits(head_seconds=0.5, body_pause_seconds=0.5, body_seconds=2.0, check_seconds=0.05)
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
