"""The states of a workload on the cluster: which moves are legal, and what each of them keeps."""

import msgspec
import pytest

from fairlead.engines.base import DeleteWorkload, DesiredWorkload
from fairlead.engines.kubernetes.plan.state import (
    IllegalMove,
    State,
    WorkloadState,
    fail,
    is_current,
    lose,
    order,
    refuse,
    succeed,
)
from tests import builders

WORKLOAD = DesiredWorkload(
    workload_id="w",
    name="train",
    project="team-a",
    namespace="runai-team-a",
    run=1,
    podsets=(builders.podset(),),
    priority_class="train",
    is_preemptible=True,
)
NEXT_RUN = msgspec.structs.replace(WORKLOAD, run=2)
SUSPEND = DeleteWorkload("w", "runai-team-a", keeps_claims=True)
DELETE = DeleteWorkload("w", "runai-team-a")
APPLYING = order(WorkloadState(), WORKLOAD)
APPLIED = succeed(APPLYING)
DELETING = order(APPLIED, DELETE)
DELETED = succeed(DELETING)


@pytest.mark.parametrize(
    ("state", "want"),
    [
        (APPLYING, State.APPLYING),
        (APPLIED, State.APPLIED),
        (fail(APPLYING, "no"), State.APPLYING),
        (fail(APPLIED, "no"), State.APPLYING),
        (refuse(APPLYING, "no"), State.REFUSED),
        (refuse(APPLIED, "no"), State.REFUSED),
        (lose(APPLYING, 1.0), State.APPLYING),
        (lose(APPLIED, 1.0), State.LOST),
        (order(lose(APPLIED, 1.0), WORKLOAD), State.APPLYING),
        (fail(lose(APPLIED, 1.0), "no"), State.APPLYING),
        (DELETING, State.DELETING),
        (fail(DELETING, "no"), State.DELETING),
        (lose(DELETING, 1.0), State.DELETING),
        (DELETED, State.DELETED),
        (lose(DELETED, 1.0), State.DELETED),
        (order(DELETED, NEXT_RUN), State.APPLYING),
        (order(DELETING, NEXT_RUN), State.APPLYING),
    ],
    ids=[
        "ordered",
        "applied",
        "not yet applied",
        "its upkeep failed",
        "refused when applied",
        "refused later",
        "lost while applied",
        "lost",
        "lost and ordered again",
        "lost while looked after",
        "to be deleted",
        "not yet deleted",
        "its controllers go",
        "deleted",
        "a late loss",
        "resumed",
        "resumed too early",
    ],
)
def test_moves(state: WorkloadState, want: State) -> None:
    assert state.state is want


@pytest.mark.parametrize("state", [WorkloadState(), APPLIED, DELETED], ids=["nothing ordered", "applied", "deleted"])
def test_nothing_succeeds_that_is_not_under_way(state: WorkloadState) -> None:
    with pytest.raises(IllegalMove, match="succeeded"):
        succeed(state)


@pytest.mark.parametrize(
    ("state", "desired", "want"),
    [
        (WorkloadState(), WORKLOAD, False),
        (APPLYING, WORKLOAD, True),
        (APPLIED, WORKLOAD, True),
        (APPLIED, NEXT_RUN, False),
        (APPLIED, DELETE, False),
        (refuse(APPLIED, "no"), WORKLOAD, True),
        (lose(APPLIED, 1.0), WORKLOAD, False),
        (DELETING, DELETE, True),
        (DELETED, DELETE, True),
        (DELETED, SUSPEND, False),
        (DELETED, WORKLOAD, False),
    ],
    ids=[
        "nothing ordered",
        "under way",
        "applied",
        "another run",
        "deletion",
        "refused",
        "lost",
        "deletion under way",
        "deleted",
        "another deletion",
        "resumed",
    ],
)
def test_orders_that_change_nothing(
    state: WorkloadState, desired: DesiredWorkload | DeleteWorkload, want: bool
) -> None:
    assert is_current(state, desired) is want


def test_a_deletion_counts_until_the_next_workload_is_ordered() -> None:
    suspended = succeed(order(APPLIED, SUSPEND))
    assert (suspended.deleted, suspended.is_removed) == (SUSPEND, False)
    # Also while the claims are deleted too.
    again = order(suspended, DELETE)
    assert (again.deleted, succeed(again).is_removed) == (SUSPEND, True)
    assert order(suspended, NEXT_RUN).deleted is None


def test_messages_last_until_they_are_overtaken() -> None:
    failed = fail(APPLYING, "no namespace")
    assert failed.retrying_because == "no namespace"
    assert succeed(failed).retrying_because == ""
    refused = refuse(failed, "no such field")
    assert (refused.refused, refused.retrying_because) == ("no such field", "")
    assert order(refused, DELETE).refused == "no such field"
    assert order(refused, NEXT_RUN).refused == ""


def test_losses_count_until_everything_is_applied() -> None:
    lost = lose(lose(APPLIED, 1.0), 2.0)
    assert (lost.lost, lost.lost_at) == (2, 2.0)
    again = order(lost, WORKLOAD)
    assert (again.lost, succeed(again).lost) == (2, 0)
