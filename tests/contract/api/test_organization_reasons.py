"""Why something waits, and what the scheduler sees, over HTTP: numbers, holders, remedies, a snapshot to replay."""

from typing import Any

import msgspec
import pytest

from fairlead.model.records.organization import GpuDevice, Node
from fairlead.model.records.phase import Phase, PodPhase
from fairlead.model.records.workload import EvictionNote
from fairlead.scheduling import decide, read_snapshot
from fairlead.store.base import Change, Put
from fairlead.store.collections import NODES
from tests import builders
from tests.contract.api.api_server import START, ApiServer
from tests.contract.api.test_people import RESEARCHER, Person

HOLDS = "11111111-1111-4111-8111-111111111111"
WAITS = "22222222-2222-4222-8222-222222222222"
HUGE = "33333333-3333-4333-8333-333333333333"
APART = "55555555-5555-4555-8555-555555555555"
PARTLY = "66666666-6666-4666-8666-666666666666"
WIDE = "77777777-7777-4777-8777-777777777777"
POD = "44444444-4444-4444-8444-444444444444"


def asking(cores: float) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode({"image": "x", "compute": {"cpuCoreRequest": cores}}))


@pytest.fixture(scope="module")
def filled(api: ApiServer) -> ApiServer:
    """A node of 4 cores: one workload holds 3.5 of them, one wants 1, one wants more than there are."""
    shared: dict[str, Any] = {"cluster_id": api.cluster_id, "created_at": START, "phase_updated_at": START}
    note = EvictionNote(at=START, pod="waits-0-0", node="alpha", rule="reclaimed", message="Evicted: …", gpus=1.0)
    api.put(
        builders.workload("holds", id=HOLDS, phase=Phase.RUNNING, spec=asking(3.5), **shared),
        builders.workload(
            "waits", id=WAITS, phase=Phase.PENDING, spec=asking(1), preemptions=2, last_eviction=note, **shared
        ),
        # It was suspended and resumed since.
        builders.workload("huge", id=HUGE, phase=Phase.PENDING, spec=asking(64), run=2, last_eviction=note, **shared),
        builders.pod(
            "holds-0-0",
            id=POD,
            workload_id=HOLDS,
            role="worker",
            phase=PodPhase.RUNNING,
            node="alpha",
            node_pool="default",
            cpu_milli=3500,
            created_at=START,
            started_at=START,
        ),
    )
    return api


def test_who_holds_what_is_waited_for(filled: ApiServer) -> None:
    told = filled.get(f"/api/v1/workloads/{WAITS}/explanation")
    waiting = told["waiting"]
    assert waiting["reason"]["code"] == "NoNodeFits"
    assert waiting["message"].startswith("Waiting for ")
    assert " held by holds (" in waiting["headline"]
    (holder,) = waiting["holders"]
    assert (holder["workload"], holder["nodes"], holder["holds"]["cpu"]) == ("holds", ["alpha"], 3500)
    assert holder["since"] == "2023-11-14T22:13:20.000Z"
    assert waiting["remedies"] == ["Wait for holds to finish."]
    owners = {(owner["type"], owner["name"]): owner for owner in waiting["owners"]}
    assert owners["PROJECT", "default"]["allocated"]["cpu"] == 3500
    assert owners["DEPARTMENT", "default"]["quota"]["cpu"] == -1


def test_what_can_never_fit_says_so(filled: ApiServer) -> None:
    waiting = filled.get(f"/api/v1/workloads/{HUGE}/explanation")["waiting"]
    assert waiting["reason"]["code"] == "NeverFits"
    assert waiting["remedies"] == ["Request at most 4 CPU cores per pod, as alpha has; or add a larger node."]
    assert waiting["holders"] == []


