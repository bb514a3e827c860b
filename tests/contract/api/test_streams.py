"""Streams of our own: the watch that misses nothing, and the output of pods."""

import http.client
import json
import time
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from fairlead.api.application import RequestSettings
from fairlead.model.records.event import Event
from fairlead.model.records.phase import PodPhase
from fairlead.store.base import Change, Delete
from fairlead.store.collections import EVENTS
from tests import builders
from tests.contract.api.api_server import START, ApiServer

WATCH = "/api/v1/workloads/watch"


class Watch:
    """Reads one message after another; each read has the connection's deadline."""

    def __init__(self, api: ApiServer, query: str = "", last: str = "") -> None:
        headers = {"Last-Event-ID": last} if last else {}
        self.connection, self.response = api.open("GET", WATCH + query, headers=headers)
        assert self.response.status == 200, self.response.read()
        assert self.response.getheader("content-type", "").startswith("text/event-stream")
        assert self._lines() == [": watching"]

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def _lines(self) -> list[str]:
        lines: list[str] = []
        while line := self.response.readline().decode().rstrip("\n"):
            lines.append(line)
        return lines

    def next(self) -> tuple[str, dict[str, Any]]:
        """The id and the data of the next message."""
        members = dict(line.split(": ", 1) for line in self._lines())
        assert members["event"] == "workload"
        return members["id"], json.loads(members["data"])


def test_what_happens_after_a_list_is_reported(api: ApiServer) -> None:
    listed = api.call("GET", "/api/v1/workloads")
    revision = listed.headers["x-fairlead-revision"]
    first = api.submit("watched-1")
    with Watch(api, f"?revision={revision}") as watch:
        id, change = watch.next()
        assert change["workloadId"] == first
        assert change["workload"]["name"] == "watched-1"
        assert int(id) == change["revision"] > int(revision)
        second = api.submit("watched-2")
        later, change = watch.next()
        assert change["workloadId"] == second
        assert int(later) > int(id)


def test_a_broken_watch_continues_where_it_was(api: ApiServer) -> None:
    revision = api.call("GET", "/api/v1/workloads").headers["x-fairlead-revision"]
    ids = [api.submit(f"resumed-{number}") for number in range(3)]
    with Watch(api, f"?revision={revision}") as watch:
        last, change = watch.next()
        assert change["workloadId"] == ids[0]
    with Watch(api, f"?revision={revision}", last) as watch:
        assert [watch.next()[1]["workloadId"] for _ in range(2)] == ids[1:]


def test_without_a_revision_it_starts_now(api: ApiServer) -> None:
    api.submit("before")
    with Watch(api) as watch:
        after = api.submit("after")
        assert watch.next()[1]["workloadId"] == after


def test_a_project_can_be_watched_alone(api: ApiServer) -> None:
    revision = api.call("GET", "/api/v1/workloads").headers["x-fairlead-revision"]
    other = Event(at=START, subject="workloads", subject_id="x", project_id="2", reason="Elsewhere")
    api.put(events=(other,))
    mine = api.submit("mine")
    with Watch(api, f"?revision={revision}&projectId=1") as watch:
        assert watch.next()[1]["workloadId"] == mine


def test_a_watch_that_is_left_makes_room_for_another(make_api: Callable[..., ApiServer]) -> None:
    api = make_api(limits=RequestSettings(watch_streams=1))
    with Watch(api):
        answer = api.call("GET", WATCH)
        assert answer.status == 429, answer
        assert answer.headers["retry-after"]
    deadline = time.monotonic() + 120
    while (status := _status_of_watch(api)) != 200:
        assert time.monotonic() < deadline, f"still {status} although the first watch was left"


def _status_of_watch(api: ApiServer) -> int:
    connection, response = api.open("GET", WATCH)
    connection.close()
    return response.status


def test_a_watch_from_before_what_is_kept_is_410_with_a_way_on(make_api: Callable[..., ApiServer]) -> None:
    api = make_api()
    api.submit("old")
    oldest = int(api.call("GET", "/api/v1/workloads").headers["x-fairlead-revision"])
    api.submit("new")
    drop = tuple(Delete(EVENTS, str(number)) for number in range(1, oldest + 1))
    api.do(api.context.store.commit(Change(writes=drop)))
    newest = int(api.call("GET", "/api/v1/workloads").headers["x-fairlead-revision"])
    for revision in (0, oldest - 1, newest + 1000):
        answer = api.call("GET", f"{WATCH}?revision={revision}")
        assert answer.status == 410, answer
        assert answer.json["listRevision"] == newest
    with Watch(api, f"?revision={oldest}") as watch:
        assert watch.next()[1]["workload"]["name"] == "new"


