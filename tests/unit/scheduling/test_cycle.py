"""What a cycle tells besides starts and evictions."""

from typing import Any

import msgspec
import pytest

from fairlead.scheduling import Decisions, advance, decide, format_reason, simulate
from fairlead.scheduling.cases import NOW, build
from fairlead.scheduling.cycle import Cycle

ONE_NODE = {"nodes": {"n1": {"gpu": 2}}, "queues": {"q": 2}}


def decided(**case: Any) -> Decisions:
    return decide(build({**ONE_NODE, **case}))


def sentence(decisions: Decisions, job: str) -> str:
    return next(format_reason(pending.reason) for pending in decisions.pending if pending.job == job)


def test_quota_sentence_is_the_known_one() -> None:
    jobs = {"b": {"gpu": 1, "at": "n1", "priority": 100}, "a": {"gpu": 2, "priority": 100}}
    assert sentence(decided(jobs=jobs, nodes={"n1": {"gpu": 4}}), "a") == (
        "Non-preemptible workload is over quota. Workload requested 2 GPUs, but q quota is 2 GPUs, while 1 GPUs are "
        "already allocated for non-preemptible pods. Use a preemptible workload to go over quota."
    )


@pytest.mark.parametrize(
    ("queue", "job", "want"),
    [
        pytest.param(
            {"gpu": {"quota": 2, "limit": 2}},
            {"gpu": 3},
            "Can never start: it requests 3 GPUs, the limit of q is 2. q quota has reached the allowable limit",
            id="limit",
        ),
        pytest.param(
            2,
            {"gpu": 3, "priority": 100},
            "Can never start: it requests 3 GPUs and is not preemptible, the quota of q is 2. "
            "A preemptible workload may exceed the quota. Non-preemptible workload is over quota.",
            id="quota",
        ),
    ],
)
def test_more_than_the_whole_quota_or_limit_is_never(queue: Any, job: dict[str, Any], want: str) -> None:
    assert sentence(decided(queues={"q": queue}, jobs={"a": job}, nodes={"n1": {"gpu": 4}}), "a").startswith(want)


def test_a_pool_that_may_take_it_is_told_before_one_that_never_can() -> None:
    case = {
        "nodes": {"n1": {"gpu": 2}, "n2": {"gpu": 1, "nodePool": "small"}},
        "queues": {"q": 2, "q@small": 2},
        "jobs": {"b": {"gpu": 2, "at": "n1"}, "a": {"gpu": 2, "pools": ["default", "small"]}},
    }
    assert sentence(decided(**case), "a") == "Waiting for 2 GPUs: both GPUs of n1 are in use."


def test_limit_sentence_is_the_known_one() -> None:
    queues = {"q": {"gpu": {"quota": 2, "limit": 1.5}}}
    assert sentence(decided(queues=queues, jobs={"b": {"gpu": 1, "at": "n1"}, "a": {"gpu": 1}}), "a") == (
        "q quota has reached the allowable limit of GPUs. Limit is 1.5 GPUs, currently 1 GPUs allocated and workload "
        "requested 1 GPUs"
    )


def test_the_sentence_for_no_room_names_resource_asked_and_free() -> None:
    told = sentence(decided(jobs={"b": {"gpu": 1, "at": "n1"}, "a": {"gpu": 2}}), "a")
    assert told == "Waiting for 2 GPUs: 1 of 2 free on n1."


def test_never_is_distinguished_from_not_now() -> None:
    told = sentence(decided(jobs={"a": {"gpu": 3}}), "a")
    assert told == "Can never start: it asks for 3 GPUs, the largest node (n1) has 2."


@pytest.mark.parametrize(
    ("priority", "queue", "want"),
    [
        pytest.param(60, "q", "Pod /a-0 was preempted by higher priority workload /b", id="preempted"),
        pytest.param(50, "r", "Pod /a-0 was preempted by workload /b.\nq uses <GPU: 2", id="reclaimed"),
    ],
)
def test_eviction_text(priority: int, queue: str, want: str) -> None:
    jobs = {"a": {"gpu": 2, "at": "n1"}, "b": {"gpu": 2, "queue": queue, "priority": priority}}
    decisions = decided(queues={"q": 0, "r": 2}, jobs=jobs)
    assert [eviction.task for eviction in decisions.evictions] == ["a-0"]
    assert decisions.evictions[0].message.startswith(want)


def test_an_eviction_says_how_far_its_queue_was_over_quota() -> None:
    jobs = {"a": {"gpu": 2, "at": "n1"}, "b": {"gpu": 2, "queue": "r"}}
    eviction = decided(queues={"q": 0.5, "r": 2}, jobs=jobs).evictions[0]
    assert eviction.by_job == "b"
    assert eviction.over_quota == (1.5, 0, 0)


def test_devices_are_the_lowest_free_ones() -> None:
    decisions = decided(nodes={"n1": {"gpu": 4}}, jobs={"b": {"gpu": 1, "at": "n1"}, "a": {"gpu": 2}})
    assert decisions.binds[0].devices == (1, 2)


