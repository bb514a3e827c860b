"""Probes whether a pod is ready: by HTTP or HTTPS GET, or by a connection alone. Never waits.

Part of the supervisor, so probes go on while no server runs. They come from the pod's own network: `Connect` opens
sockets that belong to it. Until the pod was ready once they follow each other quickly.
"""

import contextlib
import importlib
import select
import socket
from collections.abc import Callable
from typing import Any

from fairlead.engines.local.launch_order import ReadinessCheck

#: The time between questions until the pod was ready once.
EAGER_SECONDS = 0.025
#: The answer is in the first line, which is not longer.
_STATUS_BYTES = 64
#: The rest is read too, up to here: closing a connection with unread bytes would reset it at the pod's end.
_REST_BYTES = 1 << 20
_PIECE = 16_384
_GOOD = range(200, 400)
#: What to wait for, by the names of the errors with which TLS asks for it.
_WAITS_FOR = {"SSLWantReadError": select.POLLIN, "SSLWantWriteError": select.POLLOUT}

#: An `ssl.SSLContext`, which is loaded for probes over TLS only; None without TLS.
Tls = Any
#: A non-blocking socket of the pod's network and the addresses at which its programs may listen, best first.
Connect = Callable[[], tuple[socket.socket, list[str]]]


class Question:
    """One question on its way: connect, handshake, send, read the first line, and then the rest of the answer.

    Where there is nothing to get, a connection is answer enough.
    """

    def __init__(self, check: ReadinessCheck, connect: Connect, tls: Tls) -> None:
        self._check = check
        self._connect = connect
        self._tls = tls
        self._addresses: list[str] = []
        self._tried = 0
        self._socket: socket.socket | None = None
        self._stage = "connect"
        self._answer = b""
        self._request = b""
        self._rest = 0
        #: What `poll` is to wait for.
        self.events = select.POLLOUT

    def begin(self) -> bool | None:
        """Set out. True or False when the result is known at once; None while it is on its way."""
        self.close()
        try:
            self._socket, self._addresses = self._connect()
            address = self._addresses[self._tried]
            self._request = _render_request(self._check, address)
            self._socket.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                self._socket.connect((address, self._check.port))
        except OSError:
            return self._begin_elsewhere()
        self._stage, self.events = "connect", select.POLLOUT
        return None

    def _begin_elsewhere(self) -> bool | None:
        """A program that does not listen at the pod's address may listen at its loopback."""
        self._tried += 1
        if self._tried < len(self._addresses):
            return self.begin()
        return False

    def fileno(self) -> int:
        return self._socket.fileno() if self._socket is not None else -1

    def step(self) -> bool | None:
        """Go on as far as possible without waiting."""
        link = self._socket
        if link is None:
            return False
        try:
            if self._stage == "connect":
                if link.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    return self._begin_elsewhere()
                if not self._check.is_http:
                    with contextlib.suppress(OSError):
                        link.shutdown(socket.SHUT_WR)
                    return True
                if self._tls is not None:
                    self._socket = link = self._tls.wrap_socket(link, do_handshake_on_connect=False)
                self._stage = "handshake"
            if self._stage == "handshake":
                if self._tls is not None:
                    _shake_hands(link)
                link.send(self._request)
                self._stage, self.events = "answer", select.POLLIN
            return self._read_status(link)
        except BlockingIOError:
            self.events = select.POLLIN
        except OSError as error:
            # TLS says what it waits for by errors; anything else is refused, reset, or no TLS at the other end.
            waits_for = _WAITS_FOR.get(type(error).__name__)
            if waits_for is None:
                return False
            self.events = waits_for
        return None

    def _read_status(self, link: socket.socket) -> bool | None:
        while b"\n" not in self._answer and len(self._answer) < _STATUS_BYTES:
            piece = link.recv(_STATUS_BYTES)
            if not piece:
                break
            self._answer += piece
        parts = self._answer.split(None, 2)
        return len(parts) > 1 and parts[0].startswith(b"HTTP/") and parts[1].isdigit() and int(parts[1]) in _GOOD

    def read_rest(self) -> bool:
        """Read on after the result is known, without waiting; True when the connection can be closed."""
        link = self._socket
        try:
            while link is not None and self._rest < _REST_BYTES and (piece := link.recv(_PIECE)):
                self._rest += len(piece)
        except BlockingIOError:
            return False
        except OSError as error:
            return type(error).__name__ not in _WAITS_FOR
        return True

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _render_request(check: ReadinessCheck, address: str) -> bytes:
    """The request; `host` is only what the Host header says, the connection always goes to the pod."""
    host = check.host or f"{address}:{check.port}"
    lines = (
        f"GET {check.path} HTTP/1.1",
        f"Host: {host}",
        "User-Agent: fairlead-probe",
        "Accept: */*",
        "Connection: close",
        "",
        "",
    )
    return "\r\n".join(lines).encode("latin-1")


