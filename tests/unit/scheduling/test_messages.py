"""The sentence of a reason: the point first, then the numbers."""

import pytest

from fairlead.scheduling import NodeCause, Reason, format_reason
from fairlead.scheduling.messages import format_largest


def lack(resource: str, nodes: int, asked: float, free: float, largest: float) -> NodeCause:
    never = asked > largest
    return NodeCause(
        cause=resource,
        nodes=nodes,
        never=never,
        asked=asked,
        free=free,
        best_node="n1",
        largest=largest,
        largest_node="n2",
    )


ONE_GPU = lack("gpu", 1, 1, 0, 2)
CORDONED = NodeCause(cause="cordoned", nodes=2, best_node="n3")
TOO_SMALL = NodeCause(cause="notReady", nodes=1, never=True, best_node="n4")


@pytest.mark.parametrize(
    ("reason", "want"),
    [
        pytest.param(
            Reason(code="NoNodeFits", causes=(ONE_GPU,)),
            "Waiting for 1 GPU: both GPUs of n1 are in use.",
            id="one full node",
        ),
        pytest.param(
            Reason(code="NoNodeFits", causes=(lack("gpu", 1, 1, 0, 1),)),
            "Waiting for 1 GPU: the GPU of n1 is in use.",
            id="one GPU",
        ),
        pytest.param(
            Reason(code="NoNodeFits", causes=(lack("gpu", 3, 2, 0, 8),)),
            "Waiting for 2 GPUs: all GPUs of 3 nodes are in use.",
            id="full nodes",
        ),
        pytest.param(
            Reason(code="NoNodeFits", causes=(lack("cpu", 3, 4000, 1500, 8000),)),
            "Waiting for 4 CPU cores: at most 1.5 free on one of 3 nodes (n1).",
            id="cores",
        ),
        pytest.param(
            Reason(code="Fragmented", causes=(lack("gpu", 2, 4, 2, 4),)),
            "Waiting for 4 GPUs on one node: enough are free, but spread over several nodes, at most 2 on n1.",
            id="fragmented",
        ),
        pytest.param(
            Reason(code="NeverFits", causes=(lack("gpu", 2, 9, 4, 4),)),
            "Can never start: it asks for 9 GPUs, the largest node (n2) has 4.",
            id="never",
        ),
        pytest.param(
            Reason(code="NeverFits", placed=1, required=4, causes=(ONE_GPU,)),
            "Can never start: its gang has 4 pods, at most 1 fits when all nodes are empty.",
            id="a gang larger than the cluster",
        ),
        pytest.param(
            Reason(code="NoNodeFits", task="a-0", causes=(CORDONED, ONE_GPU)),
            "Waiting for a node for pod a-0: node n3 and 1 other are cordoned; "
            "1 node has less than 1 GPU free (at most 0, on n1).",
            id="several causes",
        ),
        pytest.param(
            Reason(code="NoNodeFits", task="a-0", causes=(NodeCause(cause="notReady", nodes=1, best_node="n3"),)),
            "Waiting for a node for pod a-0: node n3 is not ready.",
            id="a node that is not ready",
        ),
        pytest.param(
            Reason(code="NoNodeFits", task="a-0", causes=(ONE_GPU, TOO_SMALL)),
            "Waiting for 1 GPU: both GPUs of n1 are in use; 1 node is not ready.",
            id="a node that is not ready and too small",
        ),
        pytest.param(
            Reason(code="NoNodeFits", task="a-0"), "Waiting for a node for pod a-0: there is none.", id="no node at all"
        ),
        pytest.param(
            Reason(code="GangIncomplete", task="a-3", placed=3, required=4, causes=(ONE_GPU,)),
            "Waiting for room for all pods of the gang: 3 of its 4 pods fit now; pod a-3 does not: "
            "both GPUs of n1 are in use.",
            id="gang",
        ),
        pytest.param(
            Reason(code="WaitsForVictims", waits_for=("a", "b")),
            "Waiting for a, b to stop; its place is reserved.",
            id="victims",
        ),
    ],
)
def test_sentence(reason: Reason, want: str) -> None:
    assert format_reason(reason) == want


@pytest.mark.parametrize(
    ("reason", "want"),
    [
        pytest.param(
            Reason(code="NeverFits", causes=(lack("gpu", 2, 9, 4, 4),)),
            "4 GPUs per pod, as n2 has",
            id="size of a node",
        ),
        pytest.param(
            Reason(code="NeverFits", causes=(lack("cpu", 1, 9000, 1, 4000), lack("gpu", 1, 9, 4, 4))),
            "4 CPU cores per pod, as n2 has or 4 GPUs per pod, as n2 has",
            id="one node lacks one, another the other",
        ),
        pytest.param(Reason(code="NeverFits", placed=3, required=4, causes=(ONE_GPU,)), "3 pods", id="gang"),
        pytest.param(Reason(code="NeverFits", causes=(NodeCause(cause="taint", nodes=2, never=True),)), "", id="taint"),
    ],
)
def test_largest_that_would_fit(reason: Reason, want: str) -> None:
    assert format_largest(reason) == want
