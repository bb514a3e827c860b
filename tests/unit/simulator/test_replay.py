"""A replayed history: who starts when, on small clusters that can be followed by hand; and files of four formats."""

import random

import pytest
from msgspec.structs import replace

from bench.kueue_loads import BASELINE, ideal_seconds, make_load
from fairlead.foresight.changes import AddNodes, RemoveWorkload, SetShare, apply
from fairlead.foresight.workloads import UnknownName
from fairlead.scheduling.model.snapshot import Placement, Share, Snapshot
from fairlead.simulator.history import Arrival, HistoryError, read_history
from fairlead.simulator.picture import format_wait, render_svg
from fairlead.simulator.replay import ReplayResult, replay
from fairlead.simulator.report import (
    WaitTarget,
    ask_history,
    find_capacity,
    make_cluster,
    more_nodes,
    more_quota,
    name_projects,
)


def arrival(id: str, at: float, duration: float = 100, gpus: float = 1, project: str = "a", pods: int = 1) -> Arrival:
    return Arrival(id=id, at=at, duration=duration, gpus=gpus, project=project, pods=pods)


def starts(played: ReplayResult) -> dict[str, float | None]:
    return {workload.arrival.id: workload.start for workload in played.workloads}


def test_what_finds_no_room_starts_when_something_ends() -> None:
    history = [arrival("one", 0, 100, 4), arrival("two", 10, 50, 2), arrival("three", 20, 50, 2)]
    played = replay(make_cluster(history, 1, 4), history)
    assert starts(played) == {"one": 0, "two": 100, "three": 100}
    assert played.gpu_seconds_used == 4 * 100 + 2 * 50 + 2 * 50
    assert played.gpu_seconds == 4 * 150


def test_gangs_start_whole() -> None:
    history = [arrival("small", 0, 100, 1), arrival("gang", 1, 10, 4, pods=2)]
    assert starts(replay(make_cluster(history, 2, 4), history)) == {"small": 0, "gang": 100}


def test_what_is_reclaimed_begins_again() -> None:
    history = [arrival("borrows", 0, 100, 4, "b"), arrival("owns", 50, 10, 4, "a")]
    played = replay(make_cluster(history, 2, 4), history)
    assert starts(played) == {"borrows": 0, "owns": 50}
    squeezed = make_cluster(history, 1, 4)
    reclaimed = ask_history(squeezed, history, [SetShare(queue="a", field="quota", value=4)])
    assert reclaimed.after is not None
    assert reclaimed.after.evictions >= 1
    assert [each.wait_p90 for each in reclaimed.after.projects] == [0, 0]
    assert reclaimed.before.projects[0].wait_p90 == 50
    assert (reclaimed.winners, reclaimed.losers) == (("a",), ())


def random_load(seed: int) -> tuple[Snapshot, list[Arrival]]:
    """A small cluster and submissions: gangs, limits, priorities, protected running times, few jobs per cycle."""
    dice = random.Random(seed)
    projects, priorities = "abcd"[: dice.randint(1, 4)], dice.choice(((50,), (50, 75)))
    history = [
        Arrival(
            id=f"j{number:02d}",
            at=float(dice.randint(0, 200)),
            duration=float(dice.randint(5, 200)),
            gpus=dice.choice((1, 1, 1, 2, 3, 4, 8)),
            pods=dice.choice((1, 1, 1, 1, 2, 3)),
            project=dice.choice(projects),
            priority=dice.choice(priorities),
            preemptible=dice.random() < 0.85,
        )
        for number in range(30)
    ]
    history.sort(key=lambda each: (each.at, each.id))
    cluster = make_cluster(history, dice.choice((1, 2, 4)), dice.choice((4, 8)))
    queues = []
    for queue in cluster.queues:
        gpu = Share(limit=dice.choice((-1, -1, 6)), quota=dice.choice((0, 2, 4)), over_quota_weight=dice.choice((0, 1)))
        runtimes = {"reclaim_min_runtime": dice.choice((None, 20.0)), "preempt_min_runtime": dice.choice((None, 30.0))}
        queues.append(replace(queue, resources=replace(queue.resources, gpu=gpu), **runtimes))
    settings = cluster.settings
    if dice.random() < 0.2:
        settings = replace(settings, queue_depth={"allocate": 2, "reclaim": 1})
    if dice.random() < 0.2:
        settings = replace(settings, placement=Placement(gpu="spread", cpu="spread"))
    return replace(cluster, queues=tuple(queues), settings=settings), history


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 10, 61, 105])
def test_a_kept_model_decides_as_a_new_one_does(seed: int) -> None:
    cluster, history = random_load(seed)
    kept, plain = replay(cluster, history), replay(cluster, history, is_reference=True)
    assert kept.workloads == plain.workloads
    assert kept.repeats == plain.repeats
    assert kept.decisions <= plain.decisions


