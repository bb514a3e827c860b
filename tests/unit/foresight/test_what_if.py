"""What if: who starts, who is evicted or moved, who waits longer, and changes that make no sense."""

import pytest

from fairlead.foresight.changes import AddNodes, Change, RemoveWorkload, SetNode, SetPriority, SetShare
from fairlead.foresight.runtimes import RunningTime
from fairlead.foresight.what_if import WhatIfAnswer, ask_what_if
from fairlead.foresight.why import Asker
from fairlead.foresight.workloads import Concerned, SnapshotWorkloads, UnknownName
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


TEN_MINUTES_APART = {
    key: RunningTime(declared=600 * (number + 1)) for number, key in enumerate(SnapshotWorkloads(SNAPSHOT).jobs)
}


def test_starts_before_and_after() -> None:
    """Two of `b` make room: they start again when the first two have ended."""
    changes = [SetShare(queue=queue, field="quota", value=2) for queue in ("a", "b")]
    estimates = ask_what_if(SNAPSHOT, changes, runtimes=TEN_MINUTES_APART).estimates
    assert estimates is not None
    shown = [(each.workload, each.before.status, each.before.p50, each.after.p50) for each in estimates.starts]
    assert shown == [
        ("holds-2", "running", None, 1600),
        ("holds-3", "running", None, 2200),
        ("waits", "estimated", 2200, 1001),
    ]
    assert (estimates.left_out, estimates.hidden) == (0, 0)
    assert ask(*changes).estimates is None


def test_starts_that_cannot_be_estimated_say_why() -> None:
    blind = ask_what_if(SNAPSHOT, [SetShare(queue="a", field="weight", value=2)], runtimes={}).estimates
    assert blind is not None
    (waits,) = blind.starts
    assert (waits.after.status, waits.after.p50) == ("unknown", None)
    assert "has ended yet" in waits.after.message
    drained = ask_what_if(SNAPSHOT, [SetNode(node="n1", action="drain")], runtimes=TEN_MINUTES_APART).estimates
    assert drained is not None
    assert [each.after.status for each in drained.starts] == ["unknown"] * 5


def test_starts_of_others_are_counted_and_long_queues_cut() -> None:
    asker = Asker(visible=frozenset({"project-a"}))
    drained = ask_what_if(SNAPSHOT, [SetNode(node="n1", action="drain")], asker, TEN_MINUTES_APART).estimates
    assert drained is not None
    assert ([each.workload for each in drained.starts], drained.hidden) == (["waits"], 4)
    crowd = cluster(*(job(f"w{number:02d}", gpu=4, created=float(number)) for number in range(30)))
    cut = ask_what_if(crowd, [SetShare(queue="a", field="weight", value=2)], runtimes={}).estimates
    assert cut is not None
    assert ([each.workload for each in cut.starts][:2], len(cut.starts), cut.left_out) == (["w00", "w01"], 20, 10)


def test_what_a_drain_stops_starts_over() -> None:
    snapshot = cluster(job("runs", on="n1", gpu=4), job("blocks", on="n2", gpu=4), nodes=(node(), node("n2")))
    runs, blocks = SnapshotWorkloads(snapshot).jobs
    known = {runs: RunningTime(declared=100, elapsed=90), blocks: RunningTime(declared=500)}
    waiting = cluster(*snapshot.jobs, job("last", gpu=4, created=1.0), nodes=snapshot.nodes)
    estimates = ask_what_if(waiting, [SetNode(node="n1", action="drain")], runtimes=known).estimates
    assert estimates is not None
    starts = {each.workload: (each.before.p50, each.after.p50) for each in estimates.starts}
    assert starts == {"runs": (None, 1500), "last": (1010, 1601)}


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ((), "No change given."),
        ((SetShare(queue="c", field="quota", value=1),), "There is no project or department 'c'."),
        ((SetNode(node="n9", action="cordon"),), "There is no node 'n9'."),
        ((AddNodes(like="n9", count=1),), "There is no node 'n9'."),
        (
            (AddNodes(like="n1", count=10**9),),
            "1000000000 nodes are too many to add; a question may have 100000 nodes.",
        ),
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
