"""Cycles that keep their session place what whole cycles place, also if almost everything is in use."""

from typing import Any

import pytest

from fairlead.scheduling.cases import build
from fairlead.scheduling.incremental import IncrementalCluster

LARGE, SMALL = {"gpu": 1, "gpuMemoryMib": 80_000}, {"gpu": 1, "gpuMemoryMib": 20_000}


@pytest.mark.parametrize(
    ("nodes", "held", "asked"),
    [
        pytest.param(
            {"n1": LARGE}, {"portion": 0.664, "sharedOn": ["g"]}, {"portion": 0.336}, id="portion-that-counts-as-more"
        ),
        pytest.param(
            {"n1": LARGE, "n2": SMALL},
            {"portion": 0.8, "sharedOn": ["g"]},
            {"gpuMemory": 16_000},
            id="memory-of-a-larger-gpu",
        ),
    ],
)
def test_a_part_of_a_gpu_that_fits_exactly_is_placed(
    nodes: dict[str, Any], held: dict[str, Any], asked: dict[str, Any]
) -> None:
    jobs: dict[str, Any] = {"holder": {**held, "at": "n1", "queue": "a"}, "new": {**asked, "queue": "a"}}
    if "n2" in nodes:
        jobs["other"] = {"gpu": 1, "at": "n2", "queue": "a"}
    snapshot = build({"nodes": nodes, "queues": {"a": {"gpu": {"quota": 2, "weight": 1}}}, "jobs": jobs})
    cluster = IncrementalCluster(snapshot)
    for job in snapshot.jobs:
        cluster.put(job)
    assert [(bind.job, bind.node) for bind in cluster.decide(0).binds] == [("new", "n1")]
