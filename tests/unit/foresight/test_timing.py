"""When a planned workload starts, and how much later others start because of it."""

from fairlead.foresight.plan import make_plan
from fairlead.foresight.runtimes import RunningTime
from fairlead.foresight.timing import estimate_timing
from fairlead.foresight.why import Asker
from tests.unit.foresight.test_why import cluster, job, queue

HOLDS, NEW, OTHER = "project-a/holds", "project-a/new", "project-b/other"


def test_a_plan_that_waits_says_until_when() -> None:
    snapshot = cluster(job("holds", on="n1", gpu=4), job("new"))
    plan = make_plan(snapshot, "new", runtimes={HOLDS: RunningTime(declared=500, elapsed=100)})
    assert plan.timing is not None
    assert (plan.status, plan.timing.p50, plan.timing.p90) == ("waits", 1400, 1400)
    assert plan.message.endswith(" Starts about 1970-01-01 00:23:20 UTC.")
    assert make_plan(snapshot, "new").timing is None


def test_times_do_not_change_the_plan() -> None:
    snapshot = cluster(job("holds", on="n1", gpu=4), job("new"))
    assert make_plan(snapshot, "new", runtimes={HOLDS: RunningTime(declared=500)}).id == make_plan(snapshot, "new").id


def test_who_has_to_wait_longer_and_by_how_much() -> None:
    """`new` is older than `other`, so it gets the node first and holds it for 300 s."""
    snapshot = cluster(
        job("holds", on="n1", gpu=4), job("new", gpu=4, created=0.0), job("other", "a", gpu=4, created=5.0)
    )
    runtimes = {
        HOLDS: RunningTime(declared=100),
        NEW: RunningTime(declared=300),
        "project-a/other": RunningTime(declared=50),
    }
    timing = estimate_timing(snapshot, "new", runtimes)
    (delay,) = timing.delays
    assert (timing.p50, delay.workload, delay.project, delay.is_evicted) == (1100, "other", "a", False)
    assert delay.seconds is not None
    assert 300 <= delay.seconds <= 302


def test_what_is_evicted_starts_again_later() -> None:
    queues = (queue("a", quota=4), queue("b", quota=0))
    snapshot = cluster(job("other", "b", on="n1", gpu=4), job("new", gpu=4), queues=queues)
    runtimes = {NEW: RunningTime(declared=200), OTHER: RunningTime(declared=1000)}
    timing = estimate_timing(snapshot, "new", runtimes)
    (delay,) = timing.delays
    assert (delay.workload, delay.is_evicted) == ("other", True)
    assert delay.seconds is not None
    assert 200 <= delay.seconds <= 203
    hidden = estimate_timing(snapshot, "new", runtimes, Asker(visible=frozenset({"project-a"})))
    assert (hidden.delays, hidden.hidden_delays) == ((), 1)


def test_no_workload_is_delayed_where_there_is_room() -> None:
    timing = estimate_timing(cluster(job("new"), job("other", "b")), "new", {})
    assert (timing.delays, timing.hidden_delays, timing.message) == ((), 0, "Starts in the next scheduling cycle.")


def test_what_cannot_be_estimated() -> None:
    timing = estimate_timing(cluster(job("holds", on="n1", gpu=4), job("new")), "new", {})
    assert (timing.p50, timing.message) == (None, "No estimate: no workload similar to holds has ended yet.")
