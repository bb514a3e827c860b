"""A job that comes after all of its victims gets nothing from them; this is known without a simulation."""

from itertools import combinations
from typing import Any

import pytest

from fairlead.scheduling.cases import build
from fairlead.scheduling.model.queues import build_queues
from fairlead.scheduling.session.session import SchedulingSession
from fairlead.scheduling.solver.last_in_line import LastInLine
from fairlead.scheduling.solver.scenarios import PlacementProbe
from fairlead.scheduling.solver.solver import feasible_nodes, simulate

#: `b` holds more than its quota; in queue `a`, a large job waits before the small one.
JOBS: dict[str, dict[str, Any]] = {
    "v1": {"gpu": 1, "at": "n1", "queue": "b"},
    "v2": {"gpu": 1, "at": "n1", "queue": "b"},
    "w1": {"gpu": 1, "at": "n2", "queue": "b"},
    "w2": {"gpu": 1, "at": "n2", "queue": "b"},
    "large": {"gpu": 2, "tasks": 3, "queue": "a"},
    "small": {"gpu": 1, "queue": "a"},
}
PAIR = {"v1": None, "v2": {"gpu": 2, "at": "n1", "queue": "b"}}
WITH_CPU = {"v1": None, "v2": {"gpu": 2, "at": "n1", "queue": "b", "cpu": 1}}


@pytest.mark.parametrize(
    ("changes", "victims", "want"),
    [
        pytest.param({}, ["v1", "v2"], True, id="one-node"),
        pytest.param({}, ["v1", "w1"], True, id="equal-sizes"),
        pytest.param(PAIR, ["v2", "w1"], True, id="two-nodes-and-two-sizes"),
        pytest.param(WITH_CPU, ["v2", "w1"], False, id="not-only-gpus"),
        pytest.param(PAIR, ["v2"], True, id="two-sizes-one-at-a-time"),
        pytest.param({"large": None}, ["v1"], False, id="nobody-before-it"),
        pytest.param({"w2": None}, ["v1"], False, id="enough-is-free"),
        pytest.param(
            {"before": {"gpu": 2, "tasks": 4, "queue": "b", "created": -1}},
            ["v1"],
            False,
            id="a-larger-one-before-both",
        ),
    ],
)
def test_who_comes_last(changes: dict[str, Any], victims: list[str], want: bool) -> None:
    assert fails({**JOBS, **changes}, victims, gpus=2) is want


def test_what_is_free_on_many_nodes_stays_scattered() -> None:
    """One GPU is free on each node, and the winner wants two, as each of the victims does."""
    jobs = {
        "v": {"gpu": 2, "at": "n1", "queue": "b"},
        "w": {"gpu": 2, "at": "n2", "queue": "b"},
        "large": {"gpu": 3, "tasks": 3, "queue": "a"},
        "small": {"gpu": 2, "queue": "a"},
    }
    assert fails(jobs, ["v"], gpus=3)
    assert fails(jobs, ["v", "w"], gpus=3)
    ones = {name: {"gpu": 1, "at": "n1", "queue": "b"} for name in ("x", "y")}
    assert not fails({**jobs, "v": None, **ones}, ["x", "y"], gpus=3)


def test_nodes_must_have_room_for_pods_too() -> None:
    """A node of two GPUs that takes three pods has one pod left, so that GPUs are not all that counts there."""
    assert fails({**JOBS, **PAIR}, ["v2", "w1"], gpus=2, pods=4)
    assert not fails({**JOBS, **PAIR}, ["v2", "w1"], gpus=2, pods=3)


def test_a_gpu_that_is_only_promised_draws_tasks_to_its_node() -> None:
    """They go to nodes with an idle GPU first, so that not each goes to the fullest node with room for it."""
    promised = {"gpu": 1, "at": "n1", "queue": "b", "states": ["Pipelined"]}
    assert LastInLine(open_probe(JOBS, gpus=2, pods=100)[1]).is_packed
    assert not LastInLine(open_probe({**JOBS, "v2": promised}, gpus=2, pods=100)[1]).is_packed


