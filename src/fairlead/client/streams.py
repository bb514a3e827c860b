"""Streams: the output of a pod, and the changes of workloads. Created by `Client`."""

import json
import time
from collections.abc import Callable, Iterator

from fairlead.client.connection import Connection, Response
from fairlead.client.json_object import Json

#: A socket with a timeout of 0 does not even read what has arrived already.
_NO_TIME = 0.001


class Deadline:
    """The time at which a wait ends; None is never."""

    def __init__(self, seconds: float | None) -> None:
        self._at = None if seconds is None else time.monotonic() + seconds

    def left(self) -> float | None:
        return None if self._at is None else max(self._at - time.monotonic(), _NO_TIME)

    def is_over(self) -> bool:
        return self.left() == _NO_TIME


class Stream:
    """A streamed answer and its connection, which is closed at its end."""

    def __init__(self, connection: Connection, response: Response) -> None:
        self._connection = connection
        self._response = response

    def pieces(self) -> Iterator[bytes]:
        try:
            yield from self._response.pieces()
        finally:
            self._connection.close()

    def lines(self) -> Iterator[bytes]:
        try:
            yield from self._response.lines()
        finally:
            self._connection.close()

    def wait_at_most(self, seconds: float | None) -> None:
        self._connection.wait_at_most(seconds)

    def close(self) -> None:
        self._connection.close()


class Watch:
    """A stream of changes, each a dict: `revision`, `workloadId`, `reason`, `message` and the present `workload`."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        #: The last revision that was received; a new watch can start after it.
        self.revision: int | None = None

    def changes(self, silence: Callable[[], float | None] = lambda: None) -> Iterator[Json | None]:
        """Yield every change, and None from time to time while there is none. `silence` limits the wait."""
        data: list[bytes] = []
        self._stream.wait_at_most(silence())
        for line in self._stream.lines():
            name, _, value = line.rstrip(b"\r").partition(b":")
            value = value.removeprefix(b" ")
            if name == b"id" and value.isdigit():
                self.revision = int(value)
            elif name == b"data":
                data.append(value)
            elif not line:
                yield json.loads(b"\n".join(data)) if data else None
                data = []
                self._stream.wait_at_most(silence())

    def close(self) -> None:
        self._stream.close()
