"""What if: who starts, who is evicted or moved, who waits longer, and changes that make no sense."""

import pytest

from fairlead.foresight.changes import AddNodes, Change, RemoveWorkload, SetNode, SetPriority, SetShare
from fairlead.foresight.what_if import WhatIfAnswer, ask_what_if
from fairlead.foresight.why import Asker
from fairlead.foresight.workloads import Concerned, UnknownName
from tests.unit.foresight.test_why import cluster, job, node, queue

SNAPSHOT = cluster(
    *(job(f"holds-{number}", "b", on="n1") for number in range(4)),
    job("waits", gpu=2),
    queues=(queue("a", quota=0), queue("b", quota=4)),
)


def names(concerned: Concerned) -> list[str]:
    return [ref.workload for ref in concerned.workloads]


def ask(*changes: Change) -> WhatIfAnswer:
    return ask_what_if(SNAPSHOT, changes)


def test_quotas_change_who_holds_what() -> None:
    answer = ask(SetShare(queue="a", field="quota", value=2), SetShare(queue="b", field="quota", value=2))
    assert names(answer.starts) == ["waits"]
    assert len(names(answer.effects.evicted)) == 2
    shares = {share.name: share for share in answer.shares}
    assert (shares["a"].used_before[0], shares["a"].used_after[0]) == (0, 2)
    assert (shares["b"].fair_share_before[0], shares["b"].fair_share_after[0]) == (4, 2)
    assert answer.changes[0] == "Raise the GPU quota of a to 2 GPUs (now 0)"


def test_nodes_that_come_and_workloads_that_go() -> None:
    more = ask(AddNodes(like="n1", count=1))
    assert (names(more.starts), more.effects.harm) == (["waits"], 0)
    assert (more.waiting_before, more.waiting_after) == (1, 0)
    less = ask(RemoveWorkload(workload="holds-0"), RemoveWorkload(workload="b/holds-1"))
    assert (names(less.starts), less.effects.harm) == (["waits"], 0)


def test_a_drained_node_moves_or_evicts() -> None:
    nodes = (node(), node("n2"), node("n3", gpu=1))
    snapshot = cluster(job("small", on="n1"), job("large", on="n2", gpu=4), nodes=nodes)
    first = ask_what_if(snapshot, [SetNode(node="n1", action="drain")])
    assert (names(first.effects.moved), names(first.effects.evicted), names(first.starts)) == (["small"], [], [])
    full = cluster(job("small", on="n1", gpu=4), job("large", on="n2", gpu=4), nodes=nodes)
    second = ask_what_if(full, [SetNode(node="n2", action="remove")])
    assert names(second.effects.evicted) == ["large"]


def test_a_higher_priority_delays_who_was_first() -> None:
    snapshot = cluster(job("first", gpu=4, created=1.0), job("second", gpu=4, created=2.0))
    answer = ask_what_if(snapshot, [SetPriority(workload="second", value=90)])
    assert (names(answer.starts), names(answer.effects.delayed)) == (["second"], ["first"])
    assert answer.changes == ("second: raise its priority to medium-high (90)",)


def test_hidden_workloads_are_counted() -> None:
    answer = ask_what_if(SNAPSHOT, [SetNode(node="n1", action="drain")], Asker(visible=frozenset({"project-a"})))
    assert (answer.effects.evicted.workloads, answer.effects.evicted.hidden) == ((), 4)


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ((), "No change given."),
        ((SetShare(queue="c", field="quota", value=1),), "There is no project or department 'c'."),
        ((SetNode(node="n9", action="cordon"),), "There is no node 'n9'."),
        ((AddNodes(like="n9", count=1),), "There is no node 'n9'."),
        ((RemoveWorkload(workload="nobody"),), "The snapshot has no workload 'nobody'."),
        (
            (SetShare(queue="a", field="quota", value=1), SetShare(queue="a", field="quota", value=2)),
            "Two changes contradict each other: quota a.gpu=1 and quota a.gpu=2.",
        ),
        (
            (SetNode(node="n1", action="cordon"), SetNode(node="n1", action="uncordon")),
            "Two changes contradict each other: cordon n1 and uncordon n1.",
        ),
        (
            (SetShare(queue="a", field="quota", value=1, node_pool="x"),),
            "'a' has no quota in node pool 'x'.",
        ),
    ],
)
def test_changes_that_make_no_sense(changes: tuple[Change, ...], want: str) -> None:
    with pytest.raises(UnknownName) as caught:
        ask(*changes)
    assert str(caught.value) == want