def test_what_is_like_others_that_wait_needs_no_cycle() -> None:
    history = [arrival("holds", 0, 100, 4), *(arrival(f"w{number}", number, 10, 1) for number in range(1, 10))]
    played = replay(make_cluster(history, 1, 4), history)
    assert starts(played) == {"holds": 0, **{f"w{n}": (100 if n < 5 else 110 if n < 9 else 120) for n in range(1, 10)}}
    # `holds`, the first that waits, and after each of three ends.
    assert played.decisions == 5


def test_portions_of_gpus_are_replayed_the_plain_way() -> None:
    history = [arrival("half", 0, 100, 0.5), arrival("other", 1, 100, 0.5), arrival("third", 2, 10, 0.6)]
    assert starts(replay(make_cluster(history, 1, 1), history)) == {"half": 0, "other": 1, "third": 101}


@pytest.mark.parametrize("seed", [10, 40, 42, 53, 57, 61, 75, 80, 93, 103, 105, 109, 116])
def test_workloads_do_not_take_each_others_places_in_turn(seed: int) -> None:
    """In one cycle `allocate` places a job and consolidation moves it: the last placement is carried out."""
    assert replay(*random_load(seed)).repeats == 0


def test_the_fewest_nodes_that_reach_a_target() -> None:
    history = [arrival(f"j{number}", 0, 100, 4) for number in range(5)]
    cluster = make_cluster(history, 1, 4)
    count, tried = find_capacity(cluster, history, WaitTarget("a", 0.9, 150), more_nodes(cluster, "node-0001"), 16)
    assert count == 2
    assert (tried[1] > 150, tried[2] <= 150) == (True, True)
    never = [arrival("huge", 0, 10, 8)]
    small = make_cluster(never, 1, 4)
    assert find_capacity(small, never, WaitTarget(None, 0.5, 60), more_nodes(small, "node-0001"), 3)[0] is None


def test_nodes_of_a_chosen_type_are_added() -> None:
    history = [arrival("huge", 0, 10, 8)]
    small = make_cluster(history, 1, 4)
    large = replace(small.nodes[0], name="large", gpu=8, unschedulable=True)
    both: Snapshot = replace(small, nodes=(*small.nodes, large))
    target = WaitTarget(None, 0.5, 60)
    assert find_capacity(both, history, target, more_nodes(both, "node-0001"), 3)[0] is None
    assert find_capacity(both, history, target, more_nodes(both, "large"), 3)[0] == 1
    with pytest.raises(UnknownName, match="There is no node 'huge'"):
        more_nodes(both, "huge")


def test_the_smallest_quota_that_reaches_a_target() -> None:
    """`b` holds all 8 GPUs; what `a` may take back at once is its quota."""
    held = [arrival(f"b{number}", 0, 1000, 1, "b") for number in range(8)]
    history = [*held, *(arrival(f"a{number}", 10, 1000, 1, "a") for number in range(4))]
    cluster = make_cluster(history, 1, 8)
    assert [queue.resources.gpu.quota for queue in cluster.queues] == [4, 4]
    squeezed = apply(
        cluster, [SetShare(queue="a", field="quota", value=0), SetShare(queue="a", field="weight", value=0)]
    )
    count, tried = find_capacity(squeezed, history, WaitTarget("a", 0.75, 60), more_quota(squeezed, "a"), 8)
    assert count == 3
    assert (tried[2] > 60, tried[3] <= 60) == (True, True)
    unlimited = apply(cluster, [SetShare(queue="a", field="quota", value=-1)])
    with pytest.raises(UnknownName, match="The GPU quota of 'a' is unlimited already"):
        more_quota(unlimited, "a")


def test_projects_are_called_as_the_history_calls_them() -> None:
    cluster = make_cluster([arrival("one", 0, project=each) for each in ("project-1", "project-2", "project-3")], 1, 4)
    shown = ("vision", "speech", "speech")
    queues = tuple(replace(each, display_name=name) for each, name in zip(cluster.queues, shown, strict=True))
    known: Snapshot = replace(cluster, queues=queues)
    assert [each.name for each in name_projects(known, {"vision"}).queues] == ["vision", "project-2", "project-3"]
    assert name_projects(known, {"project-1"}).queues == queues


