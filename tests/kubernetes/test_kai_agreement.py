"""How often our `decide` and a real KAI agree: 240 random workloads on nodes of four shapes.

KAI is stopped while workloads come and go, so that both decide on the same state: ours on a snapshot read from the
cluster, KAI in one cycle when it is started again. Later cycles are not compared, because they see what the cluster's
controllers have done in between, sooner or later. Rounds take turns: in one, many small preemptible workloads fill the
cluster, mostly beyond quota; in the next, larger ones of projects with a quota press in and evict some. Run by
`make test-operators`.

Not all victims can be equal: KAI 0.12 goes through the nodes of a victim in the random order of a Go map, ours by name.
"""

import random
import re
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from deploy.cluster import build, control
from deploy.cluster import cluster as clusters
from deploy.cluster.components import render_scheduler
from deploy.cluster.nodes import Shape, add_nodes, observe_nodes, remove_nodes
from fairlead.cli.scheduling.kai_cluster import read_cluster
from fairlead.foresight.kai.agreement import (
    Agreement,
    SchedulingOutcome,
    compare_outcomes,
    find_waiting,
)
from fairlead.foresight.workloads import HOLDING, key_of
from fairlead.scheduling import decide
from fairlead.scheduling.model.snapshot import Snapshot
from tests.e2e.server import until
from tests.kubernetes.cluster_harness import ID, PATIENCE, TYPES, ClusterHarness

pytestmark = pytest.mark.operators
KAI = "kai-scheduler"
#: Nodes and GPUs of each.
SHAPES = ((4, 8), (8, 4), (16, 2), (5, 6))
PAIRS = 3
#: GPUs of each project.
QUOTAS = {"x": 0, "y": 14, "z": 18}
#: Fewer would say little.
MIN_VICTIMS = 40
PERIOD, CYCLE_END = "--schedule-period=", b"End scheduling"
#: Seconds without a change after which pods are bound or made again.
QUIET = 5.0
WORKLOAD_NAME = re.compile(r"w-\d+x\d+-\d+-[a-z]+-\d+")
PRIORITIES = ("very-low", "low", "medium", "medium-high", "high", "very-high")


class Promise(NamedTuple):
    task: str
    event: str
    times: int


class Turn(NamedTuple):
    """What is submitted in a round, drawn from these; and how much of what there was before is removed."""

    name: str
    workloads: int
    removed: float
    projects: tuple[str, ...]
    gpus: tuple[int, ...]
    priorities: tuple[str, ...]
    preemptibilities: tuple[str, ...]


TURNS = (
    Turn("fill", 14, 0.85, ("x", "x", "x", "y"), (0, 1, 1, 1, 2, 2, 3), PRIORITIES[:3], ("preemptible",)),
    Turn(
        "press",
        6,
        0,
        ("y", "y", "z", "z"),
        (0, 1, 2, 2, 3, 4, 6, 8),
        PRIORITIES,
        (*("preemptible",) * 3, "non-preemptible"),
    ),
)


@pytest.fixture(scope="module")
def projects(harness: ClusterHarness) -> dict[str, str]:
    """Their ids by name."""
    return {name: harness.make_project(f"{harness.project}-{name}", gpus) for name, gpus in QUOTAS.items()}


@pytest.fixture(scope="module", autouse=True)
def kai_afterwards(cluster: clusters.Cluster) -> Iterator[None]:
    yield
    start_kai(cluster, usual_command(cluster))


def usual_command(cluster: clusters.Cluster) -> list[str]:
    return render_scheduler(cluster.layout, build.folder(), pool="").command


def start_kai(cluster: clusters.Cluster, command: list[str]) -> None:
    component = render_scheduler(cluster.layout, build.folder(), pool="")
    control.start(cluster.layout.folder, component.name, command, component.environment)


