"""GPU-hours that projects borrowed and lent in a replay: by hand, and as the ledger of usage counts them."""

import pytest
from msgspec.structs import replace

from fairlead.control.ledger.loans import PoolHistory, find_loans
from fairlead.scheduling.model.snapshot import Queue, Snapshot
from fairlead.simulator.history import Arrival
from fairlead.simulator.lending import Lending, find_lending, project_queues
from fairlead.simulator.picture import render_svg
from fairlead.simulator.replay import replay
from fairlead.simulator.report import ask_history, make_cluster
from tests.unit.simulator.test_replay import arrival, random_load

HOUR = 3600.0


def lending(cluster: Snapshot, history: list[Arrival]) -> dict[str, Lending]:
    return find_lending(cluster, replay(cluster, history))


def with_quota(cluster: Snapshot, **quotas: float) -> Snapshot:
    def changed(queue: Queue) -> Queue:
        gpu = replace(queue.resources.gpu, quota=quotas.get(queue.name, queue.resources.gpu.quota))
        return replace(queue, resources=replace(queue.resources, gpu=gpu))

    return replace(cluster, queues=tuple(map(changed, cluster.queues)))


def test_what_one_project_borrows_the_other_lends() -> None:
    history = [arrival("borrows", 0, HOUR, 4, "b"), arrival("later", HOUR, 10, 1, "a")]
    assert lending(make_cluster(history, 1, 4), history) == {"a": (0, 2 * HOUR), "b": (2 * HOUR, 0)}


def test_time_that_an_evicted_workload_lost_counts_too() -> None:
    history = [arrival("borrows", 0, HOUR, 4, "b"), arrival("owns", HOUR / 2, HOUR, 2, "a")]
    report = ask_history(make_cluster(history, 1, 4), history).before
    assert report.evictions == 1
    assert [(each.borrowed_gpu_hours, each.lent_gpu_hours) for each in report.projects] == [(0, 3), (3, 0)]
    assert (report.borrowed_gpu_hours, report.lent_gpu_hours) == (3, 3)


def test_capacity_in_no_quota_is_borrowed_first() -> None:
    history = [arrival("borrows", 0, 100, 4, "b"), arrival("later", 100, 10, 1, "a")]
    cluster = with_quota(make_cluster(history, 1, 4), a=1, b=1)
    assert lending(cluster, history) == {"a": (0, 100), "b": (300, 0)}


def test_an_unlimited_quota_neither_borrows_nor_lends() -> None:
    history = [arrival("runs", 0, 100, 4, "b"), arrival("later", 100, 10, 1, "a")]
    assert lending(with_quota(make_cluster(history, 1, 4), b=-1), history) == {"a": (0, 0), "b": (0, 0)}


def test_a_project_that_submits_nothing_lends() -> None:
    history = [arrival("borrows", 0, HOUR, 4, "b")]
    both = make_cluster([*history, arrival("never", 0, project="idle")], 1, 4)
    answer = ask_history(both, history)
    idle = answer.before.projects[1]
    assert (idle.project, idle.workloads, idle.wait_p90, idle.lent_gpu_hours) == ("idle", 0, 0, 2)
    assert "idle" not in render_svg(answer)


def test_departments_are_not_counted_beside_their_projects() -> None:
    history = [arrival("borrows", 0, 10, 4, "b")]
    cluster = make_cluster(history, 1, 4)
    below = replace(cluster.queues[0], parent="department")
    both: Snapshot = replace(cluster, queues=(replace(below, name="department", parent=None), below))
    assert project_queues(both).keys() == {"b"}


@pytest.mark.parametrize("seed", [0, 5, 8, 11, 12, 13, 16, 17, 23])
def test_the_ledger_counts_the_same(seed: int) -> None:
    cluster, history = random_load(seed)
    if seed % 2:
        cluster = with_quota(cluster, a=-1)
    played = replay(cluster, history)
    quotas = {name: queue.resources.gpu.quota for name, queue in project_queues(cluster).items()}
    loans = find_loans(
        PoolHistory(
            used=[(round(1000 * at), project, round(1000 * more)) for at, project, more in played.gpu_changes],
            deserved=[(0, name, None if quota < 0 else round(1000 * quota)) for name, quota in quotas.items()],
            capacity=[(0, 1000 * sum(node.gpu for node in cluster.nodes))],
        ),
        (0, round(1000 * played.gpu_changes[-1][0])),
    )
    lent = dict.fromkeys(quotas, 0.0)
    for loan in loans:
        lent[loan.lender] += loan.amount / 1e6
    found = find_lending(cluster, played)
    assert any(lent.values())
    assert {name: each.lent for name, each in found.items()} == pytest.approx(lent, abs=0.01)


@pytest.mark.parametrize("seed", [0, 1, 4, 61])
def test_both_ways_of_replaying_hold_the_same_gpus(seed: int) -> None:
    cluster, history = random_load(seed)
    kept, plain = replay(cluster, history), replay(cluster, history, is_reference=True)
    assert find_lending(cluster, kept) == pytest.approx(find_lending(cluster, plain))
    assert sum(more for _, _, more in kept.gpu_changes) == 0
