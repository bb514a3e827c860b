"""Sends the lines of the audit to a file or to syslog as they are written, each as one line of JSON.

Created and started by `app`. The number of the last line that was sent is kept in a file, so a line is sent again only
if the server dies between sending and noting it, and none is left out.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Sequence
from logging.handlers import SysLogHandler
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from fairlead.model.clock import SECOND, Clock, iso
from fairlead.model.errors import FairleadError, Refused
from fairlead.model.records.event import AuditLine
from fairlead.store.base import Comparison, Query, Store, Where
from fairlead.store.collections import AUDIT

log = logging.getLogger("fairlead.audit")
#: Seconds between two looks at the audit, and the longest wait after a failure.
_PAUSE = 2.0
_LONGEST_PAUSE = 60.0
#: Lines that are sent at once, and how old they must be: two servers on one database may commit in another order than
#: that of their numbers.
_BATCH = 1000
_AGE = 2 * SECOND
_SYSLOG = "syslog"
_SYSLOG_SOCKET = "/dev/log"
_SYSLOG_PORT = 514


class Sink(Protocol):
    """Where lines go. `send` raises OSError if they did not arrive."""

    def send(self, lines: Sequence[str]) -> None: ...


class FileSink:
    """Appends to a file. It is opened each time, so it can be rotated."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def send(self, lines: Sequence[str]) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())


class SyslogSink:
    """Sends to the machine's syslog, or to one in the network (UDP), with the facility `auth`."""

    def __init__(self, address: str | tuple[str, int]) -> None:
        self.address = address

    def send(self, lines: Sequence[str]) -> None:
        with contextlib.closing(_Handler(self.address, SysLogHandler.LOG_AUTH, socket.SOCK_DGRAM)) as handler:
            handler.ident = "fairlead: "
            for line in lines:
                handler.emit(logging.LogRecord("audit", logging.INFO, "", 0, line, None, None))


class _Handler(SysLogHandler):
    """Raises what the handler of the standard library would only print."""

    def handleError(self, record: logging.LogRecord) -> None:
        raise


def make_sink(target: str) -> Sink:
    """The sink of a flag: the path of a file, `syslog`, `syslog:///SOCKET` or `syslog://HOST[:PORT]`."""
    if target != _SYSLOG and not target.startswith(f"{_SYSLOG}:"):
        path = Path(target).absolute()
        if not path.parent.is_dir():
            raise Refused(
                f"The audit log cannot be sent to {target[:200]}: there is no folder {path.parent}; "
                "create it, or give another file, syslog or syslog://HOST"
            )
        return FileSink(path)
    parts = urlsplit(target)
    try:
        port = parts.port or _SYSLOG_PORT
    except ValueError as error:
        raise Refused(f"{target[:200]} is not a valid target for the audit log: {error}") from error
    if parts.hostname:
        return SyslogSink((parts.hostname, port))
    return SyslogSink(parts.path if parts.scheme and parts.path else _SYSLOG_SOCKET)


class AuditExporter:
    def __init__(self, store: Store, clock: Clock, sink: Sink, position: Path) -> None:
        self._store = store
        self._clock = clock
        self._sink = sink
        self._position = position
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop, and send what is still to be sent."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        with contextlib.suppress(OSError, FairleadError):
            await self.export(self._clock())

    async def _run(self) -> None:
        pause = _PAUSE
        while True:
            try:
                await self.export(self._clock() - _AGE)
                pause = _PAUSE
            except (OSError, FairleadError) as error:
                pause = min(pause * 2, _LONGEST_PAUSE)
                log.warning("The audit log cannot be exported yet, retrying in %d seconds: %s", pause, error)
            await asyncio.sleep(pause)

    async def export(self, until: int) -> int:
        """Send the lines up to that time that were not sent yet; returns their number. Raises OSError."""
        sent = 0
        while True:
            last = self._load_position()
            query = Query(
                collection=AUDIT,
                where=(Where("number", Comparison.ABOVE, last), Where("at", Comparison.AT_MOST, until)),
                order=(("number", False),),
                limit=_BATCH,
            )
            lines: list[AuditLine] = await self._store.find(query)
            if not lines:
                return sent
            await asyncio.to_thread(self._sink.send, [render_line(line) for line in lines])
            self._save_position(lines[-1].number)
            sent += len(lines)

    def _load_position(self) -> int:
        try:
            return int(self._position.read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            return 0

    def _save_position(self, number: int) -> None:
        temporary = self._position.with_suffix(".new")
        temporary.write_text(str(number), encoding="ascii")
        temporary.replace(self._position)


def render_line(line: AuditLine) -> str:
    """A line of the audit as JSON, with its time as text."""
    members = msgspec.to_builtins(line)
    at = members.pop("at")
    return msgspec.json.encode({"time": iso(at), **members}).decode()