#: Three sizes on two nodes; the winner of 3 GPUs comes after a gang of 12.
SIZES: dict[str, dict[str, Any]] = {
    "one": {"gpu": 1, "at": "n1", "queue": "b"},
    "two": {"gpu": 2, "at": "n1", "queue": "b"},
    "three": {"gpu": 3, "at": "n2", "queue": "b"},
    "large": {"gpu": 3, "tasks": 4, "queue": "a"},
    "small": {"gpu": 3, "queue": "a"},
}
#: Shares of 6 GPUs: at its turn `b` is above the winner's key for the last of its victims only.
LATE: dict[str, dict[str, Any]] = {
    **{f"v{number}": {"gpu": 1, "at": f"n{1 + number // 3}", "queue": "b"} for number in range(6)},
    "large": {"gpu": 5, "queue": "a", "tasks": 1},
    "small": {"gpu": 3, "queue": "a"},
}


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param({}, ["one", "three", "two"], id="not-larger-than-the-winner"),
        pytest.param({"small": {"gpu": 2, "queue": "a"}}, ["one", "two"], id="one-is-larger"),
        pytest.param({"two": {"gpu": 1, "tasks": 2, "at": "n1", "queue": "b"}}, ["one", "three"], id="a-gang"),
        pytest.param({"one": {"gpu": 1, "cpu": 1, "at": "n1", "queue": "b"}}, ["three", "two"], id="not-only-gpus"),
        pytest.param({"large": None}, [], id="nobody-before-it"),
        pytest.param({"three": None}, [], id="enough-is-free"),
        pytest.param({name: None for name in SIZES if name != "small"} | LATE, sorted(LATE)[2:], id="one-is-late"),
        pytest.param(
            {name: None for name in SIZES if name != "small"} | LATE | {"small": {"gpu": 1, "queue": "a"}},
            [],
            id="one-is-late-and-large-enough",
        ),
    ],
)
def test_small_victims_do_not_help_in_any_company(changes: dict[str, Any], want: list[str]) -> None:
    session, probe = open_probe({**SIZES, **changes}, gpus=3, pods=100)
    last = LastInLine(probe)
    running = sorted(job.id for job in session.jobs.values() if not job.pending)
    found = [name for name in running if last.knows_small() and last.is_small(session.jobs[name])]
    assert found == want
    for count in range(1, len(found) + 1):
        for names in combinations(found, count):
            units = [list(session.jobs[name].tasks) for name in names]
            assert not simulate(session, probe, units, session.nodes)
            session.rollback(0)


def fails(jobs: dict[str, Any], victims: list[str], gpus: int, pods: int = 100) -> bool:
    """What is foreseen; a simulation agrees if that is a failure."""
    session, probe = open_probe(jobs, gpus, pods)
    units = [list(session.jobs[name].tasks) for name in victims]
    foreseen = LastInLine(probe).fails(units)
    assert not foreseen or not simulate(session, probe, units, session.nodes)
    return foreseen


def open_probe(jobs: dict[str, Any], gpus: int, pods: int) -> tuple[SchedulingSession, PlacementProbe]:
    """Whether there is room for `small` on two nodes; no scenario has been tried yet."""
    given = {name: job for name, job in jobs.items() if job is not None}
    queues = {name: {"gpu": {"quota": 1, "weight": 1}} for name in "ab"}
    nodes = {name: {"gpu": gpus, "pods": pods} for name in ("n1", "n2")}
    snapshot = build({"nodes": nodes, "queues": queues, "jobs": given})
    session = SchedulingSession(snapshot, "default", build_queues(snapshot, "default")[0])
    for spec in snapshot.jobs:
        session.add_job(spec)
    session.divide_fair_shares()
    small = session.jobs["small"]
    return session, PlacementProbe(session, small, small.tasks, [], feasible_nodes(session, small))