def test_two_halves_get_one_device_and_one_group() -> None:
    binds = decided(jobs={"a": {"portion": 0.5}, "b": {"portion": 0.5}}).binds
    assert {bind.devices for bind in binds} == {(0,)}
    assert {bind.gpu_groups for bind in binds} == {("n1-0-a-0",)}


def test_reasons_of_all_pools_tried() -> None:
    case = {
        "nodes": {"n1": {"gpu": 1}, "n2": {"gpu": 1, "nodePool": "fast"}},
        "queues": {"q": 1, "q@fast": {"gpu": {"quota": 0, "limit": 0}}},
        "jobs": {"a": {"gpu": 1, "pools": ["fast", "default"]}, "b": {"gpu": 1, "at": "n1", "priority": 60}},
    }
    pending = decided(**case).pending[0]
    assert [(told.node_pool, told.reason.code) for told in pending.pools] == [
        ("fast", "OverLimit"),
        ("default", "NoNodeFits"),
    ]


@pytest.mark.parametrize(
    ("case", "want"),
    [
        pytest.param({"jobs": {"a": {"gpu": 3}}}, None, id="nothing depends on time"),
        pytest.param(
            {
                "queues": {"q": {"gpu": 0, "reclaimMinRuntime": 100}, "r": 2},
                "jobs": {"a": {"gpu": 2, "at": "n1", "started": NOW - 40}, "b": {"queue": "r", "gpu": 2}},
            },
            NOW + 60,
            id="end of a min runtime",
        ),
        pytest.param(
            {
                "queues": {"q": 0, "r": 2},
                "jobs": {
                    "a": {"gpu": 2, "at": "n1"},
                    "b": {"queue": "r", "gpu": 2, "created": NOW, "preemptionDelay": 30},
                },
            },
            NOW + 30,
            id="end of a preemption delay",
        ),
        pytest.param(
            {
                "settings": {"stalenessGrace": 60},
                "jobs": {"a": {"gpu": 1, "tasks": 2, "at": ["n1", "n1"], "states": ["Running", "Failed"]}},
            },
            NOW + 60,
            id="end of a grace",
        ),
    ],
)
def test_when_the_result_may_change_by_time_alone(case: dict[str, Any], want: float | None) -> None:
    assert decided(**case).next_change_at == want


def test_a_job_that_breaks_the_cycle_is_reported_and_the_others_are_scheduled() -> None:
    cycle = Cycle(build({**ONE_NODE, "jobs": {"bad": {"gpu": 1}, "good": {"gpu": 1}}}))
    cycle._open()
    session = cycle.sessions["default"]
    for job in cycle.snapshot.jobs:
        session.add_job(job)
    session.divide_fair_shares()
    session.jobs["bad"].tasks[0].request_class = None  # type: ignore[assignment]  # a broken task on purpose
    for action in ("allocate", "reclaim"):
        cycle.run_action(session, action)
    assert {failure.job for failure in cycle.record.failures} == {"bad"}
    assert session.jobs["good"].tasks[0].home.name == "n1"


def test_a_job_that_makes_no_sense_stays_out_and_the_others_are_scheduled() -> None:
    snapshot = build({**ONE_NODE, "jobs": {"a": {"gpu": 1}, "b": {"gpu": 1, "podSets": {"x": {"tasks": 1}, "y": {}}}}})
    broken = msgspec.structs.replace(snapshot.jobs[1], pod_sets=snapshot.jobs[1].pod_sets[1:] * 2)
    decisions = decide(msgspec.structs.replace(snapshot, jobs=(snapshot.jobs[0], broken)))
    assert [bind.job for bind in decisions.binds] == ["a"]
    assert [(failure.job, failure.action) for failure in decisions.failures] == [("b", "admission")]
    assert next(pending.reason.code for pending in decisions.pending if pending.job == "b") == "Failed"


def test_what_has_ended_does_not_tie_a_job_to_its_pool() -> None:
    snapshot = build(
        {
            "nodes": {"n1": {"gpu": 1}, "n2": {"gpu": 1, "nodePool": "fast"}},
            "queues": {"q": 1, "q@fast": 1},
            "jobs": {"a": {"gpu": 1, "min": 1, "tasks": 2, "at": ["n1"], "states": ["Failed"], "pools": ["fast"]}},
        }
    )
    assert [bind.node for bind in decide(snapshot).binds] == ["n2"]


