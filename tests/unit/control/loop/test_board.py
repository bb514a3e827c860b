"""The next times of workloads: one each is enough, however often they are looked at."""

from fairlead.control.loop.board import Board


def test_a_workload_is_woken_once_however_often_that_was_asked_for() -> None:
    board = Board({})
    for at in (30, 20, 20, 25, 40):
        board.wake(at, "a")
    board.wake(35, "b")
    assert board.next_wake() == 20
    assert board.due(19) == set()
    assert board.due(20) == {"a"}
    # The time that an earlier one made needless is still there; it does no harm.
    assert board.due(34) == {"a"}
    assert board.due(100) == {"b"}
    assert board.next_wake() is None


def test_looking_again_and_again_keeps_the_list_short() -> None:
    board = Board({})
    for now in range(0, 100_000, 7):
        for _ in range(2):
            board.wake(now + 2000, "a")
        board.due(now)
    assert len(board._wakes) <= 2
