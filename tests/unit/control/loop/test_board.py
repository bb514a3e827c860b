"""The next times of workloads: one each is enough, however often they are looked at; and jobs that are kept."""

from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.decide.placement.snapshot import render_jobs
from fairlead.control.loop.board import Board
from fairlead.model.clock import Millis
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import Tally
from tests import builders


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


def test_the_end_of_a_backoff_adds_to_jobs_that_were_asked_for_before() -> None:
    board = Board({})
    waiting = builders.workload(phase=Phase.DEGRADED, tallies={"main": Tally(failed=1, retry_at=2000)})
    entry = WorkloadEntry(workload=waiting, pods=(), podsets=(builders.podset(),))

    def count_tasks(now: Millis) -> int:
        after = Draft(entry, now).entry_after()
        jobs = board.jobs(after, lambda entry: render_jobs(entry, "team", now))
        return sum(len(job.tasks) for job in jobs)

    assert [count_tasks(now) for now in (1000, 1500, 2000)] == [0, 0, 1]
