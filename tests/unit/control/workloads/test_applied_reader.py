"""What may be changed of an object that was applied to a cluster."""

from typing import Any

import pytest

from fairlead.control.workloads.applied_reader import check_change
from fairlead.model.errors import Invalid

BEFORE = {"image": {"value": "a"}, "userId": {"value": "ann"}, "ingressUrl": {"value": "http://a"}}


@pytest.mark.parametrize(
    "change",
    [{"active": {"value": False}}, {"ingressUrl": {"value": "http://b"}}, {}],
    ids=["whether it runs", "where it is reached", "nothing"],
)
def test_what_may_change(change: dict[str, Any]) -> None:
    check_change(BEFORE, BEFORE | change)


def test_its_owner_is_written_once() -> None:
    check_change({"image": BEFORE["image"]}, BEFORE)


@pytest.mark.parametrize("name", ["image", "userId"])
def test_what_may_not_change(name: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_change(BEFORE, BEFORE | {name: {"value": "another"}})
    assert [issue.field for issue in refused.value.issues] == [f"spec.{name}"]
