"""The export of the audit: every line once and in order, to a file or to syslog, also after failures and restarts."""

import asyncio
import json
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairlead.control.audit_export import AuditExporter, FileSink, SyslogSink, make_sink
from fairlead.model.errors import Refused
from fairlead.model.records.event import AuditLine
from fairlead.store.base import Change, Store
from fairlead.store.sqlite import open_sqlite

NOW = 1_700_000_000_000


class BrokenSink:
    """Takes nothing until it is repaired."""

    def __init__(self) -> None:
        self.is_broken = True
        self.lines: list[str] = []

    def send(self, lines: Sequence[str]) -> None:
        if self.is_broken:
            raise OSError("no space left")
        self.lines += lines


def _line(name: str, at: int = NOW) -> AuditLine:
    changes: dict[str, tuple[object, object]] = {"name": ("a", name)}
    return AuditLine(at=at, caller="ann", operation="update", subject="projects", subject_id=name, changes=changes)


async def _write(store: Store, *names: str, at: int = NOW) -> None:
    await store.commit(Change(audit=tuple(_line(name, at) for name in names)))


def _subjects(texts: Sequence[str]) -> list[str]:
    return [json.loads(text)["subject_id"] for text in texts]


def test_a_file_gets_every_line_once(tmp_path: Path) -> None:
    async def run() -> None:
        store = await open_sqlite(tmp_path / "fairlead.db")
        try:
            target = tmp_path / "audit.jsonl"
            first = AuditExporter(store, lambda: NOW, FileSink(target), tmp_path / "position")
            await _write(store, "one", "two")
            assert await first.export(NOW) == 2
            assert await first.export(NOW) == 0
            # Another server process goes on where the first one ended; the file was rotated in between.
            target.rename(tmp_path / "audit.jsonl.1")
            await _write(store, "three")
            again = AuditExporter(store, lambda: NOW, FileSink(target), tmp_path / "position")
            assert await again.export(NOW) == 1
        finally:
            await store.close()

    asyncio.run(run())
    assert _subjects((tmp_path / "audit.jsonl.1").read_text().splitlines()) == ["one", "two"]
    (line,) = (tmp_path / "audit.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.000Z",
        "number": 3,
        "caller": "ann",
        "operation": "update",
        "subject": "projects",
        "subject_id": "three",
        "changes": {"name": ["a", "three"]},
    }


def test_lines_wait_while_the_target_is_broken_or_they_are_too_young(tmp_path: Path) -> None:
    async def run() -> list[str]:
        store = await open_sqlite(tmp_path / "fairlead.db")
        sink = BrokenSink()
        exporter = AuditExporter(store, lambda: NOW, sink, tmp_path / "position")
        try:
            await _write(store, "old")
            await _write(store, "young", at=NOW + 1)
            with pytest.raises(OSError, match="no space left"):
                await exporter.export(NOW)
            sink.is_broken = False
            assert await exporter.export(NOW) == 1
            assert await exporter.export(NOW + 1) == 1
        finally:
            await store.close()
        return sink.lines

    assert _subjects(asyncio.run(run())) == ["old", "young"]


def test_what_is_left_is_sent_when_the_server_stops(tmp_path: Path) -> None:
    async def run() -> list[str]:
        store = await open_sqlite(tmp_path / "fairlead.db")
        sink = BrokenSink()
        sink.is_broken = False
        exporter = AuditExporter(store, lambda: NOW, sink, tmp_path / "position")
        try:
            exporter.start()
            await _write(store, "last")
            await exporter.stop()
        finally:
            await store.close()
        return sink.lines

    assert _subjects(asyncio.run(run())) == ["last"]


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX], ids=["network", "machine"])
def test_syslog_gets_a_message_per_line(tmp_path: Path, family: socket.AddressFamily) -> None:
    with socket.socket(family, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0) if family == socket.AF_INET else str(tmp_path / "log"))
        listening.settimeout(60)
        address = listening.getsockname()
        SyslogSink(address).send(['{"number":1}', '{"number":2}'])
        # 38 is the facility auth with the severity info.
        assert listening.recv(1000) == b'<38>fairlead: {"number":1}\0'
        assert listening.recv(1000) == b'<38>fairlead: {"number":2}\0'


def test_a_syslog_that_is_away_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError):  # noqa: PT011 - the message is the system's
        SyslogSink(str(tmp_path / "nowhere")).send(["{}"])


@pytest.mark.parametrize(
    ("target", "want"),
    [
        ("syslog", "/dev/log"),
        ("syslog:///run/other", "/run/other"),
        ("syslog://logs.example", ("logs.example", 514)),
        ("syslog://logs.example:6514", ("logs.example", 6514)),
    ],
)
def test_targets(target: str, want: object) -> None:
    sink = make_sink(target)
    assert isinstance(sink, SyslogSink)
    assert sink.address == want
    assert isinstance(make_sink("audit.jsonl"), FileSink)
    with pytest.raises(Refused, match="not a valid target"):
        make_sink("syslog://logs.example:port")
    for missing in ("file:/var/log/audit.jsonl", "http://logs.example/audit", "/no/such/folder/audit.jsonl"):
        with pytest.raises(Refused, match="there is no folder"):
            make_sink(missing)
