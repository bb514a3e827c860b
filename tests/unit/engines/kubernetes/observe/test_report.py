"""From objects of a cluster, as its API writes them, to reports in our words."""

from typing import Any

import msgspec
import pytest

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.nodes import render_node
from fairlead.engines.kubernetes.observe.pods import render_pod
from fairlead.engines.kubernetes.observe.report import render_report
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload
from fairlead.engines.kubernetes.plan.node_pools import decide_pool, render_move
from fairlead.engines.kubernetes.plan.pod_group import GroupPlan, decide_group
from fairlead.model.pods.podset import RestartScope
from fairlead.model.records.phase import Phase, PodPhase
from tests import builders

LABELS = {"fairlead/workload-id": "w", "fairlead/run": "1", "fairlead/role": "main"}


def pod(name: str = "p", *, phase: str = "Pending", node: str = "", labels: Any = None, **members: Any) -> objects.Pod:
    status = {"phase": phase, **members.pop("status", {})}
    metadata = {"name": name, "uid": f"u-{name}", "labels": LABELS | (labels or {}), **members.pop("metadata", {})}
    return msgspec.convert({"metadata": metadata, "spec": {"nodeName": node}, "status": status}, objects.Pod)


def container(state: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "main", "state": state, **members}]}


def job(*conditions: str, **status: Any) -> objects.Runner:
    listed = [{"type": type, "status": "True", "reason": "R", "message": "words"} for type in conditions]
    return msgspec.convert(
        {"metadata": {"name": "j", "labels": LABELS}, "status": {"conditions": listed, **status}}, objects.Runner
    )


ENDED_WELL = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": "2026-01-01T00:00:09Z"}}
OUT_OF_MEMORY = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
READY = [{"type": "Ready", "status": "True"}]
EVICTED = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "made room"}]


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (pod(), (PodPhase.STARTING, "", "")),
        (pod(node="n"), (PodPhase.STARTING, "", "")),
        (
            pod(node="n", status=container({"waiting": {"reason": "ImagePullBackOff", "message": "manifest unknown"}})),
            (PodPhase.STARTING, "ImagePullBackOff", "manifest unknown"),
        ),
        (pod(phase="Running", node="n"), (PodPhase.RUNNING, "", "")),
        (
            pod(
                phase="Running",
                node="n",
                status=container({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}, restartCount=3),
            ),
            (PodPhase.STARTING, "CrashLoopBackOff", "back-off"),
        ),
        (
            pod(phase="Running", node="n", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            (PodPhase.STOPPING, "", ""),
        ),
        (pod(phase="Succeeded", node="n", status=container(ENDED_WELL)), (PodPhase.SUCCEEDED, "Completed", "")),
        (
            pod(phase="Failed", node="n", status=container(OUT_OF_MEMORY)),
            (PodPhase.FAILED, "OOMKilled", "OOMKilled, exit code 137"),
        ),
        (
            pod(phase="Failed", node="n", status={"conditions": EVICTED}),
            (PodPhase.FAILED, "PreemptionByScheduler", "made room"),
        ),
        (
            pod(phase="Failed", node="n", status={"reason": "Evicted", "message": "node is low on memory"}),
            (PodPhase.FAILED, "Evicted", "node is low on memory"),
        ),
    ],
    ids=[
        "unplaced",
        "placed",
        "image",
        "no kubelet",
        "crash loop",
        "leaving",
        "succeeded",
        "out of memory",
        "evicted",
        "node",
    ],
)
def test_pods(given: objects.Pod, want: tuple[PodPhase, str, str]) -> None:
    seen = render_pod(given)
    assert (seen.phase, seen.reason, seen.message) == want


def test_a_pod_is_placed_when_its_scheduler_says_so() -> None:
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:07Z"}
    assert render_pod(pod(node="n1", status={"conditions": [condition]})).placed_at == 1_767_225_607_000
    assert render_pod(pod(status={"conditions": [condition | {"status": "False"}]})).placed_at is None


def test_what_a_pod_shows_of_itself() -> None:
    running = container({"running": {"startedAt": "2026-01-01T00:00:01Z"}}, restartCount=2)
    seen = render_pod(pod(phase="Running", node="n1", status=running | {"conditions": READY}))
    assert (seen.node, seen.ready, seen.restarts, seen.started_at) == ("n1", True, 2, 1_767_225_601_000)
    ended = render_pod(pod(phase="Failed", node="n1", status=container(OUT_OF_MEMORY)))
    assert (ended.exit_code, ended.signal, ended.eviction) == (137, 9, "")
    assert render_pod(pod(status={"conditions": EVICTED})).eviction == "made room"