def test_a_history_has_no_workloads_to_remove() -> None:
    history = [arrival("one", 0)]
    with pytest.raises(UnknownName, match="other quotas"):
        ask_history(make_cluster(history, 1, 4), history, [RemoveWorkload(workload="one")])
    assert ask_history(make_cluster(history, 1, 4), history, [AddNodes(like="node-0001", count=1)]).losers == ()


def test_a_picture_has_a_bar_per_project_and_run() -> None:
    history = [arrival("one", 0, project="a<b"), arrival("huge", 0, 10, 8, "b")]
    answer = ask_history(make_cluster(history, 1, 4), history, [AddNodes(like="node-0001", count=1)])
    picture = render_svg(answer)
    assert picture.count("<rect") == 4
    assert "a&lt;b" in picture
    assert "never" in picture
    assert [format_wait(seconds) for seconds in (5, 90, 7200, 200_000)] == ["5s", "1.5m", "2.0h", "2.3d"]


PHILLY = (
    "timestamp,duration,num_gpus,gpu_time,cluster\n"
    "2017-10-03 00:00:10,60,16,960,vc1\n2017-10-03 00:00:00,30,1,30,vc2\n\n"
)
OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p1,4000,1024,1,500,,LS,Running,10,70,11\n"
)
SACCT = (
    "JobID|Account|Submit|ElapsedRaw|NNodes|ReqTRES\n"
    "7|vision|2026-01-01T00:00:00|120|2|billing=8,cpu=16,gres/gpu=16,mem=64G,node=2\n"
)


def test_four_formats() -> None:
    first, second = read_history(PHILLY, "philly")
    assert (first.project, first.gpus, second.gpus, second.pods, second.at - first.at) == ("vc2", 1, 8, 2, 10)
    (pod,) = read_history(OPENB, "openb")
    assert (pod.gpus, pod.duration, pod.project, pod.memory_bytes) == (0.5, 60, "LS", 1 << 30)
    (job,) = read_history(SACCT, "sacct")
    assert (job.id, job.gpus, job.pods, job.cpu_milli, job.memory_bytes) == ("7", 8, 2, 8000, 32 << 30)
    (own,) = read_history('{"id": "x", "at": 1, "project": "p", "duration": 5, "gpus": 2}\n', "fairlead")
    assert own == Arrival(id="x", at=1, project="p", duration=5, gpus=2)


@pytest.mark.parametrize(
    ("text", "form", "want"),
    [
        ("", "philly", "Line 1: the columns timestamp, duration, num_gpus, cluster are missing."),
        (PHILLY.replace("60,16", "60,many"), "philly", "Line 2: num_gpus is 'many', not a whole number."),
        (SACCT.replace("120", "2m"), "sacct", "Line 2: ElapsedRaw is '2m', not a number."),
        (
            SACCT.replace("2026-01-01T00:00:00", "Unknown"),
            "sacct",
            "Line 2: Submit is 'Unknown', not a time such as 2026-10-01T08:00:00.",
        ),
        (
            PHILLY.replace("60,16", "-60,16"),
            "philly",
            "job-000002: the duration and GPUs must not be negative, and pods at least 1.",
        ),
        ('{"id": 1}', "fairlead", "Line 1: Expected `str`, got `int` - at `$.id`."),
        ("\n", "fairlead", "The file has no submissions."),
        (SACCT.replace("64G", "much"), "sacct", "Line 2: 'much' is not an amount of memory."),
        ("", "excel", "There is no format 'excel'; the formats are fairlead, sacct, philly, openb."),
    ],
)
def test_files_of_the_wrong_form(text: str, form: str, want: str) -> None:
    with pytest.raises(HistoryError) as caught:
        read_history(text, form)
    assert str(caught.value) == want


def test_departments_and_cores_are_kept_too() -> None:
    """A load of Kueue's performance tests in small: queues that borrow in their department, and three priorities."""
    sets = [each._replace(per_queue=each.per_queue // 25) for each in BASELINE]
    cluster, history = make_load(2, 2, sets)
    kept, plain = replay(cluster, history), replay(cluster, history, is_reference=True)
    assert kept.workloads == plain.workloads
    assert kept.decisions < plain.decisions
    assert all(workload.end is not None for workload in kept.workloads)
    assert sum(workload.evictions for workload in kept.workloads) > 0
    assert ideal_seconds(BASELINE) == 66
