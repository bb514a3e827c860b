"""How the reverse proxy reads heads of messages: plainly one message, or not at all."""

import pytest

from fairlead.api.proxy.messages import BadMessage, MessageBody, host_of, passed_on, read_request, read_response


def request(*lines: str, start: str = "GET / HTTP/1.1") -> bytes:
    return "\r\n".join([start, "Host: a.localhost", *lines, "", ""]).encode()


@pytest.mark.parametrize(
    ("lines", "want"),
    [
        pytest.param([], MessageBody(False, 0), id="nothing said"),
        pytest.param(["Content-Length: 12"], MessageBody(False, 12), id="by length"),
        pytest.param(["Content-Length: 12", "content-length: 12"], MessageBody(False, 12), id="the same length twice"),
        pytest.param(["Transfer-Encoding: Chunked"], MessageBody(True, None), id="by chunks"),
    ],
)
def test_how_long_a_body_is(lines: list[str], want: MessageBody) -> None:
    assert read_request(request(*lines)).body == want


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(request("Content-Length: 1", "Transfer-Encoding: chunked"), id="both lengths"),
        pytest.param(request("Content-Length: 1", "Content-Length: 2"), id="two lengths"),
        pytest.param(request("Content-Length: -1"), id="a negative length"),
        pytest.param(request("Content-Length: +1"), id="a signed length"),
        pytest.param(request("Transfer-Encoding: gzip, chunked"), id="another encoding"),
        pytest.param(request("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), id="chunked twice"),
        pytest.param(request("Host: b.localhost"), id="two hosts"),
        pytest.param(request("A : b"), id="a blank before the colon"),
        pytest.param(request("A: b", " folded"), id="a folded line"),
        pytest.param(request("A: b\nC: d"), id="a bare line end"),
        pytest.param(request("A: b\x00"), id="NUL"),
        pytest.param(request(start="GET http://a/ HTTP/1.1"), id="a URL for a path"),
        pytest.param(request(start="GET / HTTP/2.0"), id="another version"),
        pytest.param(request(start="GET  / HTTP/1.1"), id="two blanks"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="no host"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(head: bytes) -> None:
    with pytest.raises(BadMessage):
        read_request(head)


@pytest.mark.parametrize(
    ("start", "lines", "want"),
    [
        ("GET / HTTP/1.1", [], True),
        ("GET / HTTP/1.1", ["Connection: close"], False),
        ("GET / HTTP/1.0", [], False),
        ("GET / HTTP/1.0", ["Connection: Keep-Alive"], True),
    ],
)
def test_whether_the_connection_is_kept(start: str, lines: list[str], want: bool) -> None:
    assert read_request(request(*lines, start=start)).keep_alive is want


def test_an_upgrade_is_asked_for_by_both_headers() -> None:
    assert read_request(request("Upgrade: WebSocket", "Connection: keep-alive, Upgrade")).upgrade == b"websocket"
    assert read_request(request("Upgrade: websocket")).upgrade == b""


def test_headers_of_one_connection_are_not_passed_on() -> None:
    given = read_request(request("Connection: close, X-Private", "X-Private: 1", "TE: trailers", "A: b")).headers
    assert [name for name, _ in passed_on(given)] == [b"host", b"a"]


@pytest.mark.parametrize(
    ("value", "want"),
    [(b"A.Localhost:7421", "a.localhost"), (b"a.localhost.", "a.localhost"), (b"[::1]:80", "[::1]")],
)
def test_the_name_in_a_host_header(value: bytes, want: str) -> None:
    assert host_of(value) == want


@pytest.mark.parametrize(
    ("method", "head", "want_body", "want_kept"),
    [
        (b"GET", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", MessageBody(False, 3), True),
        (b"GET", b"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n", MessageBody(True, None), True),
        (b"GET", b"HTTP/1.1 200 OK\r\n\r\n", MessageBody(False, None), False),
        (b"HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", MessageBody(False, 0), True),
        (b"GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", MessageBody(False, 0), True),
        (b"GET", b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n", MessageBody(False, 3), False),
    ],
)
def test_answers(method: bytes, head: bytes, want_body: MessageBody, want_kept: bool) -> None:
    response = read_response(head, method)
    assert (response.body, response.keep_alive) == (want_body, want_kept)


def test_headers_of_a_message_are_not_options_of_the_connection() -> None:
    headers = [(b"connection", b"Host, Content-Length, Transfer-Encoding, X-Own"), (b"x-own", b"1")]
    framing = [(b"host", b"a.localhost"), (b"content-length", b"3"), (b"transfer-encoding", b"chunked")]
    assert passed_on([*headers, *framing]) == framing