def test_browsers_get_the_same_compressed(api: ApiServer) -> None:
    """Streams that begin at different revisions share what is compressed after that."""
    revision = api.call("GET", "/api/v1/workloads").headers["x-fairlead-revision"]
    first = api.submit("compressed-1")
    streams = [Compressed(api, f"?revision={revision}"), Compressed(api)]
    second = api.submit("compressed-2")
    assert [stream.read_until(second)[0] for stream in streams] == [": watching"] * 2
    assert first in streams[0].text
    assert first not in streams[1].text


class Compressed:
    """Decodes what arrives, as a browser does."""

    def __init__(self, api: ApiServer, query: str = "") -> None:
        self.connection, self.response = api.open("GET", WATCH + query, headers={"Accept-Encoding": "gzip, br"})
        assert self.response.getheader("content-encoding") == "gzip"
        self._inflate = zlib.decompressobj(wbits=31)
        self.text = ""

    def read_until(self, wanted: str) -> list[str]:
        while wanted not in self.text:
            self.text += self._inflate.decompress(self.response.read1(65_536)).decode()
        self.connection.close()
        return self.text.splitlines()


@pytest.mark.parametrize("revision", ["-1", "x", "99999999999999999999999"])
def test_an_invalid_revision_is_400(api: ApiServer, revision: str) -> None:
    assert api.call("GET", f"{WATCH}?revision={revision}").status == 400


LOGGED = "66666666-6666-4666-8666-666666666666"


@pytest.fixture(scope="module")
def logged(api: ApiServer) -> ApiServer:
    api.put(
        builders.workload("logged", id=LOGGED, cluster_id=api.cluster_id),
        builders.pod("logged-0-0", id="pod-a", workload_id=LOGGED, created_at=START),
        builders.pod("logged-0-1", id="pod-b", workload_id=LOGGED, created_at=START + 1, attempt=3),
    )
    api.sessions.output = {"pod-a": [b"one\n", b"two\n"], "pod-b": [b"three\n"]}
    return api


def test_output_of_the_newest_or_the_named_pod(logged: ApiServer) -> None:
    newest = logged.call("GET", f"/api/v1/workloads/{LOGGED}/logs")
    assert (newest.status, newest.body) == (200, b"three\n")
    assert newest.headers["content-type"].startswith("text/plain")
    named = logged.call("GET", f"/api/v1/workloads/{LOGGED}/logs?pod=logged-0-0&follow=true")
    assert named.body == b"one\ntwo\n"


def test_all_that_can_be_asked_of_output_reaches_the_session(logged: ApiServer) -> None:
    query = "tail=5&since=10&timestamps=true&limitBytes=100&previous=true&follow=false"
    logged.call("GET", f"/api/v1/workloads/{LOGGED}/logs?{query}")
    asked = logged.sessions.asked[-1]
    assert (asked.pod_id, asked.attempt, asked.tail) == ("pod-b", 2, 5)
    assert (asked.since, asked.timestamps, asked.limit_bytes) == (START - 10_000, True, 100)


def test_the_previous_attempt_of_a_job_is_the_pod_before(logged: ApiServer) -> None:
    retried = "88888888-8888-4888-8888-888888888888"
    task: dict[str, Any] = {"workload_id": retried, "array_index": 1, "phase": PodPhase.FAILED}
    another: dict[str, Any] = task | {"array_index": 2}
    logged.put(
        builders.workload("retried", id=retried, cluster_id=logged.cluster_id),
        builders.pod("retried-0-0", id="first", created_at=START, completed_at=START + 5, **task),
        builders.pod("retried-0-1", id="other", created_at=START + 6, completed_at=START + 7, **another),
        builders.pod("retried-0-2", id="beside", created_at=START + 8, completed_at=START + 99, **task),
        builders.pod("retried-0-3", id="second", created_at=START + 9, **task),
    )
    logged.call("GET", f"/api/v1/workloads/{retried}/logs?previous=true")
    asked = logged.sessions.asked[-1]
    assert (asked.pod_id, asked.attempt) == ("first", None)


@pytest.mark.parametrize(
    ("path", "want_status"),
    [
        (f"{LOGGED}/logs?pod=other", 404),
        (f"{LOGGED}/logs?pod=logged-0-0&previous=true", 404),
        ("77777777-7777-4777-8777-777777777777/logs", 404),
        ("x/logs", 404),
        (f"{LOGGED}/logs?tail=-1", 400),
        (f"{LOGGED}/logs?since=then", 400),
        (f"{LOGGED}/logs?follow=maybe", 400),
    ],
)
def test_output_that_is_not_there(logged: ApiServer, path: str, want_status: int) -> None:
    answer = logged.call("GET", f"/api/v1/workloads/{path}")
    assert answer.status == want_status, answer
    assert answer.json["code"] == want_status


def test_streams_want_a_token_too(api: ApiServer) -> None:
    for path in (WATCH, f"/api/v1/workloads/{LOGGED}/logs"):
        assert api.call("GET", path, token="").status == http.client.UNAUTHORIZED
