"""What may be changed of a workload's custom resource."""

from typing import Any

import pytest

from fairlead.control.custom_resources.reader import edited_members

BEFORE = {"image": {"value": "a"}, "userId": {"value": "ann"}, "ingressUrl": {"value": "http://a"}}


@pytest.mark.parametrize(
    ("change", "want"),
    [
        ({"active": {"value": False}}, []),
        ({"ingressUrl": {"value": "http://b"}}, []),
        ({"userId": {"value": "another"}}, []),
        ({}, []),
        ({"image": {"value": "another"}}, ["image"]),
    ],
    ids=["whether it runs", "where it is reached", "its owner, which is overwritten", "nothing", "its image"],
)
def test_what_counts_as_an_edit(change: dict[str, Any], want: list[str]) -> None:
    assert edited_members(BEFORE, BEFORE | change) == want


def test_a_member_that_was_removed_counts() -> None:
    assert edited_members(BEFORE, {}) == ["image"]
