"""The shortcut for newcomers that are equal to one that waits agrees with asking about the whole cluster."""

import random

import msgspec
import pytest

from fairlead.control.decide.draft import WorkloadEntry
from fairlead.control.decide.placement.equivalence import KnownBlockers
from fairlead.control.decide.placement.snapshot import render_jobs, render_queues
from fairlead.model.pods.podset import Request
from fairlead.model.records.organization import Department, NodePool, PoolQuota, Project, Quota
from fairlead.model.records.phase import Phase, PodPhase
from fairlead.scheduling import Snapshot, SnapshotNode, decide
from tests import builders

NOW = 1_000_000
POOL = NodePool(id="1", version=1, name="default", cluster_id="c", created_at=0, updated_at=0)


def _owner(id: str, quota: float, cls: type = Project) -> Department:
    resources = (
        PoolQuota(
            node_pool_id="1",
            node_pool_name="default",
            gpu=Quota(deserved=quota),
            cpu=Quota(deserved=quota * 1000),
            memory=Quota(deserved=None),
        ),
    )
    more = {"department_id": "1", "department_name": "d"} if cls is Project else {}
    return cls(
        id=id, version=1, name=f"owner-{id}", cluster_id="c", created_at=0, updated_at=0, created_by="", updated_by="",
        resources=resources, **more,
    )  # fmt: skip


def _entry(number: int, project: str, gpu: int, priority: int, placed: bool) -> WorkloadEntry:
    request = Request(cpu_milli=1000, gpu_devices=gpu)
    workload = builders.workload(
        f"w{number}",
        project_id=project,
        phase=Phase.RUNNING if placed else Phase.PENDING,
        priority=priority,
        created_at=number,
        spec=msgspec.Raw(f'{{"gpu":{gpu}}}'.encode()),
    )
    pods = (
        builders.pod(
            f"w{number}-0-0", workload_id=workload.id, phase=PodPhase.RUNNING, node="n", gpu_devices=tuple(range(gpu)),
            started_at=number,
        ),
    ) if placed else ()  # fmt: skip
    return WorkloadEntry(workload=workload, podsets=(builders.podset(request=request),), pods=pods)


def _snapshot(entries: list[WorkloadEntry], quotas: dict[str, float], gpus: int) -> Snapshot:
    owners = [_owner("1", gpus, Department), *(_owner(id, quota) for id, quota in quotas.items())]
    return Snapshot(
        now=NOW / 1000,
        nodes=(SnapshotNode(name="n", cpu_milli=8000, memory_bytes=1 << 30, gpu=gpus, gpu_memory_mib=1000),),
        queues=tuple(render_queues(owners, [POOL])),
        jobs=tuple(job for entry in entries for job in render_jobs(entry, "", NOW)),
    )


@pytest.mark.parametrize("seed", range(60))
def test_a_newcomer_like_one_that_waits_changes_nothing(seed: int) -> None:
    draw = random.Random(seed)
    gpus = 4
    quotas = {"1": draw.choice((0.0, 1.0, 2.0, 4.0)), "2": draw.choice((0.0, 1.0, 2.0, 4.0))}
    entries = []
    free = gpus
    for number in range(draw.randrange(1, 8)):
        gpu = draw.choice((0, 1, 2, 8))
        placed = 0 < gpu <= free and draw.random() < 0.5
        free -= gpu if placed else 0
        entries.append(_entry(number, draw.choice("12"), gpu, draw.choice((40, 80)), placed))
    decisions = decide(_snapshot(entries, quotas, gpus))
    waiting = KnownBlockers()
    waiting.learn({entry.workload.id: entry for entry in entries}, decisions)
    for old in entries:
        twin = old.workload
        new = _entry(100, twin.project_id, old.podsets[0].request.gpu_devices, twin.priority, placed=False)
        told = waiting.reason(new, NOW)
        if told is None:
            continue
        after = decide(_snapshot([*entries, new], quotas, gpus))
        assert (after.binds, after.evictions, after.pipelined) == ((), (), ())
        reasons = {pending.tasks[0]: pending.reason.code for pending in after.pending}
        assert reasons[f"{new.workload.id}/main/0/0"] == told.reason.code


def test_the_shortcut_is_taken_where_it_may_be() -> None:
    entries = [_entry(number, "1", 8, 40, placed=False) for number in range(3)]
    decisions = decide(_snapshot(entries, {"1": 4.0}, 4))
    waiting = KnownBlockers()
    waiting.learn({entry.workload.id: entry for entry in entries}, decisions)
    assert waiting.reason(_entry(9, "1", 8, 40, placed=False), NOW) is not None
    assert waiting.reason(_entry(9, "1", 1, 40, placed=False), NOW) is None
    assert waiting.reason(_entry(9, "1", 8, 80, placed=False), NOW) is None


def test_the_shortcut_is_not_taken_where_a_share_may_grow_and_somebody_could_be_evicted() -> None:
    entries = [_entry(0, "1", 2, 40, placed=True), _entry(1, "2", 8, 40, placed=False)]
    decisions = decide(_snapshot(entries, {"1": 0.0, "2": 4.0}, 4))
    waiting = KnownBlockers()
    waiting.learn({entry.workload.id: entry for entry in entries}, decisions)
    assert waiting.reason(_entry(9, "2", 8, 40, placed=False), NOW) is None
