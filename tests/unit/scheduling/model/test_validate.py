"""Snapshots that contradict themselves are refused with all that is wrong."""

from typing import Any

import msgspec
import pytest

from fairlead.scheduling import (
    Job,
    Queue,
    QueueShares,
    Share,
    Snapshot,
    SnapshotError,
    SnapshotNode,
    SubGroup,
    Task,
    check,
    read_snapshot,
)
from fairlead.scheduling.model.validate import contradictions

FREE = Share(limit=-1, quota=-1)
QUEUE = Queue(name="q", resources=QueueShares(gpu=FREE, cpu=FREE, memory=FREE))
NODE = SnapshotNode(name="n1", gpu=2, gpu_memory_mib=40_000)


def snapshot(*tasks: Task, **fields: Any) -> Snapshot:
    jobs = tuple(Job(id=f"j-{task.id}", queue="q", tasks=(task,)) for task in tasks)
    return Snapshot(**{"now": 0, "nodes": (NODE,), "queues": (QUEUE,), "jobs": jobs, **fields})


def running(name: str, **fields: Any) -> Task:
    return Task(id=name, status="Running", node="n1", **fields)


def queue(name: str, parent: str | None) -> Queue:
    return msgspec.structs.replace(QUEUE, name=name, parent=parent)


@pytest.mark.parametrize(
    ("bad", "want"),
    [
        pytest.param(snapshot(Task(id="t", status="Running", node="n9")), "node n9", id="unknown node"),
        pytest.param(snapshot(Task(id="t", status="Running")), "without a node", id="running nowhere"),
        pytest.param(
            snapshot(running("a", gpu=1, devices=(0,)), running("b", gpu=1, devices=(0,))),
            "Device 0 of node n1 is held by a and b",
            id="two on one device",
        ),
        pytest.param(snapshot(running("a", gpu=1, devices=(7,))), "device 7", id="a device that is not there"),
        pytest.param(snapshot(running("a", gpu=2, devices=(1, 1))), "one device twice", id="a device held twice"),
        pytest.param(snapshot(running("a", gpu=2, devices=(1,))), "1 devices for 2", id="fewer devices than asked"),
        pytest.param(
            snapshot(
                running("a", gpu_memory_mib=30_000, gpu_groups=("g",)),
                running("b", gpu_memory_mib=20_000, gpu_groups=("g",)),
            ),
            "GPU group g on node n1 is given out 1.25 times",
            id="memory of a shared GPU given out twice",
        ),
        pytest.param(
            snapshot(
                running("a", gpu_portion=0.6, gpu_groups=("g",)), running("b", gpu_portion=0.6, gpu_groups=("g",))
            ),
            "GPU group g on node n1 is given out 1.20 times",
            id="a shared GPU given out twice",
        ),
        pytest.param(snapshot(running("a", gpu_portion=0.6)), "0 GPU groups", id="a portion of no GPU"),
        pytest.param(snapshot(Task(id="t", gpu=1, gpu_portion=0.5)), "more than one way", id="two kinds of request"),
        pytest.param(snapshot(Task(id="t", gpu_portion=1.5)), "below 1", id="a portion above one"),
        pytest.param(snapshot(Task(id="t", pod_set="x")), "pod set x", id="a pod set that is not there"),
        pytest.param(snapshot(nodes=(NODE, NODE)), "Node n1 occurs 2 times", id="a node twice"),
        pytest.param(
            snapshot(queues=(queue("a", "b"), queue("b", "a"))), "Queue a in node pool default is its own", id="a ring"
        ),
    ],
)
def test_contradiction(bad: Snapshot, want: str) -> None:
    with pytest.raises(SnapshotError, match=want):
        check(bad)


def test_all_contradictions_are_reported_at_once() -> None:
    with pytest.raises(SnapshotError) as caught:
        check(snapshot(Task(id="t", status="Running", node="n9"), Task(id="u", gpu_portion=2), nodes=(NODE, NODE)))
    assert len(caught.value.problems) == 3