@pytest.mark.parametrize(
    ("first", "second", "want"),
    [
        ({}, {}, "a-0"),
        ({"created": 2}, {"created": 1}, "a-1"),
        ({"created": 1}, {"created": 2, "priority": 0}, "a-1"),
        ({"priority": 1}, {"priority": 2}, "a-1"),
        ({"priority": 2}, {"leader": True}, "a-1"),
    ],
)
def test_which_task_goes_first(first: dict[str, Any], second: dict[str, Any], want: str) -> None:
    """The leader, then the larger priority, none at last, then the older, then the smaller id."""
    snapshot = build({"nodes": {"n1": {"gpu": 1}}, "queues": {"q": 1}, "jobs": {"a": {"gpu": 1, "tasks": 2, "min": 1}}})
    job = snapshot.jobs[0]
    tasks = (msgspec.structs.replace(job.tasks[0], **first), msgspec.structs.replace(job.tasks[1], **second))
    snapshot = msgspec.structs.replace(snapshot, jobs=(msgspec.structs.replace(job, tasks=tasks),))
    assert [bind.task for bind in decide(snapshot).binds] == [want]


@pytest.mark.parametrize("minimum", [1, 2])
def test_only_a_job_that_really_starts_has_a_last_start(minimum: int) -> None:
    """Not one that is only promised its place, and not one that grows."""
    jobs = {
        "a": {"gpu": 1, "tasks": 2, "min": minimum, "priority": 60},
        "b": {"gpu": 1, "at": "n1", "states": ["Releasing"]},
        "c": {"cpu": 1, "tasks": 2, "min": 1, "at": ["n1"]},
    }
    starts = [start.job for start in decided(jobs=jobs).last_starts]
    assert starts == (["a"] if minimum == 1 else [])


def test_the_last_start_is_reported_once() -> None:
    snapshot = build({**ONE_NODE, "jobs": {"a": {"gpu": 1, "tasks": 2, "min": 1}}})
    decisions = decide(snapshot)
    assert [(start.job, start.at) for start in decisions.last_starts] == [("a", NOW)]


def test_a_broken_gang_is_marked_and_the_mark_is_cleared() -> None:
    broken = {"a": {"gpu": 1, "tasks": 2, "at": ["n1", "n1"], "states": ["Running", "Failed"]}}
    marks = decided(settings={"stalenessGrace": 60}, jobs=broken).stale
    assert [(mark.job, mark.since) for mark in marks] == [("a", NOW)]
    whole = {"a": {"gpu": 1, "at": "n1", "staleSince": 5}}
    assert [(mark.job, mark.since) for mark in decided(jobs=whole).stale] == [("a", None)]


def test_played_cycles() -> None:
    """Reclaim in the first cycle, the start in the second, then nothing more."""
    snapshot = build(
        {**ONE_NODE, "queues": {"q": 0, "r": 2}, "jobs": {"a": {"gpu": 2, "at": "n1"}, "b": {"queue": "r", "gpu": 2}}}
    )
    told = [(len(d.evictions), [bind.job for bind in d.binds]) for _, d in simulate(snapshot, 3)]
    assert told == [(1, []), (0, ["b"]), (0, [])]


@pytest.mark.parametrize(("deleting", "want"), [(True, "Releasing"), (False, "Pending")])
def test_advance_keeps_what_is_being_deleted_on_its_way_out(deleting: bool, want: str) -> None:
    snapshot = build({**ONE_NODE, "jobs": {"a": {"gpu": 2, "at": "n1", "states": ["Releasing"], "deleting": deleting}}})
    after = advance(snapshot, decide(snapshot), NOW + 1)
    assert after.jobs[0].tasks[0].status == want
    assert after.now == NOW + 1


def test_a_node_booked_above_its_capacity_is_noted_and_takes_nothing_more() -> None:
    decisions = decided(jobs={"a": {"gpu": 1, "tasks": 3, "at": ["n1", "n1", "n1"]}, "b": {"gpu": 1}})
    assert [(notice.code, notice.message) for notice in decisions.notices] == [
        ("NodeOverbooked", "Node n1 has 2 GPUs, and 3 are in use on it.")
    ]
    assert decisions.binds == ()
    assert sentence(decisions, "b") == "Waiting for 1 GPU: both GPUs of n1 are in use."


@pytest.mark.parametrize(("device", "want"), [("binpack", ["n1", "n1"]), ("spread", ["n1", "n2"])])
def test_devices_have_a_strategy_of_their_own(device: str, want: list[str]) -> None:
    """Shared GPUs are filled up or spread over, whatever the strategy for nodes is."""
    case = {
        "nodes": {"n1": {"gpu": 2}, "n2": {"gpu": 2}},
        "settings": {"placement": {"gpu": "spread", "device": device}},
    }
    decisions = decided(**case, jobs={"a": {"portion": 0.4}, "b": {"portion": 0.4}})
    assert [bind.node for bind in decisions.binds] == want


def test_one_node_may_pack_its_devices_while_nodes_are_spread_over() -> None:
    case = {"nodes": {"n1": {"gpu": 2}}, "settings": {"placement": {"gpu": "binpack", "device": "spread"}}}
    decisions = decided(**case, jobs={"a": {"portion": 0.4}, "b": {"portion": 0.4}})
    assert len({bind.devices for bind in decisions.binds}) == 2
