"""Dividing a resource among queues."""

from typing import Any

import msgspec
import pytest

from fairlead.scheduling import (
    QueueDemand,
    QueueShares,
    Resources,
    Share,
    SharesRequest,
    SnapshotError,
    divide_queues,
    read_shares,
)

FREE = Share(limit=-1, quota=-1)


def demand(name: str, gpu: float, quota: float = 0, weight: float = 1, **fields: Any) -> QueueDemand:
    shares = QueueShares(gpu=Share(limit=-1, quota=quota, over_quota_weight=weight), cpu=FREE, memory=FREE)
    return QueueDemand(name=name, resources=shares, requested=Resources(gpu=gpu), **fields)


@pytest.mark.parametrize(
    ("total", "demands", "want"),
    [
        pytest.param(
            26, [("a", 26, 6, 3), ("b", 26, 0, 2), ("c", 26, 0, 1)], [16, 7, 3], id="weights 3, 2, 1 over quota"
        ),
        pytest.param(10, [("a", 3, 0, 1), ("b", 9, 0, 1)], [3, 7], id="a second round with what one left"),
        pytest.param(10, [("a", 9, 0, 1), ("b", 9, 0, 1), ("c", 9, 0, 1)], [4, 3, 3], id="one unit left over"),
        pytest.param(1, [("a", 5, 0, 1), ("b", 5, 0, 1)], [1, 0], id="less than a unit each"),
        pytest.param(2.5, [("a", 5, 0, 1)], [2.5], id="all of a fraction"),
    ],
)
def test_shares(total: float, demands: list[tuple[str, float, float, float]], want: list[float]) -> None:
    request = SharesRequest(total=Resources(gpu=total), queues=tuple(demand(*given) for given in demands))
    assert [share.fair_share.gpu for share in divide_queues(request)] == want


def test_a_lower_priority_gets_what_flooring_leaves_before_left_overs_are_given() -> None:
    """One GPU and two queues of high priority: each is offered a half and floored to none, so the low one takes it."""
    queues = (demand("a", 1, priority=200), demand("b", 1, priority=200), demand("c", 1, priority=100))
    shares = divide_queues(SharesRequest(total=Resources(gpu=1), queues=queues))
    assert [share.fair_share.gpu for share in shares] == [0, 0, 1]


def test_parents_ask_for_what_their_children_ask_for() -> None:
    queues = (demand("d", 0), demand("x", 3, parent="d"), demand("y", 2, parent="d"))
    shares = {
        share.queue: share.fair_share.gpu
        for share in divide_queues(SharesRequest(total=Resources(gpu=4), queues=queues))
    }
    assert shares == {"d": 4, "x": 2, "y": 2}


def test_shares_are_read_with_all_that_is_wrong() -> None:
    twice = (demand("x", 1), demand("x", 1), demand("y", 1, parent="y"))
    given = msgspec.json.encode(SharesRequest(total=Resources(gpu=1), queues=twice))
    with pytest.raises(SnapshotError) as caught:
        read_shares(given)
    assert caught.value.problems == (
        "Queue x in node pool default occurs 2 times.",
        "Queue y in node pool default is its own ancestor.",
    )
    with pytest.raises(SnapshotError, match="total: is missing"):
        read_shares(b'{"queues": []}')


def test_shares_are_written_by_name() -> None:
    request = SharesRequest(total=Resources(gpu=2), queues=(demand("x", 3),))
    assert list(msgspec.to_builtins(divide_queues(request))) == [
        {
            "queue": "x",
            "nodePool": "default",
            "fairShare": {"gpu": 2, "cpu": 0, "memory": 0},
            "requested": {"gpu": 3, "cpu": 0, "memory": 0},
        }
    ]
