"""Since when a node is not ready."""

import pytest

from fairlead.model.records.organization import Node, with_not_ready_since


def node(since: int | None = None, *, ready: bool = False) -> Node:
    return Node(id="n", name="n", cpu_milli=1, memory_bytes=1, ready=ready, not_ready_since=since)


@pytest.mark.parametrize(
    ("observed", "before", "want"),
    [
        pytest.param(node(), node(ready=True), 900, id="from now on"),
        pytest.param(node(), None, 900, id="new"),
        pytest.param(node(), node(500), 500, id="as recorded"),
        pytest.param(node(400), node(500), 400, id="as the engine says"),
        pytest.param(node(ready=True), node(500), None, id="ready again"),
    ],
)
def test_not_ready_since(observed: Node, before: Node | None, want: int | None) -> None:
    assert with_not_ready_since(observed, before, 900).not_ready_since == want