def test_ended_tasks_may_name_nodes_that_are_gone() -> None:
    ended = snapshot(Task(id="t", status="Succeeded", node="gone"), Task(id="u", status="Failed", node="gone"))
    assert contradictions(ended) == []


def test_groups_without_pod_sets() -> None:
    job = Job(id="j", queue="q", tasks=(), groups=(SubGroup(name="g"),))
    with pytest.raises(SnapshotError, match="groups and no pod set"):
        check(snapshot(jobs=(job,)))


def test_orphaned_queues_and_missing_queues_are_not_contradictions() -> None:
    assert contradictions(snapshot(Task(id="t"), queues=(queue("orphan", "gone"),))) == []


def test_an_absent_limit_is_an_error() -> None:
    shares = b'{"gpu": {"quota": 1}, "cpu": {"limit": -1}}'
    raw = b'{"now": 1, "queues": [{"name": "a", "resources": %s}, {"name": "b"}]}' % shares
    with pytest.raises(SnapshotError) as caught:
        read_snapshot(raw)
    assert caught.value.problems == (
        "queues[0].resources.gpu.limit: is missing.",
        "queues[0].resources.memory: is missing.",
        "queues[1].resources: is missing.",
    )


def test_json_and_back() -> None:
    given = snapshot(running("a", gpu=1, devices=(0,)))
    assert read_snapshot(msgspec.json.encode(given)) == given


def test_violations_of_form_and_contradictions_are_reported_together() -> None:
    raw = b"""{"nodes": [{"name": "n1", "gpu": "many"}, {"name": "n2", "gpus": 1}],
        "queues": [{"name": "a", "parent": "a", "resources": {"gpu": {"limit": -1}, "cpu": {"limit": -1},
            "memory": {"limit": -1}}}],
        "jobs": [{"id": "j", "queue": "a", "tasks": [{"id": "t", "status": "Running", "node": "n1", "gpu": 5}]},
            {"id": "k", "queue": "a", "tasks": [{"id": "u", "status": "Running", "node": "n9"}]},
            {"id": "l", "queue": "a", "tasks": [{"id": "v", "status": "Idle"}, {"status": "Pending"}]}]}"""
    with pytest.raises(SnapshotError) as caught:
        read_snapshot(raw)
    assert caught.value.problems == (
        "now: is missing.",
        "nodes[0].gpu: Expected `int`, got `str`.",
        "nodes[1].gpus: there is no such field.",
        "jobs[2].tasks[0].status: Invalid enum value 'Idle'.",
        "jobs[2].tasks[1].id: is missing.",
        "Queue a in node pool default is its own ancestor.",
        "Task u is on node n9, which does not exist.",
    )


@pytest.mark.parametrize(
    ("document", "want"),
    [
        pytest.param(b"{", "It is not JSON: Input data was truncated.", id="cut off"),
        pytest.param(b"\n", "It is empty.", id="empty"),
        pytest.param(b"[]", "the document: Expected `object`, got `array`.", id="a list"),
        pytest.param(b'{"now": 1, "nodes": {}}', "nodes: Expected `array`, got `object`.", id="nodes as an object"),
    ],
)
def test_a_file_that_is_not_a_snapshot(document: bytes, want: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        read_snapshot(document)
    assert caught.value.problems == (want,)


def test_whole_numbers_may_be_written_with_a_point() -> None:
    read = read_snapshot(b'{"now": 0, "nodes": [{"name": "n", "cpuMilli": 1000.0, "memoryBytes": 1e9, "gpu": 2.0}]}')
    assert read.nodes[0] == SnapshotNode(name="n", cpu_milli=1000, memory_bytes=1_000_000_000, gpu=2)


def test_devices_replace_groups_that_are_not_named() -> None:
    given = snapshot(running("a", gpu_portion=0.5, devices=(1,)), running("b", gpu_portion=0.5, devices=(1,)))
    read = read_snapshot(msgspec.json.encode(given))
    assert [task.gpu_groups for job in read.jobs for task in job.tasks] == [("n1-device-1",)] * 2
