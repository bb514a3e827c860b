"""The output of deleted pods, read from Loki: answers of a real Loki 3.5.5, recorded. `tests/kubernetes/test_loki.py`
asks a real one.

Recorded again by `python -m tests.contract.test_loki URL`, with the URL of a Loki that accepts lines of that time.
"""

import asyncio
import http.server
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from fairlead.engines.base import LogRequest
from fairlead.engines.kubernetes.engine import EngineSettings
from fairlead.engines.kubernetes.loki import Loki
from fairlead.model.errors import NotFound, Refused, Unavailable
from fairlead.model.pods.origin import PodOrigin
from tests.contract.fake_cluster import Cluster, ClusterHarness
from tests.loki_lines import LINES, NAMESPACE, POD, SECOND, send, times

RECORDED = Path(__file__).parent / "data" / "loki.json"
#: When the lines were written, in seconds.
THEN = 1_794_981_600
ORIGIN = PodOrigin(
    namespace=NAMESPACE, pod=POD, container="main", created_at=THEN * 1000, ended_at=THEN * 1000 + 60_000
)
#: Smaller than the output, and so that the fourth and fifth line are on two pages.
PAGE = 4

CASES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "everything": ({}, LINES),
    "the last lines": ({"tail": 3}, LINES[-3:]),
    "more last lines than a page has": ({"tail": 7}, LINES[-7:]),
    "more last lines than there are": ({"tail": 50}, LINES),
    "since a time": ({"since": THEN * 1000 + 8_000}, LINES[9:]),
}


async def _read(loki: Loki, request: LogRequest) -> bytes:
    return b"".join([piece async for piece in loki.read(request)])


def read(url: str, **asked: Any) -> str:
    request = LogRequest(**{"pod_id": "p", "origin": ORIGIN, **asked})
    return asyncio.run(_read(Loki(url, page=PAGE), request)).decode()


class Replay(http.server.BaseHTTPRequestHandler):
    """Answers as it was recorded; a question that was not is refused."""

    answers: ClassVar[dict[str, Any]] = {}

    def do_GET(self) -> None:
        answer = self.answers.get(self.path)
        content = b"no such recording" if answer is None else json.dumps(answer).encode()
        self.send_response(400 if answer is None else 200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    Replay.answers = json.loads(RECORDED.read_text())
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Replay)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("name", CASES)
def test_what_is_asked_for_is_read(url: str, name: str) -> None:
    asked, want_lines = CASES[name]
    assert read(url, **asked).splitlines() == list(want_lines)


def test_times_are_those_of_the_lines(url: str) -> None:
    first, *_ = read(url, timestamps=True).splitlines()
    assert times(THEN * SECOND)[0] % SECOND == 123_456_789
    assert first == f"2026-11-18T06:00:00.123456789Z {LINES[0]}"


def test_no_more_bytes_than_asked_for(url: str) -> None:
    assert read(url, limit_bytes=10) == LINES[0][:10]


def test_a_pod_of_which_loki_has_nothing(url: str) -> None:
    with pytest.raises(NotFound, match="Loki has no output of it"):
        read(url, origin=msgspec.structs.replace(ORIGIN, pod="unknown"))


def test_attempts_are_not_distinguished(url: str) -> None:
    with pytest.raises(NotFound, match="attempts"):
        read(url, attempt=2)


def test_a_refusal_has_the_message_of_loki(url: str) -> None:
    with pytest.raises(Refused, match=r"HTTP 400.*no such recording"):
        read(url, origin=msgspec.structs.replace(ORIGIN, pod="never-recorded"))


def test_a_loki_that_is_away() -> None:
    with pytest.raises(Unavailable, match="does not answer"):
        read("http://127.0.0.1:1")


def test_the_engine_asks_loki_for_pods_that_are_gone(url: str) -> None:
    async def ask() -> bytes:
        async with ClusterHarness(Cluster(), EngineSettings(loki=Loki(url, page=PAGE))).open() as harness:
            request = LogRequest(pod_id="gone", origin=ORIGIN)
            return b"".join([piece async for piece in harness.engine.sessions.logs(request)])

    assert asyncio.run(ask()).decode().splitlines() == list(LINES)


class Recorder(Loki):
    """Notes what a real Loki answers, without what differs from run to run."""

    def __init__(self, url: str) -> None:
        super().__init__(url, page=PAGE)
        self._base = url
        self.answers: dict[str, Any] = {}

    def _ask(self, url: str) -> bytes:
        content = super()._ask(url)
        answer = json.loads(content)
        answer["data"].pop("stats", None)
        self.answers[url.removeprefix(self._base)] = answer
        return content


def record(url: str) -> None:
    send(url, THEN * SECOND)
    recorder = Recorder(url)
    asked = [asked for asked, _ in CASES.values()] + [{"limit_bytes": 10}]
    for one in (*asked, {"origin": msgspec.structs.replace(ORIGIN, pod="unknown")}):
        try:
            asyncio.run(_read(recorder, LogRequest(**{"pod_id": "p", "origin": ORIGIN, **one})))
        except NotFound as error:
            print(error, file=sys.stderr)
    RECORDED.write_text(json.dumps(recorder.answers, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    record(sys.argv[1])