def _shake_hands(link: Any) -> None:
    link.do_handshake()


def _load_tls() -> Tls:
    """TLS without verification: a probe asks the pod itself, whatever its certificate says.

    Loaded here and not above: it would be memory in every supervisor, and few probes use it.
    """
    ssl = importlib.import_module("ssl")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Prober:
    """Probes by the check's times and thresholds. `is_ready` is what follows from the answers so far."""

    def __init__(self, check: ReadinessCheck, poll: select.poll, connect: Connect, now: float) -> None:
        self._check = check
        self._poll = poll
        self._connect = connect
        self._tls = _load_tls() if check.is_tls else None
        self._question: Question | None = None
        self._registered = -1
        #: The last question with an answer, while the rest of it is read.
        self._answered: Question | None = None
        self._asked_at = 0.0
        self._next_at = now + check.initial_delay
        #: Good (positive) or bad (negative) answers in a row.
        self._row = 0
        self._was_ready = False
        self.is_ready = False

    def has(self, descriptor: int) -> bool:
        return descriptor >= 0 and (descriptor == self._registered or self._is_rest(descriptor))

    def _is_rest(self, descriptor: int) -> bool:
        return self._answered is not None and descriptor == self._answered.fileno()

    def wait(self, now: float) -> float:
        """Seconds until something is due by time."""
        due = self._asked_at + self._check.timeout if self._question is not None else self._next_at
        return max(0.0, due - now)

    def step(self, descriptor: int, now: float) -> bool:
        """The question on its way can go on, or the rest of the last answer; True when readiness changed."""
        if self._is_rest(descriptor):
            if self._answered is not None and self._answered.read_rest():
                self._close_answered()
            return False
        if self._question is None:
            return False
        self._forget_descriptor()
        return self._follow(self._question.step(), now)

    def tick(self, now: float) -> bool:
        """See what is due by time; True when readiness changed."""
        if self._question is not None:
            if now < self._asked_at + self._check.timeout:
                return False
            self._forget_descriptor()
            self._question.close()
            return self._record_answer(False, now)
        if now < self._next_at:
            return False
        self._question = Question(self._check, self._connect, self._tls)
        self._asked_at = now
        return self._follow(self._question.begin(), now)

    def _follow(self, result: bool | None, now: float) -> bool:
        if result is None and self._question is not None:
            self._registered = self._question.fileno()
            self._poll.register(self._registered, self._question.events)
            return False
        return self._record_answer(bool(result), now)

    def _forget_descriptor(self) -> None:
        if self._registered >= 0:
            self._poll.unregister(self._registered)
            self._registered = -1

    def _record_answer(self, is_good: bool, now: float) -> bool:
        self._forget_descriptor()
        if self._question is not None:
            self._close_answered()
            if self._question.read_rest():
                self._question.close()
            else:
                self._answered = self._question
                self._poll.register(self._answered.fileno(), select.POLLIN)
            self._question = None
        self._row = max(self._row, 0) + 1 if is_good else min(self._row, 0) - 1
        before = self.is_ready
        if self._row >= self._check.success_threshold:
            self.is_ready = self._was_ready = True
        elif self._row <= -self._check.failure_threshold:
            self.is_ready = False
        pause = self._check.period if self._was_ready else EAGER_SECONDS
        self._next_at = max(now, self._asked_at + pause)
        return self.is_ready != before

    def _close_answered(self) -> None:
        if self._answered is not None:
            self._poll.unregister(self._answered.fileno())
            self._answered.close()
            self._answered = None

    def close(self) -> None:
        self._forget_descriptor()
        self._close_answered()
        if self._question is not None:
            self._question.close()
