"""GPUs of a cluster's nodes are counted as they are given out, whatever numbers the pods were recorded with."""

from typing import Any, NamedTuple

import pytest

from fairlead.control.decide.placement.gpu_numbers import number_devices
from fairlead.scheduling import Job, Queue, QueueShares, Share, Snapshot, SnapshotNode, Task, decide, format_reason
from fairlead.scheduling.model.snapshot import TaskStatus
from fairlead.scheduling.model.validate import contradictions

NODE = SnapshotNode(name="n", cpu_milli=64_000, memory_bytes=1 << 36, gpu=8, gpu_memory_mib=16_000)

FREE = Share(limit=-1, quota=-1)
QUEUE = Queue(name="q", resources=QueueShares(gpu=FREE, cpu=FREE, memory=FREE))


def whole(id: str, gpus: int = 1, status: TaskStatus = "Running") -> Task:
    return Task(id=id, status=status, node="n", gpu=gpus, devices=tuple(range(gpus)))


def part(id: str, portion: float = 0.5, devices: int = 1, *, groups: tuple[str, ...] = ()) -> Task:
    asked: dict[str, Any] = {
        "gpu_portion": portion,
        "gpu_devices": devices,
        "devices": tuple(range(devices)),
        "gpu_groups": groups,
    }
    return Task(id=id, status="Running", node="n", **asked)


def memory(id: str, mib: int) -> Task:
    return Task(id=id, status="Running", node="n", gpu_memory_mib=mib, devices=(0,))


def see(*tasks: Task, waits: int = 0) -> Snapshot:
    jobs = [Job(id=task.id, queue="q", tasks=(task,)) for task in tasks]
    if waits:
        jobs.append(Job(id="waits", queue="q", tasks=(Task(id="waits/0", gpu=waits),)))
    return Snapshot(now=0, nodes=(NODE,), queues=(QUEUE,), jobs=tuple(jobs))


def number(snapshot: Snapshot) -> Snapshot:
    return number_devices(snapshot, {task.id for job in snapshot.jobs for task in job.tasks if task.node})


def devices_of(snapshot: Snapshot) -> dict[str, tuple[int, ...]]:
    return {task.id: task.devices for job in snapshot.jobs for task in job.tasks if task.node}


class Case(NamedTuple):
    tasks: tuple[Task, ...]
    want: dict[str, tuple[int, ...]]


CASES = {
    "whole ones do not overlap": Case((whole("a"), whole("b"), whole("c", 2)), {"a": (0,), "b": (1,), "c": (2, 3)}),
    "one that is ending has its own still": Case((whole("a", 1, "Releasing"), whole("b")), {"a": (0,), "b": (1,)}),
    "halves of one GPU, as the cluster says": Case(
        (whole("a"), part("b", groups=("g",)), part("c", groups=("g",))), {"a": (1,), "b": (0,), "c": (0,)}
    ),
    "halves of two GPUs, as the cluster says": Case(
        (part("a", groups=("g",)), part("b", groups=("h",)), whole("c")), {"a": (0,), "b": (1,), "c": (2,)}
    ),
    "halves that nothing is said of are packed": Case(
        (part("a"), part("b"), part("c"), whole("d")), {"a": (0,), "b": (0,), "c": (1,), "d": (2,)}
    ),
    "no more on a GPU than fits": Case((part("a", 0.6), part("b", 0.6)), {"a": (0,), "b": (1,)}),
    "tenths fill a GPU": Case(tuple(part(f"t{i}", 0.1) for i in range(10)), {f"t{i}": (0,) for i in range(10)}),
    "memory is a part of a GPU": Case(
        (memory("a", 8000), memory("b", 8000), memory("c", 8000)), {"a": (0,), "b": (0,), "c": (1,)}
    ),
    "parts of several GPUs": Case(
        (part("a", 0.5, groups=("g",)), part("b", 0.5, 2), part("c", 0.5, 2)), {"a": (0,), "b": (0, 1), "c": (1, 2)}
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_devices_overlap_only_where_a_gpu_is_shared(case: Case) -> None:
    numbered = number(see(*case.tasks))
    assert devices_of(numbered) == case.want
    assert contradictions(numbered) == []
    assert number(see(*reversed(case.tasks))).jobs[::-1] == numbered.jobs


def test_what_our_own_scheduler_placed_keeps_its_devices() -> None:
    snapshot = see(whole("a"), part("b", groups=("g",)))
    assert number_devices(snapshot, ()) == snapshot


HALVES = (part("h1", groups=("g",)), part("h2", groups=("g",)))
SEVEN = tuple(whole(f"w{number}") for number in range(7))


@pytest.mark.parametrize(
    "tasks",
    [(*SEVEN, *HALVES), (*SEVEN, part("h1"), part("h2")), (whole("w", 4), whole("x", 3), *HALVES)],
    ids=["seven whole and two halves", "with halves that nothing is said of", "in larger pieces"],
)
def test_a_full_node_has_nothing_free(tasks: tuple[Task, ...]) -> None:
    decisions = decide(number(see(*tasks, waits=1)))
    assert decisions.binds == ()
    (pending,) = decisions.pending
    assert format_reason(pending.reason) == "Waiting for 1 GPU: all 8 GPUs of n are in use."


def test_a_place_that_is_being_left_is_not_free_yet() -> None:
    decisions = decide(number(see(whole("leaves", 1, "Releasing"), *SEVEN[1:], *HALVES, waits=1)))
    assert decisions.binds == ()
    (pending,) = decisions.pending
    assert pending.reason.code == "WaitsForVictims"
