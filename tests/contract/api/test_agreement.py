"""Every read answers what the published contract says, member by member, for workloads in various states."""

import re
from typing import Any

import msgspec
import pytest

from fairlead.control.context import EngineView
from fairlead.kinds.policies import POLICY_TYPES
from fairlead.model.records.event import Event
from fairlead.model.records.phase import DesiredPhase, Phase, PodPhase
from fairlead.model.records.workload import Condition, PendingMessage
from tests import builders
from tests.contract.api.agreement import find_disagreements, load_contract
from tests.contract.api.api_server import START, ApiServer

RUNNING = "11111111-1111-4111-8111-111111111111"
PENDING = "22222222-2222-4222-8222-222222222222"
DELETED = "33333333-3333-4333-8333-333333333333"
POD = "44444444-4444-4444-8444-444444444444"


def _event(workload_id: str, **members: Any) -> Event:
    given: dict[str, Any] = {
        "at": START,
        "subject": "workloads",
        "subject_id": workload_id,
        "project_id": "1",
        "reason": "Created",
    }
    return Event(**(given | members))


@pytest.fixture(scope="module")
def filled(api: ApiServer) -> ApiServer:
    """Three workloads as the loop would leave them: one runs, one waits, one was deleted."""
    spec = msgspec.Raw(
        b'{"image":"pytorch","command":"python","args":"a.py \'b c\'","compute":{"cpuCoreRequest":0.5,'
        b'"cpuMemoryRequest":"1G","gpuDevicesRequest":1,"gpuPortionRequest":0.5,"gpuRequestType":"portion"},'
        b'"environmentVariables":[{"name":"A","value":"1"}]}'
    )
    shared: dict[str, Any] = {
        "cluster_id": api.cluster_id,
        "created_at": START,
        "updated_at": START,
        "phase_updated_at": START,
        "priority": 40,
        "priority_class": "low",
        "category": "Train",
    }
    running = builders.workload(
        "running", id=RUNNING, phase=Phase.RUNNING, running_pods=1, spec=spec, started_at=START, **shared
    )
    pending = builders.workload(
        "pending",
        id=PENDING,
        phase=Phase.PENDING,
        phase_reason="OverLimit",
        phase_message="waits",
        pending_messages=(PendingMessage("default", "OverLimit", "over the limit"),),
        conditions=(Condition("NotEnforced", "True", "image", "not used", START),),
        **shared,
    )
    deleted = builders.workload(
        "deleted",
        id=DELETED,
        phase=Phase.DELETING,
        desired_phase=DesiredPhase.DELETED,
        deleted_at=START,
        gone=True,
        **shared,
    )
    pod = builders.pod(
        "running-0-0",
        id=POD,
        workload_id=RUNNING,
        phase=PodPhase.RUNNING,
        node="alpha",
        node_pool="default",
        cpu_milli=500,
        memory_bytes=10**9,
        gpu_devices=(0,),
        gpu_thousandths=500,
        created_at=START,
        started_at=START,
    )
    events = (
        _event(RUNNING, phase="Creating"),
        _event(RUNNING, reason="Started", pod_id=POD, pod_name="running-0-0", source="engine"),
        _event(RUNNING, phase="Running", message="1 pod running"),
    )
    api.put(running, pending, deleted, pod, events=events)
    return api


#: What only a user has, not the application that asks here; `test_people.py` reads it.
OWNED = {
    "/api/v1/access-keys/{accessKeyId}",
    # `test_templates.py` and `test_data_volumes.py` read these.
    "/api/v1/datavolumes/name-availability",
    "/api/v1/datavolumes/{datavolumeId}",
    "/api/v1/datavolumes/{datavolumeId}/sharedScopes",
    "/api/v1/workload-templates/name-availability",
    "/api/v1/workload-templates/{templateId}",
    "/api/v1/workload-templates/trainings/{templateId}",
    # `test_kubernetes_manifests.py` reads this.
    "/api/v2/workloads/{WorkloadV2Id}",
    # `test_audit.py` reads these.
    "/api/v1/audit/log",
    "/api/v1/audit/log/file",
    # `test_policies.py` reads those of a scope.
    *(f"/api/v2/policy/{type}" for type in POLICY_TYPES),
}
READS = [
    ("get", path)
    for name in ("workloads-2.24.contract.json", "neighbours-2.24.contract.json")
    for path, operations in load_contract(name)["paths"].items()
    if "get" in operations and "distributed" not in path and path not in OWNED and "{AssetId}" not in path
]


def _values(api: ApiServer) -> dict[str, str]:
    return {
        **dict.fromkeys(("clusterUuid", "clusterId", "cluster_uuid", "uuid"), api.cluster_id),
        "departmentId": "1",
        "projectId": "1",
        "nodepoolId": "1",
        "workloadTypeId": api.get("/api/v1/workload-types")["types"][0]["id"],
        "userId": api.get("/api/v1/users")[0]["id"],
        "serviceAccountId": api.get("/api/v1/service-accounts")[0]["id"],
        "appId": api.get("/api/v1/apps")[0]["id"],
        "accessRuleId": "1",
        "roleIdPath": "1",
        "id": "1",
        "settingKey": "policies",
        "categoryId": api.get("/api/v1/workload-categories")["categories"][0]["id"],
    }


