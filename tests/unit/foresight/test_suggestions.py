"""The best change in a few words, for several waiting workloads within a small budget."""

import msgspec

from fairlead.foresight.suggestions import format_suggestion, suggest_changes
from fairlead.foresight.why import explain_why
from tests.unit.foresight.test_why import cluster, job, node

FIRST, SECOND = "project-a/first", "project-a/second"


def test_each_suggestion_is_the_first_change_of_the_whole_answer() -> None:
    snapshot = cluster(job("holds", "b", on="n1", gpu=3), job("first", gpu=2), job("second", gpu=4))
    suggested = suggest_changes(snapshot, (FIRST, SECOND))
    assert suggested[FIRST] == "request 1 GPU instead of 2"
    for key, text in suggested.items():
        assert explain_why(snapshot, key).changes[0].message.lower().startswith(text.lower())


def test_evictions_are_part_of_a_suggestion() -> None:
    answer = explain_why(cluster(job("holds", on="n1", gpu=4), job("first", gpu=1)), FIRST)
    harmful = tuple(change for change in answer.changes if change.family == "priority")
    told = format_suggestion(msgspec.structs.replace(answer, changes=harmful))
    assert told.endswith(" (evicts 1)")
    assert told[0].islower()


def test_nothing_is_searched_on_large_clusters() -> None:
    running = [job(f"r{number}", on="n1", gpu=1) for number in range(501)]
    assert suggest_changes(cluster(*running, job("first", gpu=4), nodes=(node(gpu=502),)), (FIRST,)) == {}


def test_the_budget_is_for_all_of_them() -> None:
    waiting = [job(f"w{number:03d}", gpu=4, created=float(number)) for number in range(200)]
    snapshot = cluster(job("holds", "b", on="n1", gpu=4), *waiting)
    suggested = suggest_changes(snapshot, [f"project-a/w{number:03d}" for number in range(200)])
    assert 0 < len(suggested) < 50
    assert "project-a/w000" in suggested


def test_what_starts_by_itself_needs_no_change() -> None:
    assert suggest_changes(cluster(job("first")), (FIRST,)) == {}
