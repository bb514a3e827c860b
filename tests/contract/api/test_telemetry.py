"""Figures of workloads, pods, services and nodes, as the published contract has them."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from fairlead.control.serving.traffic import Traffic
from fairlead.control.usage_samples import UsageSampler
from fairlead.model.clock import iso
from fairlead.model.records.organization import GpuDevice, Node
from fairlead.model.records.phase import Phase, PodPhase
from fairlead.model.records.revision import Revision, Stage
from fairlead.model.resource_usage import MeasuredUsage, node_key
from fairlead.store.base import Change, Put
from fairlead.store.collections import NODES, REVISIONS
from tests import builders
from tests.contract.api.agreement import find_disagreements, load_contract
from tests.contract.api.api_server import START, ApiServer

SERVICE = "11111111-1111-4111-8111-111111111111"
WAITING = "22222222-2222-4222-8222-222222222222"
POD = "44444444-4444-4444-8444-444444444444"
REVISION = "55555555-5555-4555-8555-555555555555"
SECOND = 1000


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A service with one pod on a machine, seen at two moments ten seconds apart; and a training that waits."""
    with ApiServer(tmp_path_factory.mktemp("telemetry")) as api:
        spec = msgspec.Raw(b'{"image":"model","servingPort":{"container":8000},"compute":{"cpuCoreLimit":2}}')
        shared = {"cluster_id": api.cluster_id, "created_at": START, "phase_updated_at": START, "updated_at": START}
        revision = Revision(
            id=REVISION,
            version=1,
            workload_id=SERVICE,
            project_id="1",
            number=1,
            name="model-00001",
            spec=spec,
            stage=Stage.SERVING,
            replicas=1,
            created_at=START,
            phase=Phase.RUNNING,
            phase_updated_at=START,
        )
        service = builders.workload(
            "model",
            id=SERVICE,
            kind="inference-service",
            phase=Phase.RUNNING,
            spec=spec,
            revisions=(revision,),
            allocated_gpu=0.5,
            category="Deploy",
            **shared,
        )
        waiting = builders.workload("waiting", id=WAITING, phase=Phase.PENDING, category="Train", **shared)
        pod = builders.pod(
            "model-00001-0",
            id=POD,
            workload_id=SERVICE,
            role="predictor@1",
            revision_id=REVISION,
            node="alpha",
            node_pool="default",
            cpu_milli=500,
            memory_bytes=10**9,
            gpu_devices=(1,),
            gpu_thousandths=500,
            created_at=START,
            started_at=START + SECOND,
            phase=PodPhase.RUNNING,
        )
        api.put(service, waiting, pod)
        gpus = tuple(GpuDevice(index, "", "A100", 1024) for index in range(2))
        node = Node(id="alpha", name="alpha", version=2, cpu_milli=4000, memory_bytes=10**10, gpus=gpus)
        api.do(api.context.store.commit(Change(writes=(Put(NODES, node), Put(REVISIONS, revision)))))
        api.do(api.context.directory.load())
        api.do(_seen(api))
        api.clock.now = START + 10 * SECOND
        yield api


async def _seen(api: ApiServer) -> None:
    """The service answered 20 requests in the ten seconds, each in a fifth of a second; the pod used 5 cpu seconds."""
    moment = [0.0]
    traffic = Traffic(api.clock, lambda: moment[0])
    usages = [[MeasuredUsage(POD, 1.0, 2_000_000), MeasuredUsage(node_key("alpha"), 100.0, 10**9)]]
    usage_samples = UsageSampler(api.context.store, api.clock, traffic, lambda: usages[-1])
    api.context.usage_samples = usage_samples
    await usage_samples.sample()
    api.clock.now = START + 10 * SECOND
    traffic.serve(SERVICE, msgspec.structs.replace(traffic.begin(SERVICE).serving, pods=(POD,)))
    for _ in range(20):
        visit = traffic.begin(SERVICE)
        assert visit.find_pod() == POD
        moment[0] += 0.2
        visit.end()
    usages.append([MeasuredUsage(POD, 6.0, 3_000_000), MeasuredUsage(node_key("alpha"), 120.0, 2 * 10**9)])
    await usage_samples.sample()


