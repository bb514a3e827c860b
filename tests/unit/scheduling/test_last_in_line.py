"""A job that comes after all of its victims gets nothing from them; this is known without a simulation."""

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


def fails(jobs: dict[str, Any], victims: list[str], gpus: int, pods: int = 100) -> bool:
    """What is foreseen; a simulation agrees if that is a failure."""
    given = {name: job for name, job in jobs.items() if job is not None}
    queues = {name: {"gpu": {"quota": 1, "weight": 1}} for name in "ab"}
    nodes = {name: {"gpu": gpus, "pods": pods} for name in ("n1", "n2")}
    snapshot = build({"nodes": nodes, "queues": queues, "jobs": given})
    session = SchedulingSession(snapshot, "default", build_queues(snapshot, "default")[0])
    for spec in snapshot.jobs:
        session.add_job(spec)
    session.divide_fair_shares()
    small = session.jobs["small"]
    probe = PlacementProbe(session, small, small.tasks, [], feasible_nodes(session, small))
    units = [list(session.jobs[name].tasks) for name in victims]
    foreseen = LastInLine(probe).fails(units)
    assert not foreseen or not simulate(session, probe, units, session.nodes)
    return foreseen
