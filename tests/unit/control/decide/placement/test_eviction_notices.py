"""Who is named to whom: pods of projects that a reader may not see are counted together and have no name."""

import pytest

from fairlead.control.decide.draft import WorkloadEntry
from fairlead.control.decide.placement.eviction_notices import HIDDEN_POD, name_pods
from fairlead.scheduling.model.decisions import Reason
from tests import builders


def entry(project: str, *pods: str) -> WorkloadEntry:
    workload = builders.workload(f"of-{project}", id=f"w-{project}", project_id=project)
    return WorkloadEntry(
        workload=workload,
        podsets=(),
        pods=tuple(builders.pod(f"{pod}-name", id=pod, workload_id=workload.id) for pod in pods),
    )


ENTRIES = {one.workload.id: one for one in (entry("1", "a", "b"), entry("2", "c", "d"))}
PODS = {pod.id: one.workload.id for one in ENTRIES.values() for pod in one.pods}
WAITS = Reason(code="WaitsForVictims", waits_for=("a", "c", "d", "gone"))


@pytest.mark.parametrize(
    ("visible", "want_names"),
    [
        pytest.param(None, ("a-name", "c-name", "d-name", "gone"), id="an administrator reads all names"),
        pytest.param(frozenset({"1"}), ("a-name", HIDDEN_POD, "gone"), id="other projects' pods are told once"),
        pytest.param(frozenset(), (HIDDEN_POD, "gone"), id="nobody's pods are named"),
    ],
)
def test_pods_are_named_for_the_reader(visible: frozenset[str] | None, want_names: tuple[str, ...]) -> None:
    assert name_pods(WAITS, PODS, ENTRIES, visible).waits_for == want_names
