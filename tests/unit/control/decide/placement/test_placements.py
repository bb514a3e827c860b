"""Which task of an array a new pod has, and when the message of a waiting workload is written."""

import msgspec
import pytest

from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.decide.placement.placements import explain, free_array_index
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.phase import Phase
from fairlead.scheduling.model.decisions import NodeCause, Pending, Reason
from tests import builders


@pytest.mark.parametrize(
    ("podset", "want"),
    [
        pytest.param(builders.podset(completions=1), None, id="a single pod"),
        pytest.param(builders.podset(completions=2), 0, id="several completions"),
        pytest.param(builders.array_podset("7", 1), 0, id="an array of one task"),
        pytest.param(builders.array_podset("3-9:2", 4), 0, id="an array"),
    ],
)
def test_the_place_of_a_new_pod(podset: PodSet, want: int | None) -> None:
    draft = Draft(WorkloadEntry(workload=builders.workload(), pods=(), podsets=(podset,)), 0)
    assert free_array_index(draft, podset) == want


def waits(cause: str, free: float = 0) -> Pending:
    lack = NodeCause(cause=cause, nodes=1, asked=2, free=free, best_node="alpha", largest=4, largest_node="alpha")
    return Pending(job="j", tasks=("w/main/0/0",), reason=Reason(code="NoNodeFits", nodes=1, causes=(lack,)))


@pytest.mark.parametrize(
    ("later", "waiting", "want_due"),
    [
        pytest.param(waits("gpu"), 1, None, id="the same reason"),
        pytest.param(waits("cpu"), 1, 1000, id="another resource"),
        pytest.param(waits("gpu", 1), 500, 5000, id="other numbers, and many wait"),
        pytest.param(waits("gpu", 1), 100_000, 10_000, id="other numbers, and very many wait"),
    ],
)
def test_when_the_message_of_a_waiting_workload_is_written_again(
    later: Pending, waiting: int, want_due: int | None
) -> None:
    draft = Draft(WorkloadEntry(workload=builders.workload(phase=Phase.PENDING), pods=(), podsets=()), 0)
    assert explain(draft, waits("gpu"), waiting) is None
    first = draft.workload
    assert "GPU" in first.phase_message
    assert explain(draft, later, waiting) == want_due
    assert draft.workload == first
    again = Draft(WorkloadEntry(workload=first, pods=(), podsets=()), want_due or 60_000)
    assert explain(again, later, waiting) is None
    assert (again.workload.phase_message == first.phase_message) is (want_due is None)


def test_a_workload_with_running_pods_is_not_written_again_for_the_same_reason() -> None:
    """Its message is that of its running pods."""
    running = builders.workload(phase=Phase.RUNNING, phase_message="1 pod running")
    draft = Draft(WorkloadEntry(workload=running, pods=(), podsets=()), 0)
    assert explain(draft, waits("gpu")) is None
    blocked = msgspec.structs.replace(draft.workload, phase_message="1 pod running")
    later = Draft(WorkloadEntry(workload=blocked, pods=(), podsets=()), 60_000)
    assert explain(later, waits("gpu")) is None
    assert not later.is_changed
