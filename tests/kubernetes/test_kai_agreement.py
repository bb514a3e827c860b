"""How often our `decide` and a real KAI agree: 200 random workloads on nodes of four shapes.

KAI is stopped while workloads come and go, so that both decide on the same state: ours on a snapshot read from the
cluster, KAI when it is started again. Run by `make test-operators`.
"""

import random
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from deploy.cluster import cluster as clusters
from deploy.cluster import control
from deploy.cluster.nodes import Shape, add_nodes, observe_nodes, remove_nodes
from fairlead.cli.scheduling.kai_cluster import read_cluster
from fairlead.foresight.workloads import HOLDING
from fairlead.scheduling import simulate
from fairlead.scheduling.model.snapshot import Job, Snapshot
from tests.e2e.server import until
from tests.kubernetes.cluster_harness import ID, PATIENCE, TYPES, ClusterHarness

pytestmark = pytest.mark.operators
KAI = "kai-scheduler"
#: Nodes and GPUs of each.
SHAPES = ((2, 8), (4, 4), (8, 2), (3, 6))
ROUNDS, WORKLOADS = 5, 10
#: Cycles that ours may take until nothing changes, and seconds without a change after which KAI is done. It needs some
#: of them to start, and then decides once a second.
CYCLES, QUIET = 8, 15.0
PRIORITIES = ("very-low", "low", "medium", "medium-high", "high", "very-high")


class Outcome(NamedTuple):
    """Jobs by id."""

    placed: frozenset[str]
    victims: frozenset[str]


@pytest.fixture(scope="module")
def projects(harness: ClusterHarness) -> list[str]:
    """One without a quota, and two with a part of the cluster."""
    return [harness.make_project(f"{harness.project}-{name}", gpus) for name, gpus in (("x", 0), ("y", 4), ("z", 8))]


@pytest.fixture(scope="module", autouse=True)
def kai_afterwards(cluster: clusters.Cluster) -> Iterator[None]:
    yield
    control.start_again(cluster.layout.folder, KAI)


