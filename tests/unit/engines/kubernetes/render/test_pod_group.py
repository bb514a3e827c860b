"""Of which roles a pod group of our own must have how many, and that its pods say which is theirs."""

from typing import Any

import pytest

from fairlead.engines.kubernetes.render.workload import render_objects
from fairlead.model.pods.podset import PodSet
from tests import builders
from tests.unit.engines.golden_place import GOLDEN_PLACE

SUBGROUP = "kai.scheduler/subgroup-name"


def members(role: str, count: int, minimum: int | None = None) -> PodSet:
    return builders.podset(role=role, count=count, minimum=minimum, gang=True, completions=count)


@pytest.mark.parametrize(
    ("podsets", "least", "want"),
    [
        ((members("master", 1), members("worker", 4, 2)), 3, {"master": 1, "worker": 2}),
        ((members("master", 1), members("worker", 4)), 5, {}),
        ((members("worker", 4, 2),), 2, {}),
        ((members("master", 1), members("worker", 4, 0)), 1, {}),
    ],
    ids=["a master and some workers", "all are needed", "one role", "a role that may be missing"],
)
def test_how_many_of_each_role(podsets: tuple[PodSet, ...], least: int, want: dict[str, int]) -> None:
    rendered = render_objects(GOLDEN_PLACE, podsets)
    spec: dict[str, Any] = rendered.runners[0]["spec"]
    assert spec["minMember"] == least
    assert {one["name"]: one["minMember"] for one in spec.get("subGroups", ())} == want
    labels = [pod["metadata"]["labels"] for pod in rendered.pods(GOLDEN_PLACE)]
    assert {one[SUBGROUP] for one in labels if SUBGROUP in one} == set(want)