def over_time(types: str, start: int = START, end: int = START + 10 * SECOND, samples: int = 3) -> str:
    return f"?metricType={types}&start={quote(iso(start))}&end={quote(iso(end))}&numberOfSamples={samples}"


def values(answer: Any) -> dict[str, list[str]]:
    return {each["type"]: [value["value"] for value in each["values"]] for each in answer["measurements"]}


def test_what_a_workload_asked_for_held_and_used(filled: ApiServer) -> None:
    types = "POD_COUNT,RUNNING_POD_COUNT,GPU_ALLOCATION,CPU_REQUEST_CORES,CPU_LIMIT_CORES,CPU_USAGE_CORES"
    found = values(filled.get(f"/api/v1/workloads/{SERVICE}/metrics{over_time(types)}"))
    assert found == {
        "POD_COUNT": ["1", "1", "1"],
        "RUNNING_POD_COUNT": ["0", "1", "1"],
        "GPU_ALLOCATION": ["0.5", "0.5", "0.5"],
        "CPU_REQUEST_CORES": ["0.5", "0.5", "0.5"],
        "CPU_LIMIT_CORES": ["2", "2", "2"],
        "CPU_USAGE_CORES": ["0.5", "0.5", "0.5"],
    }


def test_what_a_service_answers(filled: ApiServer) -> None:
    path = f"/api/v1/workloads/inferences/{SERVICE}"
    found = values(filled.get(f"{path}/metrics{over_time('THROUGHPUT,LATENCY')}"))
    # One more than 20 has arrived, and is not answered.
    assert found == {"THROUGHPUT": ["2.1"] * 3, "LATENCY": ["200"] * 3}
    found = values(filled.get(f"{path}/pods/{POD}/metrics{over_time('THROUGHPUT,LATENCY')}"))
    assert found == {"THROUGHPUT": ["2"] * 3, "LATENCY": ["200"] * 3}


def test_metrics_that_are_not_measured_have_no_values_and_the_status_says_so(filled: ApiServer) -> None:
    answer = filled.call("GET", f"/api/v1/workloads/{SERVICE}/metrics{over_time('GPU_UTILIZATION,POD_COUNT')}")
    assert answer.status == 207
    assert values(answer.json) == {"GPU_UTILIZATION": [], "POD_COUNT": ["1", "1", "1"]}


def test_nodes_show_the_machine_and_each_device(filled: ApiServer) -> None:
    [node] = filled.get("/api/v1/nodes")["nodes"]
    types = "CPU_UTILIZATION,CPU_MEMORY_USAGE_BYTES,GPU_ALLOCATION_PER_GPU"
    found = filled.get(f"/api/v1/nodes/{node['id']}/metrics{over_time(types, samples=2)}")["measurements"]
    assert [(each["type"], each.get("labels"), each["values"][-1]["value"]) for each in found] == [
        ("CPU_UTILIZATION", None, "50"),
        ("CPU_MEMORY_USAGE_BYTES", None, "2000000000"),
        ("GPU_ALLOCATION_PER_GPU", {"gpu": "0"}, "0"),
        ("GPU_ALLOCATION_PER_GPU", {"gpu": "1"}, "0.5"),
    ]


