"""Output of pods that are gone: what is asked for of it, how much of it is kept, and for how long."""

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.engines.base import LogRequest
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.kept_logs import KeptLogs, select
from fairlead.model.errors import NotFound, Unavailable

OUTPUT = (
    b"2026-01-01T00:00:01.000000001Z one\n2026-01-01T00:00:02.5Z two words\n2026-01-01T01:00:03.123456789+01:00 three\n"
)
ONE, TWO, THREE = (line + b"\n" for line in (b"one", b"two words", b"three"))
#: 2026-01-01T00:00:02Z
SECOND_TWO = 1_767_225_602_000


@pytest.mark.parametrize(
    ("asked", "want"),
    [
        pytest.param({}, ONE + TWO + THREE, id="all"),
        pytest.param({"timestamps": True}, OUTPUT, id="with times"),
        pytest.param({"tail": 1}, THREE, id="the last line"),
        pytest.param({"tail": 0}, b"", id="no line"),
        pytest.param({"tail": 9}, ONE + TWO + THREE, id="more lines than there are"),
        pytest.param({"since": SECOND_TWO}, TWO + THREE, id="since a time"),
        pytest.param({"since": SECOND_TWO, "tail": 1, "timestamps": True}, OUTPUT.splitlines(True)[2], id="together"),
        pytest.param({"limit_bytes": 2}, b"on", id="so many bytes"),
    ],
)
def test_what_is_asked_for(asked: dict[str, Any], want: bytes) -> None:
    assert select(OUTPUT, LogRequest(pod_id="p", **asked)) == want


def pod(id: str = "p", phase: str = "Succeeded", *, restarts: int = 0, **members: Any) -> objects.Pod:
    state = {"terminated": {"exitCode": 0}} if phase == "Succeeded" else {"running": {}}
    containers = [{"name": "main", "state": state, "restartCount": restarts}]
    body = {
        "metadata": {"name": id, "uid": id, **members},
        "status": {"phase": phase, "containerStatuses": [] if phase == "Pending" else containers},
    }
    return msgspec.convert(body, objects.Pod)


def keep(logs: KeptLogs, given: objects.Pod, *pieces: bytes | Exception) -> list[LogRequest]:
    """Tell it of a pod with this output; the requests that follow."""
    asked: list[LogRequest] = []

    async def stream(of: objects.Pod, request: LogRequest) -> AsyncIterator[bytes]:
        asked.append(request)
        for piece in pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def run() -> None:
        work: list[Coroutine[None, None, None]] = []
        logs.notice(given, stream, work.append)
        logs.notice(given, stream, work.append)
        await asyncio.gather(*work)

    asyncio.run(run())
    return asked


def read(logs: KeptLogs, id: str = "p", **asked: Any) -> bytes:
    async def run() -> bytes:
        return b"".join([piece async for piece in logs.read(LogRequest(pod_id=id, **asked))])

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param(pod(), [False], id="ended"),
        pytest.param(pod(phase="Running", deletionTimestamp="2026-01-01T00:00:00Z"), [True], id="being deleted"),
        pytest.param(pod(phase="Running"), [], id="runs on"),
        pytest.param(pod(phase="Pending", deletionTimestamp="2026-01-01T00:00:00Z"), [], id="never started"),
    ],
)
def test_whose_output_is_kept(given: objects.Pod, want: list[bool], tmp_path: Path) -> None:
    logs = KeptLogs(tmp_path / "logs", 1000)
    assert [request.follow for request in keep(logs, given, OUTPUT)] == want
    assert logs.has("p") is bool(want)


def test_output_is_there_after_a_restart(tmp_path: Path) -> None:
    keep(KeptLogs(tmp_path, 1000), pod(restarts=2), OUTPUT)
    (tmp_path / "half.part").write_bytes(b"")
    again = KeptLogs(tmp_path, 1000)
    assert read(again) == read(again, attempt=3) == ONE + TWO + THREE
    assert keep(again, pod(restarts=2), b"other") == []
    with pytest.raises(NotFound, match="this attempt was not kept"):
        read(again, attempt=2)
    assert [path.name for path in tmp_path.iterdir()] == ["p.3.log"]
    assert (tmp_path / "p.3.log").stat().st_mode & 0o777 == 0o600


def test_output_that_is_cut_off_is_read_again(tmp_path: Path) -> None:
    logs = KeptLogs(tmp_path, 1000)
    keep(logs, pod(), b"2026-01-01T00:00:01Z o", Unavailable("cut off"))
    assert not logs.has("p")
    assert list(tmp_path.iterdir()) == []
    keep(logs, pod(), OUTPUT)
    assert logs.has("p")


def test_of_very_long_output_the_end_is_kept(tmp_path: Path) -> None:
    line = b"2026-01-01T00:00:01Z " + b"x" * 1002 + b"\n"
    logs = KeptLogs(tmp_path, 1 << 30)
    keep(logs, pod(), *[line * 1000] * 25, b"2026-01-01T00:00:02Z the end\n")
    size = (tmp_path / "p.1.log").stat().st_size
    assert 9 << 20 < size <= 10 << 20
    kept = read(logs)
    assert kept.endswith(b"x\nthe end\n")
    assert set(kept.splitlines()[:-1]) == {b"x" * 1002}


@pytest.mark.parametrize(
    ("before", "most_bytes", "want"),
    [
        pytest.param(0, 1000, ["a", "b", "c"], id="everything fits"),
        pytest.param(15_000, 1000, ["b", "c"], id="too old"),
        pytest.param(0, 25, ["b", "c"], id="too much"),
        pytest.param(25_000, 5, [], id="both"),
    ],
)
def test_retention(before: int, most_bytes: int, want: list[str], tmp_path: Path) -> None:
    for number, id in enumerate("abc", start=1):
        path = tmp_path / f"{id}.1.log"
        path.write_bytes(b"0123456789")
        os.utime(path, (number * 10, number * 10))
    logs = KeptLogs(tmp_path, most_bytes)
    assert logs.expire(before) == 3 - len(want)
    assert sorted(path.name[0] for path in tmp_path.iterdir()) == [id for id in "abc" if logs.has(id)] == want


def test_output_of_forgotten_pods_is_dropped(tmp_path: Path) -> None:
    logs = KeptLogs(tmp_path, 1000)
    keep(logs, pod(), OUTPUT)
    logs.drop(["p", "unknown"])
    assert (logs.has("p"), list(tmp_path.iterdir())) == (False, [])
