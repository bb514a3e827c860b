"""Why a workload waits: each family of changes on the smallest cluster that shows it."""

from typing import Any

import msgspec
import pytest

from fairlead.foresight.changes import RemoveWorkload
from fairlead.foresight.why import Asker, VerifiedChange, WhyAnswer, explain_why
from fairlead.foresight.workloads import UnknownName
from fairlead.scheduling import (
    Job,
    NodeTaint,
    Queue,
    QueueShares,
    Settings,
    Share,
    Snapshot,
    SnapshotNode,
    Task,
)

GIB = 1 << 30
FREE = Share(limit=-1, quota=-1)


def node(name: str = "n1", gpu: int = 4, **more: Any) -> SnapshotNode:
    return SnapshotNode(name=name, cpu_milli=16_000, memory_bytes=64 * GIB, gpu=gpu, gpu_memory_mib=40_000, **more)


def queue(name: str, quota: float = 4, limit: float = -1, **more: Any) -> Queue:
    shares = QueueShares(gpu=Share(limit=limit, quota=quota, over_quota_weight=1), cpu=FREE, memory=FREE)
    return Queue(name=f"project-{name}", display_name=name, resources=shares, **more)


def job(name: str, owner: str = "a", on: str | None = None, gpu: int = 1, **more: Any) -> Job:
    task: dict[str, Any] = {"id": f"{name}-0", "name": f"{name}-0-0", "gpu": gpu, **more.pop("task", {})}
    state: dict[str, Any] = {"status": "Running", "node": on} if on else {}
    start: dict[str, Any] = {"last_start": 0.0} if on else {}
    return Job(id=name, name=name, queue=f"project-{owner}", tasks=(Task(**task, **state),), **start, **more)


def cluster(*jobs: Job, nodes: tuple[SnapshotNode, ...] = (node(),), **more: Any) -> Snapshot:
    queues = more.pop("queues", (queue("a"), queue("b")))
    return Snapshot(now=1000, nodes=nodes, queues=queues, jobs=jobs, **more)


def changes(answer: WhyAnswer, family: str) -> list[VerifiedChange]:
    return [change for change in answer.changes if change.family == family]


def messages(answer: WhyAnswer, family: str) -> list[str]:
    return [change.message for change in changes(answer, family)]


def test_it_starts_by_itself_if_there_is_room() -> None:
    answer = explain_why(cluster(job("waits")), "waits")
    assert (answer.status, answer.changes) == ("starts", ())
    assert answer.message == "It starts by itself in the next scheduling cycle."


def test_evictions_of_a_submission_are_announced() -> None:
    queues = (queue("a", quota=4), queue("b", quota=0))
    answer = explain_why(cluster(job("holds", "b", on="n1", gpu=4), job("waits", gpu=4), queues=queues), "waits")
    assert answer.status == "starts"
    assert [ref.workload for ref in answer.effects.evicted.workloads] == ["holds"]


def test_what_does_not_wait_is_not_explained() -> None:
    assert explain_why(cluster(job("runs", on="n1")), "runs").status == "notWaiting"


def test_fewer_gpus_a_suspension_an_end_and_a_node() -> None:
    snapshot = cluster(job("holds", on="n1", gpu=3), job("waits", gpu=4))
    answer = explain_why(snapshot, "waits")
    assert answer.status == "waits"
    assert messages(answer, "gpu") == ["Request 1 GPU instead of 4"]
    assert messages(answer, "suspend") == ["Suspend holds"]
    assert messages(answer, "ends") == ["Wait until holds ends"]
    assert messages(answer, "addNodes") == ["Add 1 node like n1 (4 GPUs each)"]
    assert [change.effects.harm for change in answer.changes] == [0, 0, 0, 0, 1]
    # The next current class after 50; the older class of 75 is not suggested.
    assert messages(answer, "priority") == ["Raise its priority to medium-low (65)"]