def test_most_placements_and_victims_agree(
    cluster: clusters.Cluster,
    harness: ClusterHarness,
    projects: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    dice = random.Random(1)
    control.stop(cluster.layout.folder, KAI)
    total = Agreement()
    differences: list[str] = []
    for (nodes, gpus), pair, turn in product(SHAPES, range(PAIRS), TURNS):
        name = f"{nodes}x{gpus}-{pair}-{turn.name}"
        if pair == 0 and turn is TURNS[0]:
            harness.delete_all()
            set_shape(cluster, nodes, gpus)
        remove_some(harness, dice, turn.removed)
        submit_some(harness, projects, dice, turn, name)
        before = read_workloads(cluster)
        told = observe_promises(harness)
        after = run_one_cycle(cluster, before)
        ours, theirs = decide_ours(before), find_theirs(before, after, observe_promises(harness) - told)
        total += compare_outcomes(find_waiting(before), ours, theirs)
        if ours != theirs:
            for when, snapshot in (("before", before), ("after", after)):
                (tmp_path / f"{name}-{when}.json").write_bytes(msgspec.json.encode(snapshot))
            differences.append(f"{name}: {describe_difference(ours, theirs)}; snapshots are in {tmp_path}")
        with capsys.disabled():
            print(f"\n{name}: {total}", *differences[-1:], flush=True)
    assert total.victims >= MIN_VICTIMS, total
    assert total.equal_placements >= 0.99 * total.placements, (total, differences)
    assert total.equal_victims >= 0.95 * total.victims, (total, differences)


def describe_difference(ours: SchedulingOutcome, theirs: SchedulingOutcome) -> str:
    """What one has and the other has not."""
    return "; ".join(
        f"{what}: ours {sorted(mine - kai)}, KAI {sorted(kai - mine)}"
        for what, mine, kai in zip(SchedulingOutcome._fields, ours, theirs, strict=True)
        if mine != kai
    )


def set_shape(cluster: clusters.Cluster, count: int, gpus: int) -> None:
    with cluster.api() as api:
        remove_nodes(api, observe_nodes(api))
        add_nodes(api, [f"shape-{gpus}-{number}" for number in range(count)], Shape(gpus=gpus))


def remove_some(harness: ClusterHarness, dice: random.Random, part: float) -> None:
    """Of what runs and of what waits."""
    listed = harness.server.call("GET", "/api/v1/workloads?limit=500").json["workloads"]
    ending = [one for one in sorted(listed, key=lambda one: one["name"]) if dice.random() < part]
    for one in ending:
        answer = harness.server.call("DELETE", f"/api/v1/workloads/{TYPES[one['type']]}/{one['id']}")
        assert answer.status in (202, 404), answer
    gone = {one["id"] for one in ending}
    until(lambda: not gone & workloads_with_pods(harness), "the end of some", PATIENCE)


def submit_some(harness: ClusterHarness, projects: dict[str, str], dice: random.Random, turn: Turn, name: str) -> None:
    """Wait until each has its pods and their pod group."""
    made: dict[str, int] = {}
    for number in range(turn.workloads):
        pods = dice.choice((1, 1, 1, 2, 3))
        spec = harness.spec(gpus=dice.choice(turn.gpus))
        members = {
            "priorityClass": dice.choice(turn.priorities),
            "preemptibility": dice.choice(turn.preemptibilities),
        }
        kind = "training" if pods == 1 else "distributed"
        more = {} if pods == 1 else {"numWorkers": pods - 1, "distributedFramework": "PyTorch"}
        project = projects[dice.choice(turn.projects)]
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


def read_workloads(cluster: clusters.Cluster) -> Snapshot:
    """Jobs are named as their workloads: a pod that is made again gets a pod group of another name.

    The development cluster runs KAI 0.12: reclaim may move pods of any queue, and gangs get node after node.
    """
    snapshot = read_cluster(str(cluster.kubeconfig))
    jobs = [(WORKLOAD_NAME.search(job.name), job) for job in snapshot.jobs]
    named = tuple(replace(job, name=found[0]) for found, job in jobs if found is not None)
    assert len(named) == len(snapshot.jobs)
    settings = replace(snapshot.settings, filter_reclaim_victims=False, multi_node_victims=False)
    renamed: Snapshot = replace(snapshot, jobs=named, settings=settings)
    return renamed


def run_one_cycle(cluster: clusters.Cluster, before: Snapshot) -> Snapshot:
    """The cluster after KAI's first cycle, once nothing changes any more."""
    log = cluster.layout.path("logs", f"{KAI}.log")
    begin = log.stat().st_size
    command = [f"{PERIOD}1h" if word.startswith(PERIOD) else word for word in usual_command(cluster)]
    start_kai(cluster, command)
    until(lambda: CYCLE_END in log.read_bytes()[begin:], "a cycle of KAI", PATIENCE)
    try:
        return wait_until_quiet(cluster, before)
    finally:
        control.stop(cluster.layout.folder, KAI)


def wait_until_quiet(cluster: clusters.Cluster, before: Snapshot) -> Snapshot:
    changed, last = time.monotonic(), before

    def is_quiet() -> bool:
        nonlocal changed, last
        now = read_workloads(cluster)
        if now.jobs != last.jobs:
            changed, last = time.monotonic(), now
        return time.monotonic() - changed > QUIET

    until(is_quiet, "an end of changes", PATIENCE)
    return last


def decide_ours(before: Snapshot) -> SchedulingOutcome:
    decisions = decide(before)
    places = {bind.task for bind in decisions.starts} | {promise.task for promise in decisions.pipelined}
    evicted = {each.task for each in decisions.evictions if not each.never_started}
    return SchedulingOutcome(find_placed(before, places), find_keys(before, evicted))


def find_theirs(before: Snapshot, after: Snapshot, promises: set[Promise]) -> SchedulingOutcome:
    """A pod that KAI evicts in the cycle in which it has bound it has a promised place afterwards, as in ours."""
    kept = {task.id for job in after.jobs for task in job.tasks if task.status in HOLDING}
    evicted = {task.id for job in before.jobs for task in job.tasks if task.status in HOLDING and task.id not in kept}
    return SchedulingOutcome(
        find_placed(before, kept | {promise.task for promise in promises}), find_keys(before, evicted)
    )


def observe_promises(harness: ClusterHarness) -> set[Promise]:
    """KAI's events about places that it keeps until what is leaving has left."""
    events = harness.api.call("GET", "/api/v1/events?fieldSelector=reason%3DPipelined")["items"]
    pods = [(one["involvedObject"], one["metadata"]["uid"], one.get("count") or 1) for one in events]
    return {Promise(f"{pod['namespace']}/{pod['name']}", uid, count) for pod, uid, count in pods}


def find_placed(snapshot: Snapshot, places: set[str]) -> frozenset[str]:
    """Workloads that waited, and of which every pod that waited has a place."""
    waiting: dict[str, set[str]] = {}
    for job in snapshot.jobs:
        pending = {task.id for task in job.tasks if task.status == "Pending"}
        if pending:
            waiting.setdefault(key_of(job), set()).update(pending)
    return frozenset(key for key, pending in waiting.items() if pending <= places)


def find_keys(snapshot: Snapshot, tasks: set[str]) -> frozenset[str]:
    return frozenset(key_of(job) for job in snapshot.jobs for task in job.tasks if task.id in tasks)
