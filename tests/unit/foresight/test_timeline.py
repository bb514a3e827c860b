"""A workload's past as spans, from its events; and why another one went first."""

import itertools
from typing import Any, NamedTuple

import pytest

from fairlead.foresight.precedence import explain_precedence
from fairlead.foresight.timeline import describe_eviction, find_spans, sum_waits, summarize
from fairlead.foresight.why import Asker
from fairlead.model.records.event import Event
from fairlead.scheduling import decide
from tests.unit.foresight.test_why import cluster, job, node, queue

MINUTE = 60_000


def event(at: int, **members: Any) -> Event:
    return Event(at=at, subject="workloads", subject_id="w", reason="x", **members)


def phase(at: int, name: str, **members: Any) -> Event:
    return event(at, phase=name, **members)


class Past(NamedTuple):
    name: str
    events: list[Event]
    now: int
    want_spans: list[tuple[str, str, float]]
    want_message: str


PASTS = [
    Past(
        "two-blockers-and-a-run",
        [
            phase(0, "Creating"),
            phase(5, "Pending"),
            event(5, blocker="NonPreemptibleOverQuota", message="over quota"),
            event(12 * MINUTE, blocker="GangIncomplete"),
            phase(52 * MINUTE, "Initializing"),
            phase(52 * MINUTE, "Running"),
        ],
        60 * MINUTE,
        [("waiting", "quota", 720), ("waiting", "no room for its gang", 2400), ("running", "", 480)],
        "Waited: 40 min no room for its gang, 12 min quota.",
    ),
    Past(
        "evicted-and-waiting-again",
        [
            phase(0, "Pending"),
            phase(0, "Initializing"),
            phase(1000, "Running"),
            phase(2 * MINUTE, "Terminating"),
            phase(3 * MINUTE, "Pending"),
            event(3 * MINUTE, blocker="NoNodeFits"),
        ],
        8 * MINUTE,
        [("starting", "", 1), ("running", "", 119), ("stopping", "", 60), ("waiting", "no room", 300)],
        "Waited: 5 min no room. It has been waiting for 5 min now: no room.",
    ),
    Past(
        "pending-from-its-first-record-like-an-equal-one",
        [phase(0, "Creating"), phase(0, "Pending", blocker="NoNodeFits", message="Waiting")],
        MINUTE,
        [("waiting", "no room", 60)],
        "Waited: 1 min no room. It has been waiting for 1 min now: no room.",
    ),
    Past(
        "ended-long-ago",
        [phase(0, "Pending"), phase(10, "Initializing"), phase(1010, "Running"), phase(MINUTE, "Completed")],
        99 * MINUTE,
        [
            ("waiting", "the first scheduling decision", 0.01),
            ("starting", "", 1),
            ("running", "", 58.99),
            ("ended", "", 0),
        ],
        "It has not waited.",
    ),
]


@pytest.mark.parametrize("case", PASTS, ids=lambda case: case.name)
def test_spans_follow_from_events(case: Past) -> None:
    spans = find_spans(case.events, 0, case.now)
    assert [(span.state, span.blocker, span.seconds) for span in spans] == case.want_spans
    assert summarize(spans, sum_waits(spans), 0) == case.want_message
    assert all(before.until == after.since for before, after in itertools.pairwise(spans))


def test_the_message_of_a_span_is_the_one_of_its_beginning() -> None:
    [span] = find_spans([event(0, blocker="OverLimit", message="the limit is 2")], 0, MINUTE)
    assert (span.code, span.message) == ("OverLimit", "the limit is 2")


def test_an_eviction_notice_has_no_hidden_names() -> None:
    snapshot = cluster(
        job("old", "a", on="n1", gpu=4), job("new", "b", gpu=2), queues=(queue("a", quota=0), queue("b", quota=4))
    )
    [eviction, *_] = decide(snapshot).evictions
    told = describe_eviction(snapshot, eviction, "old-0-0")
    assert (told.rule, told.by and told.by.workload, told.hidden) == ("reclaimed", "new", False)
    assert (told.over_quota_gpus, told.quota_gpus) == (4, 0)
    hidden = describe_eviction(snapshot, eviction, "old-0-0", Asker(visible=frozenset({"project-a"})))
    assert (hidden.by, hidden.hidden) == (None, True)
    assert "new" not in hidden.message
    assert "project a" in hidden.message


class First(NamedTuple):
    name: str
    snapshot: Any
    want_cause: str
    want_words: str


FIRSTS = [
    First("priority", cluster(job("me", gpu=4, priority=50), job("other", gpu=4, priority=100)), "priority", "100"),
    First("age", cluster(job("me", gpu=4, created=9), job("other", gpu=4, created=1)), "age", "earlier"),
    First(
        "quota",
        cluster(
            job("me", "a", gpu=4),
            job("other", "b", gpu=4),
            queues=(queue("a", quota=0), queue("b", quota=4)),
        ),
        "project",
        "b is within its quota with other, and a above its quota with me: they ask for 4 and 4 GPUs",
    ),
    First(
        "it-would-not-have-fitted",
        cluster(job("me", gpu=4), job("other", gpu=1), nodes=(node("n1", gpu=2),)),
        "noPlace",
        "did not keep me waiting",
    ),
]


@pytest.mark.parametrize("case", FIRSTS, ids=lambda case: case.name)
def test_who_went_first_and_why(case: First) -> None:
    answer = explain_precedence(case.snapshot, "me", "other")
    assert (answer.cause, answer.would_have_started) == (case.want_cause, case.want_cause != "noPlace")
    assert case.want_words in answer.message
