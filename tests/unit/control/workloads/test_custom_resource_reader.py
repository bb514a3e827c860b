"""What may be changed of an object that was applied to a cluster."""

from typing import Any

import pytest

from fairlead.control.workloads.custom_resource_reader import check_change
from fairlead.model.errors import Invalid

BEFORE = {"image": {"value": "a"}, "userId": {"value": "ann"}, "ingressUrl": {"value": "http://a"}}


def find_refused(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The fields whose change is refused."""
    try:
        check_change(before, after)
    except Invalid as refused:
        return [issue.field for issue in refused.issues]
    return []


@pytest.mark.parametrize(
    ("change", "want"),
    [
        ({"active": {"value": False}}, []),
        ({"ingressUrl": {"value": "http://b"}}, []),
        ({}, []),
        ({"image": {"value": "another"}}, ["spec.image"]),
        ({"userId": {"value": "another"}}, ["spec.userId"]),
    ],
    ids=["whether it runs", "where it is reached", "nothing", "its image", "its owner"],
)
def test_what_may_change(change: dict[str, Any], want: list[str]) -> None:
    assert find_refused(BEFORE, BEFORE | change) == want


def test_its_owner_is_written_once() -> None:
    assert find_refused({"image": BEFORE["image"]}, BEFORE) == []