def test_the_smallest_changes_that_start_it(filled: ApiServer) -> None:
    answer = filled.get(f"/api/v1/workloads/{WAITS}/why")
    assert (answer["workload"], answer["status"]) == ("waits", "waits")
    best = {change["family"]: change for change in reversed(answer["changes"])}
    assert best["ends"]["message"] == "Wait until holds ends"
    assert best["cpuMilli"]["message"] == "Request 0.5 CPU cores instead of 1"
    assert best["cpuMilli"]["changes"] == [
        {"change": "request", "workload": "default/waits", "amount": "cpuMilli", "value": 500.0}
    ]
    assert answer["revision"] > 0
    assert answer["assumptions"]
    assert filled.get(f"/api/v1/workloads/{WAITS}/why") == answer
    never = filled.get(f"/api/v1/workloads/{HUGE}/why")
    assert (never["status"], never["message"][:15]) == ("never", "Can never start")
    assert filled.get(f"/api/v1/workloads/{HOLDS}/why")["status"] == "notWaiting"


def test_what_runs_waits_for_nothing(filled: ApiServer) -> None:
    assert "waiting" not in filled.get(f"/api/v1/workloads/{HOLDS}/explanation")


def test_waiting_is_left_out_on_request(filled: ApiServer) -> None:
    assert "waiting" not in filled.get(f"/api/v1/workloads/{WAITS}/explanation?waiting=false")


def test_the_last_eviction_is_shown(filled: ApiServer) -> None:
    told = filled.get(f"/api/v1/workloads/{WAITS}/explanation")
    assert told["preemptions"] == 2
    assert told["lastEviction"]["rule"] == "reclaimed"
    never = filled.get(f"/api/v1/workloads/{HUGE}/explanation")
    assert never["preemptions"] == 0
    listed = {one["id"]: one.get("evictedAt") for one in filled.get("/api/v1/workloads")["workloads"]}
    assert listed == {WAITS: "2023-11-14T22:13:20.000Z", HUGE: None, HOLDS: None}
    assert "lastEviction" not in filled.get(f"/api/v1/workloads/{HOLDS}/explanation")


def test_a_snapshot_can_be_read_and_decided_on(filled: ApiServer) -> None:
    answer = filled.call("GET", "/api/v1/scheduling/snapshot")
    assert answer.status == 200, answer
    assert answer.body == filled.call("GET", "/api/v1/scheduling/snapshot").body
    decisions = decide(read_snapshot(answer.body))
    assert decisions.binds == ()
    assert {pending.tasks[0].split("/")[0] for pending in decisions.pending} == {WAITS, HUGE}
    assert filled.call("GET", "/api/v1/scheduling/snapshot", token="").status != 200


def test_workloads_of_projects_that_the_caller_may_not_see_are_not_named(filled: ApiServer) -> None:
    made = filled.call(
        "POST", "/api/v1/org-unit/projects", {"name": "apart", "clusterId": filled.cluster_id, "resources": []}
    )
    assert made.status == 201, made
    shared: dict[str, Any] = {"cluster_id": filled.cluster_id, "created_at": START, "phase_updated_at": START}
    apart = {"project_id": made.json["id"], "project_name": "apart"}
    filled.put(builders.workload("outside", id=APART, phase=Phase.PENDING, spec=asking(1), **apart, **shared))
    ada = Person(filled, "ada@example.com")
    ada.may(RESEARCHER, "project", made.json["id"])
    told = ada.call("GET", f"/api/v1/workloads/{APART}/explanation")
    assert told.status == 200, told
    (holder,) = told.json["waiting"]["holders"]
    assert (holder["workload"], holder["project"]) == ("another project's workload", "another project")
    assert holder["workloadId"] is None
    assert holder["holds"]["cpu"] == 3500
    assert told.json["waiting"]["remedies"] == ["Wait for another project's workload to finish."]
    assert b"holds-0-0" not in told.body
    assert HOLDS.encode() not in told.body
    why = ada.call("GET", f"/api/v1/workloads/{APART}/why")
    assert [change["ends"] for change in why.json["changes"] if change["family"] == "ends"] == [{"hidden": 1}]
    assert b"holds" not in why.body
    (seen,) = filled.get(f"/api/v1/workloads/{APART}/explanation")["waiting"]["holders"]
    assert (seen["workload"], seen["workloadId"]) == ("holds", HOLDS)