@pytest.mark.parametrize(
    ("last", "want"),
    [
        ({"exitCode": 4, "reason": "Error"}, (4, None, "exit code 4")),
        ({"exitCode": 137, "reason": "OOMKilled"}, (137, 9, "OOMKilled, exit code 137 (signal 9)")),
        ({"exitCode": 143, "reason": "Error"}, (143, 15, "exit code 143 (signal 15)")),
    ],
    ids=["failed", "out of memory", "by a signal"],
)
def test_a_container_that_was_started_again_says_how_it_ended(
    last: dict[str, Any], want: tuple[int, int | None, str]
) -> None:
    terminated = {"terminated": last | {"startedAt": "2026-01-01T00:00:01Z"}}
    running = {"running": {"startedAt": "2026-01-01T00:00:09Z"}}
    seen = render_pod(pod(phase="Running", node="n", status=container(running, restartCount=2, lastState=terminated)))
    assert (seen.exit_code, seen.signal, seen.last_end) == want
    assert (seen.phase, seen.cluster_phase, seen.container) == (PodPhase.RUNNING, "Running", "main")
    assert (seen.started_at, seen.ended_at) == (1_767_225_609_000, None)
    waiting = container({"waiting": {"reason": "CrashLoopBackOff"}}, restartCount=2, lastState=terminated)
    waits = render_pod(pod(phase="Running", node="n", status=waiting))
    assert (waits.phase, waits.cluster_phase, waits.last_end) == (PodPhase.STARTING, "Running", want[2])
    assert waits.started_at == 1_767_225_601_000


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        ({}, (0, None)),
        ({"batch.kubernetes.io/job-completion-index": "4"}, (0, 4)),
        ({"leaderworkerset.sigs.k8s.io/group-index": "2", "leaderworkerset.sigs.k8s.io/worker-index": "0"}, (2, 0)),
        ({"leaderworkerset.sigs.k8s.io/group-index": "2", "leaderworkerset.sigs.k8s.io/worker-index": "3"}, (2, 2)),
        ({"fairlead/index": "1"}, (0, 1)),
    ],
    ids=["none", "indexed job", "leader", "worker", "our own group"],
)
def test_places_of_pods(labels: dict[str, str], want: tuple[int, int | None]) -> None:
    seen = render_pod(pod(labels=labels))
    assert (seen.group, seen.index) == want


@pytest.mark.parametrize(
    ("runner", "want"),
    [
        (job(), (1, None, "")),
        (job("Complete", succeeded=1), (1, Phase.COMPLETED, "")),
        (job("FailureTarget", "Failed", failed=7), (1, Phase.FAILED, "R: words")),
        (None, (0, None, "")),
    ],
    ids=["going on", "complete", "failed", "nothing"],
)
def test_ends(runner: objects.Runner | None, want: tuple[int, Phase | None, str]) -> None:
    report = render_report("w", ObservedWorkload(runners=(runner,) if runner else ()))
    assert (report.run, report.ended, report.message) == want


def group(*conditions: dict[str, Any], name: str = "pg", **members: Any) -> objects.PodGroup:
    metadata = {"name": name, "labels": LABELS, **members}
    return msgspec.convert(
        {"metadata": metadata, "status": {"schedulingConditions": list(conditions)}}, objects.PodGroup
    )


def unschedulable(reason: str, message: str, pool: str = "default", queue: str = "") -> dict[str, Any]:
    details = {"details": {"queueDetails": {"name": queue}}} if queue else {}
    return {
        "type": "UnschedulableOnNodePool",
        "status": "True",
        "nodePool": pool,
        "reasons": [{"reason": reason, "message": message, **details}],
    }


def test_why_it_waits_is_what_the_scheduler_said_last_in_each_pool() -> None:
    waiting = pod(metadata={"annotations": {"pod-group-name": "pg"}})
    said = group(
        unschedulable("OverLimit", "old"),
        unschedulable("OverLimit", "limit is 4", queue="team-a"),
        unschedulable("PodSchedulingErrors", "no node", pool="h100"),
    )
    report = render_report("w", ObservedWorkload(runners=(job(),), pods=(waiting,), groups=(said,)))
    assert [(wait.node_pool, wait.code, wait.message, wait.queue) for wait in report.waits] == [
        ("default", "OverLimit", "limit is 4", "team-a"),
        ("h100", "PodSchedulingErrors", "no node", ""),
    ]