def test_less_cpu_and_less_memory_are_the_smallest_amounts_that_start_it() -> None:
    holds = job("holds", on="n1", gpu=0, task={"cpu_milli": 10_000, "memory_bytes": 60 * GIB})
    waits = job("waits", gpu=0, task={"cpu_milli": 8_000, "memory_bytes": 2 * GIB})
    assert messages(explain_why(cluster(holds, waits), "waits"), "cpuMilli") == ["Request 6 CPU cores instead of 8"]
    waits = job("waits", gpu=0, task={"cpu_milli": 1_000, "memory_bytes": 16 * GIB})
    assert messages(explain_why(cluster(holds, waits), "waits"), "memoryBytes") == [
        "Request 4 GiB memory instead of 16"
    ]


def test_a_smaller_portion() -> None:
    holds = job("holds", on="n1", gpu=0, task={"gpu_portion": 0.6, "gpu_groups": ("g",)})
    waits = job("waits", gpu=0, task={"gpu_portion": 0.8})
    answer = explain_why(cluster(holds, waits, nodes=(node(gpu=1),)), "waits")
    assert messages(answer, "gpuPortion") == ["Request 0.4 of a GPU instead of 0.8"]


def test_fewer_workers() -> None:
    gang = Job(
        id="gang",
        name="gang",
        queue="project-a",
        min_available=3,
        tasks=tuple(Task(id=f"w{number}", gpu=2) for number in range(3)),
    )
    answer = explain_why(cluster(gang), "gang")
    assert messages(answer, "workers") == ["Use 2 pods instead of 3"]
    assert changes(answer, "workers")[0].pods == 2


def test_preemptible_instead_of_not_or_more_quota() -> None:
    snapshot = cluster(job("waits", gpu=2, preemptible=False), queues=(queue("a", quota=1),))
    answer = explain_why(snapshot, "waits")
    assert answer.reason is not None
    assert answer.reason.code == "NonPreemptibleOverQuota"
    assert messages(answer, "preemptible") == ["Make it preemptible"]
    assert messages(answer, "quota") == ["Raise the GPU quota of a to 2 GPUs (now 1)"]
    assert answer.status == "never"


def test_a_higher_limit() -> None:
    snapshot = cluster(job("holds", on="n1"), job("waits", gpu=2), queues=(queue("a", limit=1),))
    assert messages(explain_why(snapshot, "waits"), "limit") == ["Raise the GPU limit of a to 3 GPUs (now 1)"]


def test_quota_of_project_and_department_together() -> None:
    """Non-preemptible work stays within both."""
    queues = (queue("d", quota=1), queue("a", quota=1, parent="project-d"))
    answer = explain_why(cluster(job("waits", gpu=2, preemptible=False), queues=queues), "waits")
    assert messages(answer, "quota") == [
        "Raise the GPU quota of a to 2 GPUs (now 1) and the GPU quota of d to 2 GPUs (now 1)"
    ]


def test_the_quota_of_a_department_with_its_price() -> None:
    queues = (
        queue("d1", quota=1),
        queue("d2", quota=0),
        queue("a", quota=1, parent="project-d1"),
        queue("b", quota=0, parent="project-d2"),
    )
    holds = [job(f"holds-{number}", "b", on="n1") for number in range(4)]
    answer = explain_why(cluster(*holds, job("waits", gpu=4), queues=queues), "waits")
    (quota,) = changes(answer, "quota")
    assert quota.message == "Raise the GPU quota of d1 to 3 GPUs (now 1)"
    assert quota.effects.evicted.count == 4


def test_another_node_pool() -> None:
    nodes = (node(), node("n2", node_pool="other"))
    queues = (queue("a"), queue("a", node_pool="other"), queue("b"))
    answer = explain_why(cluster(job("holds", "b", on="n1", gpu=4), job("waits"), nodes=nodes, queues=queues), "waits")
    assert messages(answer, "nodePool") == ["Use node pool other"]


