"""The line on why a workload waits: the point first, then who holds what it waits for."""

import msgspec
import pytest

from fairlead.control.explain.headline import HeadlineHolder, format_headline, format_span
from fairlead.scheduling import NodeCause, Reason

NOW = 100_000_000


def waits(free: float = 0, largest: float = 2, nodes: int = 1, asked: float = 1) -> Reason:
    cause = NodeCause(cause="gpu", nodes=nodes, asked=asked, free=free, best_node="lab", largest=largest)
    return Reason(code="NoNodeFits", causes=(cause,))


def held(name: str, owner: str = "", minutes: int | None = None) -> HeadlineHolder:
    return HeadlineHolder(name, owner, None if minutes is None else NOW - minutes * 60_000)


LONG = held("long", "you", 12)


@pytest.mark.parametrize(
    ("reason", "holders", "want"),
    [
        pytest.param(
            waits(), [LONG], "Waiting for 1 GPU: both GPUs of lab are held by long (you, 12 min).", id="one holder"
        ),
        pytest.param(
            waits(largest=1),
            [LONG, held("b", "ann", 120)],
            "Waiting for 1 GPU: the GPU of lab is held by long (you, 12 min) and b (ann, 2 h).",
            id="two holders",
        ),
        pytest.param(
            waits(nodes=3, largest=8),
            [LONG, held("b", "ann", 1), held("c"), held("d")],
            "Waiting for 1 GPU: all GPUs of 3 nodes are held by long (you, 12 min), b (ann, 1 min) and 2 others.",
            id="several nodes and holders",
        ),
        pytest.param(
            waits(free=1, asked=2),
            [LONG],
            "Waiting for 2 GPUs: 1 of 2 free on lab, the rest is held by long (you, 12 min).",
            id="some are free",
        ),
        pytest.param(
            waits(),
            [held("another project's workload", "", 3)],
            "Waiting for 1 GPU: both GPUs of lab are held by another project's workload (3 min).",
            id="a holder that the reader may not see",
        ),
        pytest.param(
            msgspec.structs.replace(waits(), causes=(*waits().causes, NodeCause(cause="taint", nodes=2, never=True))),
            [LONG],
            "Waiting for 1 GPU: both GPUs of lab are held by long (you, 12 min); "
            "2 nodes have a taint that it does not tolerate.",
            id="nodes that could never take it",
        ),
        pytest.param(waits(), [], "Waiting for 1 GPU: both GPUs of lab are in use.", id="nobody is known"),
        pytest.param(
            Reason(code="WaitsForVictims", waits_for=("a",)),
            [LONG],
            "Waiting for a to stop; its place is reserved.",
            id="another reason",
        ),
    ],
)
def test_headline(reason: Reason, holders: list[HeadlineHolder], want: str) -> None:
    assert format_headline(reason, holders, NOW) == want


@pytest.mark.parametrize(
    ("seconds", "want"), [(5, "5 s"), (90, "1 min"), (7200, "2 h"), (90_000, "25 h"), (200_000, "2 d"), (-3, "0 s")]
)
def test_span(seconds: int, want: str) -> None:
    assert format_span(seconds * 1000) == want