def test_what_has_a_node_does_not_wait() -> None:
    placed = pod(node="n", metadata={"annotations": {"pod-group-name": "pg"}})
    report = render_report(
        "w", ObservedWorkload(runners=(job(),), pods=(placed,), groups=(group(unschedulable("X", "y")),))
    )
    assert report.waits == ()


# Groups of our own

GANG = (
    builders.podset(role="master", gang="g", restart_scope=RestartScope.GROUP, completions=1, backoff_limit=1),
    builders.podset(role="worker", gang="g", restart_scope=RestartScope.GROUP, completions=2, count=2),
)
NAMES = [("master", 0), ("worker", 0), ("worker", 1)]


def member(role: str, index: int, phase: str = "Running", attempt: int = 0, **members: Any) -> objects.Pod:
    labels = {"fairlead/role": role, "fairlead/index": str(index), "fairlead/attempt": str(attempt)}
    return pod(f"{role}-{index}", phase=phase, labels=labels, **members)


def members(**phases: str) -> list[objects.Pod]:
    return [member(role, index, phases.get(f"{role}{index}", "Running")) for role, index in NAMES]


PREEMPTED = member("worker", 1, "Failed", status={"conditions": EVICTED})
LEAVING: dict[str, Any] = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("pods", "failures", "want"),
    [
        ([], 0, GroupPlan(create=tuple(NAMES))),
        (members(), 0, GroupPlan()),
        (members()[1:], 0, GroupPlan(create=(("master", 0),))),
        (members(worker1="Failed"), 0, GroupPlan(counts_failure=True)),
        (members(worker1="Failed"), 1, GroupPlan(delete=tuple(members(worker1="Failed")))),
        ([member("master", 0, **LEAVING)], 1, GroupPlan()),
        ([], 1, GroupPlan(create=tuple(NAMES))),
        ([], 2, GroupPlan()),
        (members(master0="Succeeded"), 0, GroupPlan(delete=tuple(members()[1:]))),
        (members(worker0="Succeeded"), 0, GroupPlan()),
        (
            [*members()[:2], PREEMPTED],
            0,
            GroupPlan(delete=(PREEMPTED,)),
        ),
    ],
    ids=[
        "nothing there",
        "all there",
        "one is missing",
        "one failed",
        "those of before go",
        "some still leave",
        "it begins again",
        "too often",
        "the master is done",
        "a worker is done",
        "one was taken away",
    ],
)
def test_groups(pods: list[objects.Pod], failures: int, want: GroupPlan) -> None:
    assert decide_group(GANG, pods, failures) == want


def test_a_group_ends_with_its_first_set() -> None:
    own = group(name="train", labels=LABELS | {"fairlead/own-group": "true"})
    done = render_report("w", ObservedWorkload(groups=(own,), pods=tuple(members(master0="Succeeded"))), GANG)
    assert (done.run, done.ended, done.succeeded) == (1, Phase.COMPLETED, {"master": 1})
    broken = group(name="train", labels=LABELS | {"fairlead/own-group": "true"}, annotations={"fairlead/failures": "2"})
    failed = render_report("w", ObservedWorkload(groups=(broken,)), GANG)
    assert (failed.ended, failed.failed, failed.are_counts_known) == (Phase.FAILED, {"master": 2}, True)
    # Before it is known what it consists of.
    assert not render_report("w", ObservedWorkload(groups=(broken,))).are_counts_known


def test_a_group_that_ended_well_has_done_so_when_its_pods_are_gone() -> None:
    own = group(
        name="train", labels=LABELS | {"fairlead/own-group": "true"}, annotations={"fairlead/completed": "true"}
    )
    for pods in ((), (member("worker", 0, "Failed"),)):
        done = render_report("w", ObservedWorkload(groups=(own,), pods=pods), GANG)
        assert (done.ended, done.succeeded) == (Phase.COMPLETED, {"master": 1})
    assert decide_group(GANG, [], 0, is_complete=True) == GroupPlan()