@pytest.mark.parametrize(
    ("question", "want"),
    [
        ("workloads/telemetry?telemetryType=WORKLOADS_COUNT", {(): "2"}),
        (
            "workloads/telemetry?telemetryType=WORKLOADS_COUNT&groupBy=Type,Phase",
            {("Inference", "Running"): "1", ("Training", "Pending"): "1"},
        ),
        ("workloads/telemetry?telemetryType=WORKLOADS_COUNT&filterByPhases=Pending,Failed", {(): "1"}),
        ("workloads/telemetry?telemetryType=GPU_ALLOCATION&groupBy=ProjectId", {("1",): "0.5"}),
        ("workloads/telemetry?telemetryType=PENDING_TIME_DISTRIBUTION", {("0-60",): "1"}),
        ("workloads/telemetry?telemetryType=WORKLOADS_COUNT&departmentId=9", {(): "0"}),
        ("nodes/telemetry?telemetryType=TOTAL_GPUS&groupBy=Node", {("alpha",): "2"}),
        ("nodes/telemetry?telemetryType=FREE_GPUS", {(): "1.5"}),
        ("nodes/telemetry?telemetryType=USED_CPU_CORES", {(): "2"}),
        ("nodes/telemetry?telemetryType=ALLOCATED_CPU_MEMORY_BYTES", {(): "1000000000"}),
        ("nodes/telemetry?telemetryType=USED_GPU_MEMORY_BYTES", {}),
        ("nodes/telemetry?telemetryType=TOTAL_GPUS&nodepoolName=other", {}),
    ],
    ids=lambda value: value.partition("?")[2] if isinstance(value, str) else "",
)
def test_figures_of_this_moment(filled: ApiServer, question: str, want: dict[tuple[str, ...], str]) -> None:
    answer = filled.get(f"/api/v1/{question}")
    found = {tuple(group["value"] for group in each.get("groups", ())): each["value"] for each in answer["values"]}
    assert found == want


def test_figures_of_owners(filled: ApiServer) -> None:
    def figure(what: str, type: str, more: str = "") -> list[Any]:
        found: list[Any] = filled.get(f"/api/v1/org-unit/{what}/telemetry?telemetryType={type}{more}")["values"]
        return found

    assert figure("projects", "GPU_ALLOCATION") == [{"value": "0.5"}]
    assert figure("departments", "CPU_ALLOCATION") == [{"value": "500"}]
    assert figure("projects", "MEMORY_ALLOCATION_NON_PREEMPTIBLE", "&groupBy=ParentId") == [
        {"value": "0", "groups": [{"key": "ParentId", "value": "1", "name": "default"}]}
    ]
    assert figure("projects", "GPU_ALLOCATION", "&departmentId=9") == []
    for what in ("projects", "departments"):
        types = "GPU_ALLOCATION,CPU_ALLOCATION_MILLICORES,CPU_MEMORY_ALLOCATION_MB"
        found = values(filled.get(f"/api/v1/org-unit/{what}/1/metrics{over_time(types, samples=2)}"))
        assert found == {
            "GPU_ALLOCATION": ["0.5", "0.5"],
            "CPU_ALLOCATION_MILLICORES": ["500", "500"],
            "CPU_MEMORY_ALLOCATION_MB": ["1000", "1000"],
        }
    assert filled.call("GET", f"/api/v1/org-unit/projects/9/metrics{over_time('GPU_QUOTA')}").status == 404
    unknown = filled.call("GET", f"/api/v1/org-unit/projects/1/metrics{over_time('GPU_MEMORY_UTILIZATION')}")
    assert unknown.status == 207


@pytest.mark.parametrize("path", load_contract("telemetry-2.24.contract.json")["paths"])
def test_answers_agree_with_the_contract(filled: ApiServer, path: str) -> None:
    [node] = filled.get("/api/v1/nodes")["nodes"]
    ids = {"workloadId": SERVICE, "podId": POD, "revisionId": REVISION, "nodeId": node["id"]}
    ids |= {"projectId": "1", "departmentId": "1", "clusterUuid": filled.cluster_id, "nodepoolName": "default"}
    of_owner = "org-unit" in path
    query = ""
    if path.endswith("/metrics"):
        other = "GPU_QUOTA" if of_owner or "clusters" in path else "CPU_USAGE_CORES"
        query = over_time("THROUGHPUT,LATENCY" if "inferences" in path else other)
    elif path.endswith("/telemetry"):
        type = "GPU_QUOTA" if of_owner else "TOTAL_GPUS" if "nodes" in path else "WORKLOADS_COUNT"
        query = f"?telemetryType={type}&groupBy=" + ("CLUSTER_ID" if "departments" in path else "ClusterId")
    answer = filled.call("GET", re.sub(r"\{(\w+)\}", lambda match: ids[match[1]], path) + query)
    assert answer.status == 200, answer
    assert find_disagreements("get", path, 200, answer.json) == []


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("?start=2023-01-01&end=2023-01-02", "metricType"),
        (over_time("POD_COUNT,NONSENSE"), "metricType"),
        ("?metricType=POD_COUNT&end=2023-01-02", "start"),
        ("?metricType=POD_COUNT&start=yesterday&end=2023-01-02", "start"),
        (over_time("POD_COUNT", START + 1, START), "end"),
        (over_time("POD_COUNT", samples=1001), "numberOfSamples"),
    ],
    ids=["no type", "unknown type", "no start", "no time", "backwards", "too many"],
)
def test_questions_that_cannot_be_answered(filled: ApiServer, query: str, path: str) -> None:
    answer = filled.call("GET", f"/api/v1/workloads/{SERVICE}/metrics{query}")
    assert (answer.status, path in answer.json["details"]) == (400, True), answer


