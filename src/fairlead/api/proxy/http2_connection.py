"""One end of an HTTP/2 connection: streams as queues of events, frames as bytes, flow control as waiting.

The reverse proxy has one to the caller and others to pods (`http2.py`). The protocol is implemented by the h2
library; nothing here knows what the streams are for.
"""

import asyncio
from collections.abc import Callable, Iterable

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    ResponseReceived,
    StreamReset,
    TrailersReceived,
    WindowUpdated,
)
from h2.exceptions import H2Error

PREFACE = b"PRI * HTTP/2.0\r\n\r\n"
Headers = Iterable[tuple[bytes, bytes]]
#: The events of a stream.
StreamEvent = RequestReceived | ResponseReceived | DataReceived | TrailersReceived

_PIECE = 64 * 1024
#: How much the other side may send on all streams together before it is acknowledged.
_WINDOW = 1024 * 1024


class StreamLost(Exception):
    """The stream or its connection was closed."""


class Http2Connection:
    """`opened` is called for each stream that the other side opens, `reset` for each that it cancels."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        opened: Callable[[int, RequestReceived], None] | None = None,
        reset: Callable[[int], None] | None = None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._opened = opened
        self._reset = reset
        self._link = H2Connection(H2Configuration(client_side=opened is None, header_encoding=None))
        self._inboxes: dict[int, asyncio.Queue[StreamEvent | None]] = {}
        self._room = asyncio.Event()
        #: Whether new streams can be opened.
        self.is_open = True
        self._link.initiate_connection()
        self._link.increment_flow_control_window(_WINDOW)
        self._flush()

    async def run(self, first: bytes, idle_seconds: float) -> None:
        """Read until the connection ends, or has been idle for so long without an open stream."""
        data = first
        try:
            while True:
                for event in self._link.receive_data(data) if data else ():
                    self._note(event)
                self._flush()
                await self._writer.drain()
                try:
                    async with asyncio.timeout(idle_seconds):
                        data = await self._reader.read(_PIECE)
                except TimeoutError:
                    if self._inboxes:
                        data = b""
                        continue
                    self._link.close_connection()
                    break
                if not data:
                    break
        except (H2Error, OSError):
            pass  # a protocol error, or it disconnected; the reply tells which
        finally:
            self.close()

    def close(self) -> None:
        self.is_open = False
        self._flush()
        for inbox in self._inboxes.values():
            inbox.put_nowait(None)
        self._room.set()
        self._writer.close()

    def _note(self, event: Event) -> None:
        if isinstance(event, RequestReceived) and self._opened is not None and event.stream_id is not None:
            self._inboxes[event.stream_id] = asyncio.Queue()
            self._opened(event.stream_id, event)
        elif isinstance(event, ResponseReceived | DataReceived | TrailersReceived) and event.stream_id is not None:
            if event.stream_id in self._inboxes:
                self._inboxes[event.stream_id].put_nowait(event)
            elif isinstance(event, DataReceived):
                self.acknowledge(event)  # the stream is already closed
        elif isinstance(event, StreamReset) and event.stream_id is not None:
            if event.stream_id in self._inboxes:
                self._inboxes[event.stream_id].put_nowait(None)
                if self._reset is not None:
                    self._reset(event.stream_id)
        elif isinstance(event, ConnectionTerminated):
            self.is_open = False
        if isinstance(event, WindowUpdated | RemoteSettingsChanged | StreamReset):
            self._room.set()
            self._room = asyncio.Event()

    # Streams

    def begin(self, headers: Headers, *, ended: bool) -> int:
        """Open a stream to the other side and return its number."""
        try:
            number = self._link.get_next_available_stream_id()
            self._link.send_headers(number, list(headers), end_stream=ended)
        except H2Error as error:
            raise StreamLost(str(error)) from error
        self._inboxes[number] = asyncio.Queue()
        self._flush()
        return number

    async def next(self, number: int) -> StreamEvent:
        """The next event of a stream. Raises `StreamLost`."""
        event = await self._inboxes[number].get()
        if event is None:
            raise StreamLost("the other side cancelled the stream")
        return event

    def acknowledge(self, event: DataReceived) -> None:
        """Acknowledge data that was passed on, so that the other side may send more."""
        if event.stream_id is None or not event.flow_controlled_length:
            return
        try:
            self._link.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        except H2Error:
            return  # the connection is closed
        self._flush()

    def send_headers(self, number: int, headers: Headers, *, ended: bool) -> None:
        try:
            self._link.send_headers(number, list(headers), end_stream=ended)
        except H2Error as error:
            raise StreamLost(str(error)) from error
        self._flush()

    async def send_data(self, number: int, data: bytes, *, ended: bool) -> None:
        """Send data as the other side's flow control allows."""
        remaining = memoryview(data)
        while True:
            try:
                room = min(self._link.local_flow_control_window(number), self._link.max_outbound_frame_size)
                if len(remaining) <= room:
                    self._link.send_data(number, bytes(remaining), end_stream=ended)
                    break
                if room > 0:
                    self._link.send_data(number, bytes(remaining[:room]))
                    remaining = remaining[room:]
            except H2Error as error:
                raise StreamLost(str(error)) from error
            self._flush()
            await (self._writer.drain() if room > 0 else self._wait_for_room())
        self._flush()
        await self._writer.drain()

    async def _wait_for_room(self) -> None:
        if self._writer.is_closing():
            raise StreamLost("the connection is closed")
        await self._room.wait()

    def end(self, number: int, code: ErrorCodes = ErrorCodes.CANCEL) -> None:
        """Stop using a stream; resets it if it has not ended."""
        self._inboxes.pop(number, None)
        try:
            self._link.reset_stream(number, code)
        except H2Error:
            return  # both sides have closed the stream
        self._flush()

    def _flush(self) -> None:
        data = self._link.data_to_send()
        if data and not self._writer.is_closing():
            self._writer.write(data)


async def relay(source: Http2Connection, number: int, target: Http2Connection, other: int) -> None:
    """Pass the events of a stream on to a stream of the other side until it ends."""
    while True:
        event = await source.next(number)
        ended = event.stream_ended is not None
        if isinstance(event, DataReceived):
            await target.send_data(other, event.data or b"", ended=ended)
            source.acknowledge(event)
        else:
            target.send_headers(other, event.headers or (), ended=ended)
        if ended:
            return