def test_pods_know_how_often_their_group_failed() -> None:
    own = group(name="train", labels=LABELS | {"fairlead/own-group": "true"})
    again = render_report("w", ObservedWorkload(groups=(own,), pods=(member("worker", 0, attempt=1),)), GANG)
    assert (again.ended, again.failed) == (None, {"master": 1})


def test_nodes() -> None:
    node = msgspec.convert(
        {
            "metadata": {
                "name": "n1",
                "uid": "u",
                "labels": {"nvidia.com/gpu.memory": "81920", "nvidia.com/gpu.product": "H100"},
            },
            "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
            "status": {
                "allocatable": {"cpu": "3920m", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "2", "x.io/y": "4"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        },
        objects.Node,
    )
    found = render_node(node)
    assert (found.cpu_milli, found.memory_bytes, found.pods, found.ready) == (3920, 16 << 30, 110, True)
    assert [(device.index, device.model, device.memory_mib) for device in found.gpus] == [
        (0, "H100", 81920),
        (1, "H100", 81920),
    ]
    assert found.extended == {"x.io/y": 4}
    assert found.taints[0].key == "k"


def test_a_cordoned_node_is_not_a_broken_one() -> None:
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    node = msgspec.convert({"metadata": {"name": "n"}, "spec": {"unschedulable": True}, "status": status}, objects.Node)
    found = render_node(node)
    assert (found.ready, found.cordoned) == (True, True)


def test_a_node_is_not_ready_since_its_condition_changed() -> None:
    ready = {"type": "Ready", "status": "Unknown", "lastTransitionTime": "1970-01-01T00:10:00Z"}
    node = msgspec.convert({"metadata": {"name": "n"}, "status": {"conditions": [ready]}}, objects.Node)
    found = render_node(node)
    assert (found.ready, found.not_ready_since) == (False, 600_000)


# Pools that are tried in turn


@pytest.mark.parametrize(
    ("label", "said", "moved", "node", "want"),
    [
        ("", [], "", "", None),
        ("", [("default", "1")], "", "", ("h100", "1")),
        ("h100", [("default", "1")], "1", "", None),
        ("h100", [("default", "1"), ("h100", "2")], "1", "", ("default", "2")),
        ("", [("default", "1"), ("h100", "2")], "2", "", None),
        ("", [("default", "3"), ("h100", "2")], "2", "", ("h100", "3")),
        ("", [("default", "1")], "", "n1", None),
    ],
    ids=["not tried", "no room", "the next is tried", "round", "again the first", "its second try", "placed"],
)
def test_pools_in_turn(label: str, said: list[tuple[str, str]], moved: str, node: str, want: Any) -> None:
    labels = LABELS | ({"kai.scheduler/node-pool": label} if label else {})
    conditions = [unschedulable("X", "y", pool=pool) | {"transitionID": number} for pool, number in said]
    tried = group(*conditions, labels=labels, annotations={"fairlead/moved-after": moved})
    waiting = pod(node=node, metadata={"annotations": {"pod-group-name": "pg"}})
    assert decide_pool(tried, [waiting], ("default", "h100")) == want
    # With the other pool gone: what waits in it has nobody to wait for.
    want_alone = ("default", max(moved, *(number for _, number in said))) if label else None
    assert decide_pool(tried, [waiting], ("default",)) == want_alone
    assert decide_pool(tried, [waiting], ()) is None


@pytest.mark.parametrize(("pool", "label", "queue"), [("h100", "h100", "a-h100"), ("default", None, "a")])
def test_what_is_moved_says_so_in_every_vocabulary(pool: str, label: str | None, queue: str) -> None:
    move = render_move("a", pool, "7")
    labels = {"kai.scheduler/node-pool": label, "runai/node-pool": label, "runai/queue": queue}
    assert (move["metadata"]["labels"], move["spec"]) == (labels, {"queue": queue})


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        ({}, ()),
        ({"runai-gpu-group": "g"}, ("g",)),
        ({"runai-gpu-group/h": "h", "runai-gpu-group/g": "g"}, ("g", "h")),
        ({"runai-gpu-group": "g", "runai-gpu-group/h": "h", "runai-gpu-group/g": "g"}, ("g", "h")),
    ],
    ids=["none", "one", "several", "several, and the first once more"],
)
def test_shared_gpus_of_pods(labels: dict[str, str], want: tuple[str, ...]) -> None:
    assert render_pod(pod(labels=labels)).gpu_groups == want
