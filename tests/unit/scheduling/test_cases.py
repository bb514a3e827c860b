"""Cases from files: a mistyped key is an error and not an expectation of nothing."""

from typing import Any

import pytest

from fairlead.scheduling.cases import find_unknown_keys, judge

CASE: dict[str, Any] = {"nodes": {"n1": {"gpu": 1}}, "queues": {"q": 1}, "jobs": {"a": {"gpu": 1}}}


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param(
            {"expect": {"evictedd": ["a"]}}, "expect has no key 'evictedd'. Did you mean evicted?", id="expect"
        ),
        pytest.param({"job": {}}, "the case has no key 'job'. Did you mean jobs?", id="case"),
        pytest.param({"nodes": {"n1": {"gpus": 1}}}, "node n1 has no key 'gpus'. Did you mean gpu?", id="node"),
        pytest.param(
            {"queues": {"q": {"gpu": {"qota": 1}}}}, "queue q, gpu has no key 'qota'. Did you mean quota?", id="share"
        ),
        pytest.param(
            {"jobs": {"a": {"podSets": {"x": {"task": 2}}}}},
            "job a, x has no key 'task'. Did you mean tasks?",
            id="pod set",
        ),
    ],
)
def test_unknown_keys_are_named(change: dict[str, Any], want: str) -> None:
    assert find_unknown_keys(CASE | change) == [want]
    assert judge(CASE | change) == [want]


def test_known_keys_are_not() -> None:
    assert judge(CASE | {"expect": {"starts": {"a": "n1"}}}) == []
