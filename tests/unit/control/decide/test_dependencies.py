"""What a workload waits for, given how the others ended."""

from typing import Any

import pytest

from fairlead.control.decide.dependencies import dependency_ids, describe_unmet, format_waiting, recheck
from fairlead.model.after import Dependency
from fairlead.model.records.phase import Phase
from tests.builders import workload

TIMED = {"phase": Phase.STOPPED, "time_limit": 1000, "running_time": 1000}


@pytest.mark.parametrize(
    ("members", "want_after", "want_any"),
    [
        pytest.param({"phase": Phase.RUNNING}, "Waiting for prep to complete", "Waiting for prep to end", id="runs"),
        pytest.param({"phase": Phase.COMPLETED}, "", "", id="completed"),
        pytest.param({"phase": Phase.FAILED}, "Can never start: prep failed", "", id="failed"),
        pytest.param({"phase": Phase.STOPPED}, "Waiting for prep to complete", "Waiting for prep to end", id="paused"),
        pytest.param(TIMED, "Can never start: prep was stopped at its time limit", "", id="its time is over"),
        pytest.param({"phase": Phase.DELETING, "deleted_at": 5}, "Can never start: prep was deleted", "", id="deleted"),
    ],
)
def test_how_the_other_ended(members: dict[str, Any], want_after: str, want_any: str) -> None:
    running, other = workload("prep", id="1", phase=Phase.RUNNING), workload("prep", id="1", **members)
    for is_any, want in ((False, want_after), (True, want_any)):
        dependency = Dependency("prep", is_any)
        assert format_waiting(describe_unmet(dependency, other)) == want
        assert format_waiting(recheck(describe_unmet(dependency, running), {"1": other})) == want


def test_what_has_no_record_was_deleted_and_what_never_happens_stays() -> None:
    waits = describe_unmet(Dependency("prep", False), workload("prep", id="1", phase=Phase.RUNNING))
    never = recheck(waits, {})
    assert format_waiting(never) == "Can never start: prep was deleted"
    assert recheck(never, {"1": workload("prep", id="1", phase=Phase.COMPLETED)}) == never
    assert (dependency_ids(waits), dependency_ids(never)) == (("1",), ())


def test_every_dependency_is_listed_and_impossible_ones_first() -> None:
    waits = ("secret key", "after 1 a", "after 2 b", "afterany 3 c", "never 4 d failed")
    assert format_waiting(waits) == (
        "Can never start: d failed; Waiting for a, b to complete; Waiting for c to end; "
        "Waiting for secret key to be created in its project"
    )
    assert dependency_ids(waits) == ("1", "2", "3")
    assert recheck(("secret key",), {}) == ()
