"""Readiness probes against a listener that looks at how each connection ends: in order, never by a reset."""

import contextlib
import select
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from fairlead.engines.local.launch_order import ReadinessCheck
from fairlead.engines.local.supervisor.probes import Prober

_DEADLINE = 60.0
_BODY = b"x" * 300_000
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(_BODY)


class Listener:
    """Accepts one connection, sends `answer` in two parts, and records how the other end closed."""

    def __init__(self, answer: bytes, rest: bytes) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._answer, self._rest = answer, rest
        self.port = self._listener.getsockname()[1]
        #: Set by the test when the second part may be sent.
        self.may_go_on = threading.Event()
        self.end = "open"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            connection.settimeout(_DEADLINE)
            try:
                connection.sendall(self._answer)
                self.may_go_on.wait(_DEADLINE)
                connection.sendall(self._rest)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65_536):
                    pass
                self.end = "in order"
            except OSError as error:
                self.end = type(error).__name__

    def join(self) -> None:
        self._thread.join(_DEADLINE)
        self._listener.close()


@contextlib.contextmanager
def probing(check: ReadinessCheck) -> Iterator[tuple[Prober, select.poll]]:
    poll = select.poll()
    prober = Prober(check, poll, lambda: (socket.socket(), ["127.0.0.1"]), time.monotonic())
    yield prober, poll
    prober.close()


def turn(prober: Prober, poll: select.poll) -> None:
    for descriptor, _ in poll.poll(10):
        assert prober.has(descriptor)
        prober.step(descriptor, time.monotonic())
    prober.tick(time.monotonic())


@pytest.mark.parametrize(
    ("is_http", "answer", "rest"),
    [(True, _ANSWER, _BODY), (False, b"220 a greeting\r\n", b"")],
    ids=["HTTP", "a connection"],
)
def test_a_probe_reads_the_answer_to_its_end_before_it_closes(is_http: bool, answer: bytes, rest: bytes) -> None:
    listener = Listener(answer, rest)
    check = ReadinessCheck(port=listener.port, is_http=is_http, timeout=60, period=600)
    with probing(check) as (prober, poll):
        until = time.monotonic() + _DEADLINE
        while not prober.is_ready and time.monotonic() < until:
            turn(prober, poll)
        # Ready by the first line: the rest of the answer is not waited for.
        assert (prober.is_ready, listener.end) == (True, "open")
        listener.may_go_on.set()
        while listener.end == "open" and time.monotonic() < until:
            turn(prober, poll)
    listener.join()
    assert listener.end == "in order"


def test_an_answer_without_an_end_is_cut_off() -> None:
    listener = Listener(_ANSWER, b"x" * (64 << 20))
    with probing(ReadinessCheck(port=listener.port, is_http=True, timeout=60, period=600)) as (prober, poll):
        listener.may_go_on.set()
        until = time.monotonic() + _DEADLINE
        while listener.end == "open" and time.monotonic() < until:
            turn(prober, poll)
        assert prober.is_ready
    listener.join()
    assert listener.end in ("BrokenPipeError", "ConnectionResetError")
