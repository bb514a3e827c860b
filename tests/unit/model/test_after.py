"""The annotation that names the workloads to wait for."""

import pytest

from fairlead.model.after import Dependency, read_after


def test_names_with_and_without_any() -> None:
    want = (Dependency("prep", False), Dependency("fetch-2", True))
    assert read_after("prep, any:fetch-2,prep") == want


@pytest.mark.parametrize(
    "text", ["", "prep,", "Prep", "any:", "afterok:prep", "a b", ",".join(f"w{n}" for n in range(101))]
)
def test_what_is_not_a_list_of_names(text: str) -> None:
    with pytest.raises(ValueError, match=r"name of a workload|at most 100"):
        read_after(text)
