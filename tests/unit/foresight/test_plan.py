"""Plans of submissions: where, whom, which quotas; and how a plan differs from the present."""

from fairlead.foresight.plan import describe_difference, make_plan
from fairlead.foresight.why import Asker
from tests.unit.foresight.test_why import cluster, job, node, queue


def test_a_plan_names_nodes_devices_and_quotas() -> None:
    plan = make_plan(cluster(job("holds", on="n1"), job("new", gpu=2)), "new")
    assert (plan.status, plan.message) == ("starts", "Starts 1 pod on n1.")
    assert [(pod.node, pod.devices, pod.cycle) for pod in plan.pods] == [("n1", (1, 2), 1)]
    (own,) = plan.queues
    assert (own.name, own.quota[0], own.used_before[0], own.used_after[0]) == ("a", 4, 1, 3)
    assert plan.effects.harm == 0


def test_whom_it_evicts_and_under_which_rule() -> None:
    queues = (queue("a", quota=4), queue("b", quota=0))
    snapshot = cluster(job("holds", "b", on="n1", gpu=4), job("new", gpu=4), queues=queues)
    plan = make_plan(snapshot, "new")
    assert plan.message == "Starts 1 pod on n1; evicts holds."
    (eviction,) = plan.evictions
    assert (eviction.workload, eviction.project, eviction.rule) == ("holds", "b", "reclaimed")
    assert "fair-share" in eviction.message
    hidden = make_plan(snapshot, "new", Asker(visible=frozenset({"project-a"})))
    assert (hidden.evictions, hidden.effects.evicted.hidden) == ((), 1)
    assert hidden.message == "Starts 1 pod on n1; evicts 1 workload of other projects."


def test_whom_it_delays() -> None:
    first = job("first", created=1.0, gpu=4)
    plan = make_plan(cluster(first, job("new", gpu=4, created=0.0)), "new")
    assert [ref.workload for ref in plan.effects.delayed.workloads] == ["first"]


def test_what_waits_and_what_never_starts() -> None:
    assert make_plan(cluster(job("holds", on="n1", gpu=4), job("new")), "new").status == "waits"
    never = make_plan(cluster(job("new", gpu=9)), "new")
    assert (never.status, never.message[:15]) == ("never", "Can never start")


def test_equal_plans_have_one_id_whatever_the_name() -> None:
    plans = [make_plan(cluster(job("holds", on="n1"), job(name)), name) for name in ("new-a", "new-b")]
    assert plans[0].id == plans[1].id
    other = make_plan(cluster(job("holds", on="n1"), job("new", gpu=2)), "new")
    assert other.id != plans[0].id


def test_the_difference_between_a_plan_and_the_present() -> None:
    planned = make_plan(cluster(job("new")), "new")
    waits = make_plan(cluster(job("holds", on="n1", gpu=4), job("new")), "new")
    (difference,) = describe_difference(planned, waits)
    assert difference.startswith("It was planned: Starts 1 pod on n1. Now: Waiting for 1 GPU")
    elsewhere = make_plan(cluster(job("new"), nodes=(node("n2"),)), "new")
    assert describe_difference(planned, elsewhere) == ["Its pods would be placed differently: n2 0 instead of n1 0."]