@pytest.mark.parametrize(
    ("more", "want"),
    [
        ({"unschedulable": True}, ("uncordon", "Uncordon n2")),
        ({"ready": False}, ("nodeReady", "Make n2 ready again")),
        ({"taints": (NodeTaint(key="own"),)}, ("untaint", "Remove the taint own from n2")),
    ],
    ids=["cordon", "not ready", "taint"],
)
def test_what_an_administrator_takes_back_on_a_node(more: dict[str, Any], want: tuple[str, str]) -> None:
    snapshot = cluster(job("holds", on="n1", gpu=4), job("waits"), nodes=(node(), node("n2", **more)))
    assert messages(explain_why(snapshot, "waits"), want[0]) == [want[1]]


def test_a_node_that_exists_comes_before_a_new_one() -> None:
    answer = explain_why(cluster(job("waits"), nodes=(node(unschedulable=True),)), "waits")
    assert [change.family for change in answer.changes] == ["uncordon", "addNodes"]


def test_one_constraint_less() -> None:
    waits = job("waits", task={"node_selector": {"run.ai/type": "h100", "disk": "fast"}})
    answer = explain_why(cluster(waits, nodes=(node(labels={"disk": "fast"}),)), "waits")
    assert answer.status == "never"
    assert messages(answer, "constraint") == ["Leave out the node selector run.ai/type"]


def test_a_guaranteed_runtime_that_ends() -> None:
    queues = (queue("a", quota=4), queue("b", quota=0))
    snapshot = cluster(
        job("holds", "b", on="n1", gpu=4),
        job("waits", gpu=4),
        queues=queues,
        settings=Settings(reclaim_min_runtime=1500),
    )
    answer = explain_why(snapshot, "waits")
    assert [change.at for change in changes(answer, "guaranteedRuntime")] == [1500]


def test_what_can_never_start_says_so() -> None:
    answer = explain_why(cluster(job("waits", gpu=9)), "waits")
    assert answer.status == "never"
    assert answer.message.startswith("Can never start")
    assert messages(answer, "gpu") == ["Request 4 GPUs instead of 9"]
    assert messages(answer, "ends") == []


def test_hidden_workloads_are_counted_and_never_named() -> None:
    snapshot = cluster(job("secret", "b", on="n1", gpu=4), job("waits"))
    answer = explain_why(snapshot, "waits", Asker(visible=frozenset({"project-a"}), own=frozenset()))
    (ends,) = changes(answer, "ends")
    assert (ends.ends.workloads, ends.ends.hidden, ends.changes) == ((), 1, ())
    assert ends.message == "Wait until 1 workload of other projects ends"
    assert messages(answer, "suspend") == []
    assert b"secret" not in msgspec.json.encode(answer)
    assert b"secret" in msgspec.json.encode(explain_why(snapshot, "waits"))


def test_others_that_wait_may_come_first() -> None:
    """What one workload leaves, or one node brings, goes to the one that waits longer."""
    snapshot = cluster(job("holds", on="n1", gpu=4), job("first", gpu=4), job("waits", gpu=4))
    answer = explain_why(snapshot, "waits")
    (suspend,) = changes(answer, "suspend")
    assert sorted(each.workload for each in suspend.changes if isinstance(each, RemoveWorkload)) == [
        "a/first",
        "a/holds",
    ]
    assert suspend.message == "Suspend first and holds"
    assert messages(answer, "addNodes") == ["Add 2 nodes like n1 (4 GPUs each)"]


def test_changes_of_an_answer_can_be_asked_about_again() -> None:
    """They carry the names that users know, and `apply` understands these."""
    snapshot = cluster(job("holds", on="n1", gpu=3), job("waits", gpu=4))
    for change in explain_why(snapshot, "waits").changes:
        changed = msgspec.json.decode(msgspec.json.encode(change), type=VerifiedChange)
        assert changed == change


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("nobody", "The snapshot has no workload 'nobody'."),
        ("twin", "2 workloads are called 'twin'; name one of a/twin, b/twin."),
    ],
)
def test_a_name_that_is_not_one_workload(name: str, want: str) -> None:
    twins = [msgspec.structs.replace(job(f"twin-{owner}", owner), name="twin") for owner in "ab"]
    with pytest.raises(UnknownName) as caught:
        explain_why(cluster(*twins), name)
    assert str(caught.value) == want
    assert explain_why(cluster(*twins), "a/twin").project == "a"
