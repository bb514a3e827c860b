"""The metrics of the organization: their values, their documentation, the dashboard and the alerts made of them."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import yaml

from fairlead.api.server.cluster_metrics import MAX_SHOWN, cluster_samples
from fairlead.api.server.metrics import Metrics, Sample, loop_samples
from fairlead.control.loop.board import Board
from fairlead.control.loop.reconcile import LoopMetrics
from fairlead.control.serving.traffic import Traffic
from fairlead.control.usage_samples import UsageSampler
from fairlead.foresight.kai.agreement import Agreement
from fairlead.model.records.organization import GpuDevice, Node
from fairlead.model.records.phase import Phase, PodPhase
from fairlead.model.records.workload import EvictionNote, Pod, Workload
from fairlead.model.resource_usage import MeasuredUsage
from fairlead.scheduling.model.decisions import FairShare
from fairlead.store.base import Change, Put
from fairlead.store.collections import NODES
from tests import builders
from tests.contract.api.api_server import START, ApiServer

ROOT = Path(__file__).parents[2]
FILES = ROOT / "deploy" / "helm" / "files"
#: Their series are made by `scheduled_backups.py` and, here, by nobody.
OF_BACKUPS = {"fairlead_backup_age_seconds", "fairlead_backup_failures_total"}
_NAME = re.compile(r"\bfairlead_[a-z_]+\b")


def _documented() -> dict[str, str]:
    """Name → type, from the reference."""
    text = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    return dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", text, re.MULTILINE))


def _known_series() -> set[str]:
    parts = ("_bucket", "_sum", "_count")
    return {
        f"{name}{part}" for name, type in _documented().items() for part in (parts if type == "histogram" else ("",))
    }


def _running(name: str, user: str, gpus: int) -> tuple[Workload, tuple[Pod, ...]]:
    workload = builders.workload(name, phase=Phase.RUNNING, created_by=user, started_at=START)
    pod = builders.pod(
        f"{name}-0",
        id=f"pod-of-{name}",
        workload_id=workload.id,
        phase=PodPhase.RUNNING,
        node="alpha",
        node_pool="default",
        gpu_devices=tuple(range(gpus)),
        gpu_thousandths=500,
    )
    return workload, (pod,)


async def _measured(api: ApiServer) -> UsageSampler:
    usages = [[MeasuredUsage("pod-of-big", 1.0, 2_000_000, 50.0, 10**9)]]
    usage_samples = UsageSampler(api.context.store, api.clock, Traffic(api.clock, lambda: 0.0), lambda: usages[-1])
    await usage_samples.sample()
    api.clock.now += 10_000
    usages.append([MeasuredUsage("pod-of-big", 6.0, 3_000_000, 50.0, 10**9)])
    await usage_samples.sample()
    return usage_samples


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ApiServer(tmp_path_factory.mktemp("metrics")) as api:
        gpus = tuple(GpuDevice(index, "", "A100", 1024) for index in range(8))
        node = Node(id="alpha", name="alpha", version=2, cpu_milli=4000, memory_bytes=10**10, gpus=gpus)
        api.do(api.context.store.commit(Change(writes=(Put(NODES, node),))))
        api.do(api.context.directory.load())
        for owner in ("projects", "departments"):
            quota = [{"nodePool": {"id": "1"}, "gpu": {"deserved": 4}}]
            assert api.call("PUT", f"/api/v1/org-unit/{owner}/1/resources", quota).status == 200
        api.context.usage_samples = api.do(_measured(api))
        api.context.fair_shares = tuple(
            FairShare(
                queue=queue,
                node_pool="default",
                fair_share=(3.0, 0.0, 0.0),
                requested=(0.0, 0.0, 0.0),
                allocated=(0.0, 0.0, 0.0),
                allocated_non_preemptible=(0.0, 0.0, 0.0),
            )
            for queue in ("project-1", "department-1")
        )
        api.context.agreement = Agreement(placements=407, equal_placements=406, victims=9, equal_victims=9)
        board, figures = Board({}), LoopMetrics()
        figures.scheduling.observe(0.002)
        _fill(board, api.clock.now)
        samples = [*loop_samples(board, figures), *cluster_samples(api.context, board, figures)]
        metrics = Metrics(lambda: samples)
        metrics.count("get_workloads", 200, 0.003)
        yield metrics.render()


def _fill(board: Board, now: int) -> None:
    """One big workload, one of each of 102 users, one that waits; and what happened to three of them."""
    workload, pods = _running("big", "ann", 4)
    waited = msgspec.structs.replace(workload, phase=Phase.PENDING, started_at=None)
    board.put(waited, ())
    board.put(msgspec.structs.replace(workload, pending_time=30_000), pods)
    for number in range(MAX_SHOWN + 2):
        workload, pods = _running(f"small-{number}", f"user-{number:03}", 1)
        board.put(workload, pods)
    note = EvictionNote(at=START, pod="p", node="alpha", rule="reclaimed")
    board.put(msgspec.structs.replace(workload, last_eviction=note), pods)
    ended = builders.workload("ended", phase=Phase.RUNNING)
    board.put(ended, ())
    board.put(msgspec.structs.replace(ended, phase=Phase.FAILED), ())
    board.put(builders.workload("waiting", phase=Phase.PENDING, phase_updated_at=now - 60_000), ())


@pytest.mark.parametrize(
    "line",
    [
        'fairlead_node_gpus{node="alpha",node_pool="default"} 8',
        'fairlead_node_gpus_allocated{node="alpha",node_pool="default"} 53',
        'fairlead_project_gpus_allocated{department="default",project="default",node_pool="default"} 53',
        'fairlead_project_gpu_quota{department="default",project="default",node_pool="default"} 4',
        'fairlead_department_gpu_fair_share{department="default",node_pool="default"} 3',
        'fairlead_user_gpus_allocated{user="ann"} 2',
        # The first hundred are ann and 99 of the others; the last three are added up.
        'fairlead_user_gpus_allocated{user="others"} 1.5',
        'fairlead_queue_length{department="default",project="default"} 1',
        'fairlead_queue_longest_wait_seconds{department="default",project="default"} 60',
        'fairlead_workloads{phase="Pending"} 1',
        'fairlead_workloads_ended_total{phase="Failed"} 1',
        'fairlead_evictions_total{rule="reclaimed"} 1',
        'fairlead_kai_comparisons_total{what="placement",result="agree"} 406',
        'fairlead_kai_comparisons_total{what="placement",result="differ"} 1',
        'fairlead_kai_comparisons_total{what="victim",result="differ"} 0',
        'fairlead_workload_wait_seconds_bucket{le="10.0"} 0',
        'fairlead_workload_wait_seconds_bucket{le="60.0"} 1',
        "fairlead_workload_wait_seconds_sum 30.000000",
        'fairlead_workload_cpu_cores{project="default",workload="big"} 0.5',
        'fairlead_workload_gpu_utilization{project="default",workload="big"} 0.5',
        'fairlead_scheduling_cycle_seconds_bucket{le="0.0025"} 1',
        'fairlead_http_request_duration_seconds_bucket{operation="get_workloads",le="0.005"} 1',
    ],
)
def test_values(text: str, line: str) -> None:
    assert line in text.splitlines()


def test_series_of_workloads_are_bounded(text: str) -> None:
    assert len(re.findall(r"^fairlead_workload_gpus_allocated\{", text, re.MULTILINE)) == MAX_SHOWN


def test_strangers_read_no_names() -> None:
    named = [Sample("fairlead_a", 1, {label: "secret"}) for label in ("department", "project", "user", "workload")]
    metrics = Metrics(lambda: [*named, Sample("fairlead_b", 2, {"node": "alpha"})])
    assert "secret" in metrics.render()
    strangers = metrics.render(has_names=False)
    assert "secret" not in strangers
    assert 'fairlead_b{node="alpha"} 2' in strangers


def test_every_metric_is_documented_with_its_type(text: str) -> None:
    shown = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    documented = _documented()
    assert shown == {name: type for name, type in documented.items() if name not in OF_BACKUPS}
    assert set(documented) >= OF_BACKUPS


def test_prometheus_accepts_the_text(text: str) -> None:
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_dashboard_and_the_alerts_use_metrics_that_exist() -> None:
    panels = json.loads((FILES / "dashboard.json").read_text())["panels"]
    rules = yaml.safe_load((FILES / "rules.yaml").read_text())["groups"][0]["rules"]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    expressions += [rule["expr"] for rule in rules]
    used = {name for expression in expressions for name in _NAME.findall(expression)}
    assert len(used) > 15
    assert used <= _known_series()
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_alerts_fire_when_they_should() -> None:
    done = subprocess.run(
        ["promtool", "test", "rules", str(Path(__file__).parent / "data" / "alerts.test.yaml")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
