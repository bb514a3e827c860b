"""Which phase may follow which."""

import pytest

from fairlead.model.records.phase import MOVES, Phase, may_move

P = Phase
DOCUMENTED = [
    (P.CREATING, P.PENDING),
    (P.PENDING, P.INITIALIZING),
    (P.INITIALIZING, P.RUNNING),
    (P.RUNNING, P.COMPLETED),
    (P.RUNNING, P.FAILED),
    (P.RUNNING, P.DEGRADED),
    (P.DEGRADED, P.RUNNING),
    (P.RUNNING, P.TERMINATING),
    (P.TERMINATING, P.PENDING),
    (P.STOPPED, P.RESUMING),
    (P.RESUMING, P.PENDING),
]
BEYOND = [
    (P.PENDING, P.FAILED),
    (P.INITIALIZING, P.FAILED),
    (P.INITIALIZING, P.COMPLETED),
    (P.TERMINATING, P.FAILED),
    (P.STOPPING, P.DELETING),
    (P.RESUMING, P.STOPPING),
]
ILLEGAL = [
    (P.COMPLETED, P.RUNNING),
    (P.FAILED, P.PENDING),
    (P.COMPLETED, P.STOPPING),
    (P.STOPPED, P.RUNNING),
    (P.RUNNING, P.PENDING),
    (P.CREATING, P.RUNNING),
    (P.DELETING, P.PENDING),
]


@pytest.mark.parametrize(("before", "after"), DOCUMENTED + BEYOND)
def test_legal_moves(before: Phase, after: Phase) -> None:
    assert may_move(before, after)


@pytest.mark.parametrize(("before", "after"), ILLEGAL)
def test_illegal_moves(before: Phase, after: Phase) -> None:
    assert not may_move(before, after)


@pytest.mark.parametrize("phase", list(Phase))
def test_every_phase_has_its_row_and_may_be_deleted_or_lost_sight_of(phase: Phase) -> None:
    assert phase in MOVES
    assert may_move(phase, P.DELETING)
    assert may_move(phase, P.UNKNOWN)