def test_most_placements_and_victims_agree(
    cluster: clusters.Cluster, harness: ClusterHarness, projects: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    dice = random.Random(1)
    placements: list[bool] = []
    victims: list[bool] = []
    differences: list[str] = []
    for nodes, gpus in SHAPES:
        set_shape(cluster, nodes, gpus)
        for number in range(ROUNDS):
            control.stop(cluster.layout.folder, KAI)
            remove_some(harness, dice)
            submit_some(harness, projects, dice, f"{nodes}x{gpus}-{number}")
            before = read_cluster(str(cluster.kubeconfig))
            control.start_again(cluster.layout.folder, KAI)
            kai, ours = observe_kai(cluster, before), decide_ours(before)
            waiting = [job.id for job in before.jobs if not is_placed(job)]
            placements += [(id in ours.placed) == (id in kai.placed) for id in waiting]
            victims += [id in ours.victims and id in kai.victims for id in sorted(ours.victims | kai.victims)]
            for what, mine, theirs in (("placed", *both(ours, kai, 0)), ("evicted", *both(ours, kai, 1))):
                if mine != theirs:
                    differences.append(f"{nodes}x{gpus} round {number}, {what}: ours {mine}, KAI {theirs}")
            with capsys.disabled():
                print(
                    f"\n{nodes}x{gpus} {number}: placements {share(placements)}, victims {share(victims)}", flush=True
                )
        harness.delete_all()
    told = f"placements {share(placements)}, victims {share(victims)}"
    assert sum(placements) >= 0.99 * len(placements), (told, differences)
    assert sum(victims) >= 0.95 * len(victims), (told, differences)


def both(ours: Outcome, kai: Outcome, index: int) -> tuple[list[str], list[str]]:
    """What one has and the other has not."""
    return sorted(ours[index] - kai[index]), sorted(kai[index] - ours[index])


def share(agreed: list[bool]) -> str:
    return f"{sum(agreed)} of {len(agreed)} agree"


def set_shape(cluster: clusters.Cluster, count: int, gpus: int) -> None:
    with cluster.api() as api:
        remove_nodes(api, observe_nodes(api))
        add_nodes(api, [f"shape-{gpus}-{number}" for number in range(count)], Shape(gpus=gpus))


def remove_some(harness: ClusterHarness, dice: random.Random) -> None:
    """A part of what runs ends."""
    listed = harness.server.call("GET", "/api/v1/workloads?limit=500").json["workloads"]
    ending = [one for one in listed if one["phase"] == "Running" and dice.random() < 0.4]
    for one in ending:
        answer = harness.server.call("DELETE", f"/api/v1/workloads/{TYPES[one['type']]}/{one['id']}")
        assert answer.status == 202, answer
    gone = {one["id"] for one in ending}
    until(lambda: not gone & workloads_with_pods(harness), "the end of some", PATIENCE)


def submit_some(harness: ClusterHarness, projects: list[str], dice: random.Random, name: str) -> None:
    """Wait until each has its pods and their pod group."""
    made: dict[str, int] = {}
    for number in range(WORKLOADS):
        pods = dice.choice((1, 1, 1, 2, 3))
        spec = harness.spec(gpus=dice.choice((0, 1, 1, 2, 2, 3, 4, 6, 8)))
        members = {
            "priorityClass": dice.choice(PRIORITIES),
            "preemptibility": dice.choice(("preemptible",) * 3 + ("non-preemptible",)),
        }
        kind = "training" if pods == 1 else "distributed"
        more = {} if pods == 1 else {"numWorkers": pods - 1, "distributedFramework": "PyTorch"}
        project = dice.choice(projects)
        made[harness.submit(kind, f"w-{name}-{number}", {**spec, **members, **more}, project=project)] = pods
    until(lambda: all(len(pods_of(harness, id)) == pods for id, pods in made.items()), "all pods", PATIENCE)


def pods_of(harness: ClusterHarness, workload: str) -> list[str]:
    """Those that have a pod group."""
    listed = harness.api.call("GET", f"/api/v1/pods?labelSelector={ID}={workload}")["items"]
    return [one["metadata"]["name"] for one in listed if "pod-group-name" in one["metadata"].get("annotations", {})]


def workloads_with_pods(harness: ClusterHarness) -> set[str]:
    return {
        one["metadata"]["labels"][ID] for one in harness.api.call("GET", f"/api/v1/pods?labelSelector={ID}")["items"]
    }


def decide_ours(before: Snapshot) -> Outcome:
    played = list(simulate(before, CYCLES))
    evictions = (each for _, decisions in played for each in decisions.evictions)
    victims = {each.job for each in evictions if not each.never_started}
    running = {job.id for job in before.jobs if is_placed(job)}
    return Outcome(frozenset(job.id for job in played[-1][0].jobs if is_placed(job)), frozenset(victims & running))


def observe_kai(cluster: clusters.Cluster, before: Snapshot) -> Outcome:
    """What is so once nothing changes any more."""
    changed, last = time.monotonic(), before

    def is_quiet() -> bool:
        nonlocal changed, last
        now = read_cluster(str(cluster.kubeconfig))
        if now.jobs != last.jobs:
            changed, last = time.monotonic(), now
        return time.monotonic() - changed > QUIET

    until(is_quiet, "KAI to be done", PATIENCE)
    placed = frozenset(job.id for job in last.jobs if is_placed(job))
    tasks = {task.id for job in last.jobs for task in job.tasks if task.status in HOLDING}
    lost = {job.id for job in before.jobs if is_placed(job) and not {task.id for task in job.tasks} <= tasks}
    return Outcome(placed, frozenset(lost))


def is_placed(job: Job) -> bool:
    return all(task.status in HOLDING for task in job.tasks)