def test_the_same_as_text(filled: ApiServer) -> None:
    url = f"/api/v1/workloads/{SERVICE}/metrics{over_time('POD_COUNT', samples=1)}"
    answer = filled.call("GET", url, headers={"Accept": "text/csv"})
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.body.decode().splitlines() == ["type,labels,timestamp,value", f"POD_COUNT,,{iso(START)},1"]


PLACES = "TOTAL_GPU,TOTAL_GPU_NODES,ALLOCATED_GPU,UNALLOCATED_GPU,CPU_UTILIZATION,WORKLOADS_COUNT,GPU_QUOTA"


@pytest.mark.parametrize("place", ["", "/nodepools/default"], ids=["cluster", "node-pool"])
def test_the_cluster_and_its_pools_show_what_is_held_and_used(filled: ApiServer, place: str) -> None:
    path = f"/api/v1/clusters/{filled.cluster_id}{place}/metrics"
    answer = filled.call("GET", f"{path}{over_time(PLACES)}")
    assert answer.status == 200, answer
    found = values(answer.json)
    assert found == {
        "TOTAL_GPU": ["2"] * 3,
        # Without a bound it is no number.
        "GPU_QUOTA": ["0"] * 3,
        "TOTAL_GPU_NODES": ["1"] * 3,
        "ALLOCATED_GPU": ["0.5"] * 3,
        "UNALLOCATED_GPU": ["1.5"] * 3,
        "CPU_UTILIZATION": ["50"] * 3,
        "WORKLOADS_COUNT": ["2" if not place else "1"] * 3,
    }


@pytest.mark.parametrize(
    ("group_by", "want"),
    [
        ("Nodepool", {"default": (["0.5"], ["2"])}),
        ("Project", {"default": (["0.5"], [])}),
        ("Department", {"default": (["0.5"], [])}),
        ("Category", {"Deploy": (["0.5"], []), "Train": (["0"], [])}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_cluster_by_groups(filled: ApiServer, group_by: str, want: dict[str, tuple[list[str], list[str]]]) -> None:
    """What parts have none of has no values."""
    query = over_time("ALLOCATED_GPU,TOTAL_GPU", samples=1) + f"&groupBy={group_by}"
    answer = filled.call("GET", f"/api/v1/clusters/{filled.cluster_id}/metrics{query}")
    assert answer.status == (200 if group_by == "Nodepool" else 207)
    found: dict[str, dict[str, list[str]]] = {}
    for each in answer.json["measurements"]:
        [group] = each["groups"]
        assert group["key"] == group_by
        found.setdefault(group["value"], {})[each["type"]] = [value["value"] for value in each["values"]]
    assert {name: (part["ALLOCATED_GPU"], part["TOTAL_GPU"]) for name, part in found.items()} == want
    assert find_disagreements("get", "/api/v1/clusters/{clusterUuid}/metrics", answer.status, answer.json) == []


def test_clusters_and_pools_that_are_not_there(filled: ApiServer) -> None:
    query = over_time("TOTAL_GPU")
    other = "99999999-9999-4999-8999-999999999999"
    for path in (f"{other}/metrics", f"{filled.cluster_id}/nodepools/none/metrics"):
        assert filled.call("GET", f"/api/v1/clusters/{path}{query}").status == 404