def test_what_waits_with_a_part_of_its_pods_does_not_wait_for_itself(filled: ApiServer) -> None:
    spec = {"image": "x", "compute": {"cpuCoreRequest": 0.4}, "parallelism": 3, "completions": 3}
    shared: dict[str, Any] = {"cluster_id": filled.cluster_id, "created_at": START, "phase_updated_at": START}
    own: dict[str, Any] = {"workload_id": PARTLY, "role": "worker", "node": "alpha", "node_pool": "default"}
    filled.put(
        builders.workload(
            "partly", id=PARTLY, phase=Phase.RUNNING, spec=msgspec.Raw(msgspec.json.encode(spec)), **shared
        ),
        builders.pod("partly-0-0", phase=PodPhase.RUNNING, cpu_milli=400, created_at=START, **own),
    )
    waiting = filled.get(f"/api/v1/workloads/{PARTLY}/explanation")["waiting"]
    assert {holder["workload"] for holder in waiting["holders"]} == {"holds", "partly"}
    assert waiting["remedies"] == ["Wait for holds to finish."]


def create(api: ApiServer, name: str, query: str = "?mustFit=true", **spec: Any) -> tuple[int, str]:
    """The status of a submission, and the details of its refusal."""
    body = {"name": name, "projectId": "1", "clusterId": api.cluster_id, "spec": {"image": "x", **spec}}
    answer = api.call("POST", f"/api/v1/workloads/trainings{query}", body)
    return answer.status, answer.json.get("details", "")


def test_what_can_never_start_is_refused_if_the_caller_asks_for_that(filled: ApiServer) -> None:
    huge: dict[str, Any] = {"compute": {"cpuCoreRequest": 64}}
    assert create(filled, "vast", **huge) == (
        400,
        "Can never start: it asks for 64 CPU cores, the largest node (alpha) has 4. "
        "The largest request that fits: 4 CPU cores per pod, as alpha has.",
    )
    assert create(filled, "vast", "", **huge) == (202, "")


def test_what_only_waits_for_others_is_accepted(filled: ApiServer) -> None:
    assert create(filled, "waiting", compute={"cpuCoreRequest": 4}) == (202, "")
    assert create(filled, "many", compute={"cpuCoreRequest": 4}, parallelism=9, completions=9) == (202, "")


def test_a_node_that_is_not_ready_may_come_back(filled: ApiServer) -> None:
    nodes = filled.context.directory.nodes
    ((key, node),) = nodes.items()
    nodes[key] = msgspec.structs.replace(node, ready=False, cordoned=True)
    try:
        assert create(filled, "patient", compute={"cpuCoreRequest": 4}) == (202, "")
    finally:
        nodes[key] = node


def test_a_request_for_more_memory_than_a_gpu_has_names_that_amount(filled: ApiServer) -> None:
    shared: dict[str, Any] = {"cluster_id": filled.cluster_id, "created_at": START, "phase_updated_at": START}
    asked = {"gpuDevicesRequest": 1, "gpuRequestType": "memory", "gpuMemoryRequest": "100G"}
    spec = msgspec.Raw(msgspec.json.encode({"image": "x", "compute": asked}))
    node = Node(id="b", name="beta", cpu_milli=4000, memory_bytes=2**33, gpus=(GpuDevice(index=0, memory_mib=40_000),))
    filled.put(builders.workload("wide", id=WIDE, phase=Phase.PENDING, spec=spec, **shared))
    filled.do(filled.context.store.commit(Change(writes=(Put(NODES, node),))))
    filled.do(filled.context.directory.load())
    waiting = filled.get(f"/api/v1/workloads/{WIDE}/explanation")["waiting"]
    assert waiting["reason"]["code"] == "NeverFits"
    assert waiting["remedies"][0].startswith("Request at most 40000 MiB of GPU memory")