@pytest.mark.parametrize(("method", "path"), READS, ids=[path for _, path in READS])
@pytest.mark.parametrize("workload_id", [RUNNING, PENDING, DELETED], ids=["running", "pending", "deleted"])
def test_reads_agree_with_the_contract(filled: ApiServer, method: str, path: str, workload_id: str) -> None:
    values = _values(filled) | {"workloadId": workload_id}
    url = re.sub(r"\{(\w+)\}", lambda match: values[match[1]], path)
    answer = filled.call(method.upper(), url)
    assert answer.status == 200, answer
    assert find_disagreements(method, path, 200, answer.json) == []


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/workloads/{workloadId}",
        "/api/v1/workloads/{workloadId}/pods",
        "/api/v1/workloads/{workloadId}/events",
        "/api/v1/workloads/{workloadId}/history",
        "/api/v1/workloads/trainings/{workloadId}",
        "/api/v1/clusters/{clusterUuid}",
        "/api/v1/org-unit/projects/{projectId}",
        "/api/v1/org-unit/departments/{departmentId}",
        "/api/v1/node-pools/{nodepoolId}",
        "/api/v1/workload-types/{workloadTypeId}",
        "/api/v1/workload-categories/{categoryId}",
    ],
)
@pytest.mark.parametrize("id", ["55555555-5555-4555-8555-555555555555", "no-id", "%00", "a%2Fb"])
def test_an_unknown_id_is_404_in_the_one_error_shape(filled: ApiServer, path: str, id: str) -> None:
    answer = filled.call("GET", re.sub(r"\{\w+\}", id, path))
    assert answer.status == 404, answer
    assert answer.json["message"] == "Resource id not found."
    if id != "a%2Fb":
        assert find_disagreements("get", path, 404, answer.json) == []


def test_a_running_workload_shows_what_it_holds_and_how_long(filled: ApiServer) -> None:
    filled.clock.now = START + 90_500
    try:
        shown = filled.get(f"/api/v1/workloads/{RUNNING}")
    finally:
        filled.clock.now = START
    assert shown["totalRunningTimeSeconds"] == 90
    assert shown["totalPendingTimeSeconds"] == 0
    assert shown["allocatedResources"] == {"gpu": 0.5, "cpu": 0.5, "cpuMemory": "1000000000"}
    assert shown["currentNodePools"] == ["default"]
    assert shown["command"] == "python"
    assert shown["arguments"] == "a.py 'b c'"
    assert shown["environmentVariables"] == {"A": "1"}
    assert shown["actionsSupport"] == {"delete": True, "suspend": True}
    assert shown["namespace"] == "runai-default"


def test_pending_messages_are_shown_for_a_single_workload_only(filled: ApiServer) -> None:
    one = filled.get(f"/api/v1/workloads/{PENDING}")
    assert one["pendingSchedulingMessages"] == [
        {
            "nodePool": "default",
            "phaseReason": "OverLimit",
            "reason": "OverLimit",
            "orgType": "PROJECT",
            "userMessage": "over the limit",
        }
    ]
    listed = filled.get("/api/v1/workloads?filterBy=name==pending")["workloads"]
    assert [workload["id"] for workload in listed] == [PENDING]
    assert "pendingSchedulingMessages" not in listed[0]


def test_deleted_workloads_are_listed_only_when_asked_for(filled: ApiServer) -> None:
    present = {workload["name"] for workload in filled.get("/api/v1/workloads")["workloads"]}
    gone = {workload["name"] for workload in filled.get("/api/v1/workloads?deleted=true")["workloads"]}
    assert present == {"running", "pending"}
    assert gone == {"deleted"}


def test_history_distinguishes_changes_of_phase_from_events(filled: ApiServer) -> None:
    records = filled.get(f"/api/v1/workloads/{RUNNING}/history")["records"]
    assert [record["meta"]["type"] for record in records] == ["PhaseUpdate", "Event", "PhaseUpdate"]
    assert records[1]["spec"]["event"]["involvedObject"]["uid"] == POD
    newest_first = filled.get(f"/api/v1/workloads/{RUNNING}/events?limit=2")
    assert [event["message"] for event in newest_first["events"]] == ["1 pod running", ""]
    assert newest_first["next"] == 2


def test_a_cluster_that_cannot_be_reached_is_disconnected(filled: ApiServer) -> None:
    path = f"/api/v1/clusters/{filled.cluster_id}"
    assert filled.call("GET", path).json["status"] == {"state": "Connected"}
    filled.context.engine = EngineView(unreachable_reason=lambda: "nobody answers")
    try:
        answer = filled.call("GET", path)
    finally:
        filled.context.engine = EngineView()
    assert (answer.json["status"], answer.json["lastLiveness"]) == (
        {"state": "Disconnected", "reason": "nobody answers"},
        None,
    )
    assert find_disagreements("get", "/api/v1/clusters/{clusterUuid}", answer.status, answer.json) == []


def test_usage_of_projects_comes_from_running_pods(filled: ApiServer) -> None:
    project = filled.get("/api/v1/org-unit/projects/1")
    assert project["status"]["quotaStatus"]["allocated"]["gpu"] == 0.5
    assert project["status"]["nodePoolQuotaStatuses"][0]["allocated"]["cpu"] == 500
