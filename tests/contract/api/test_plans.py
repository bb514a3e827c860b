"""Plans over HTTP: nothing is created, and a submission is refused if its plan no longer holds."""

from typing import Any

import msgspec

from fairlead.model.records.phase import Phase, PodPhase
from tests import builders
from tests.contract.api.api_server import START, ApiServer

POD = "44444444-4444-4444-8444-44444444aaaa"
HOLDS = "11111111-1111-4111-8111-11111111aaaa"


def body(api: ApiServer, cores: float, name: str = "planned") -> dict[str, Any]:
    spec = {"image": "x", "compute": {"cpuCoreRequest": cores}}
    return {"name": name, "projectId": "1", "clusterId": api.cluster_id, "spec": spec}


def test_a_plan_creates_nothing_and_holds_until_something_changes(api: ApiServer) -> None:
    path = "/api/v1/workloads/trainings"
    before = api.get("/api/v1/workloads/count")
    answer = api.call("POST", f"{path}?dryRun=plan", body(api, 1))
    assert answer.status == 200, answer
    plan = answer.json
    assert (plan["status"], plan["message"], plan["workload"]) == ("starts", "Starts 1 pod on alpha.", "planned")
    assert plan["revision"] > 0
    assert api.get("/api/v1/workloads/count") == before
    spec = msgspec.Raw(msgspec.json.encode({"image": "x", "compute": {"cpuCoreRequest": 3.5}}))
    shared: dict[str, Any] = {"cluster_id": api.cluster_id, "created_at": START, "phase_updated_at": START}
    held: dict[str, Any] = {"phase": PodPhase.RUNNING, "node": "alpha", "node_pool": "default", "cpu_milli": 3500}
    api.put(
        builders.workload("holder", id=HOLDS, phase=Phase.RUNNING, spec=spec, **shared),
        builders.pod("holder-0-0", id=POD, workload_id=HOLDS, role="worker", created_at=START, **held),
    )
    refused = api.call("POST", f"{path}?planId={plan['id']}", body(api, 1))
    assert refused.status == 409, refused
    assert refused.json["message"] == "The plan no longer holds"
    assert "It would now evict holder instead of nobody." in refused.json["details"]
    again = api.call("POST", f"{path}?dryRun=plan", body(api, 1)).json
    assert [ref["workload"] for ref in again["effects"]["evicted"]["workloads"]] == ["holder"]
    assert api.call("POST", f"{path}?planId={again['id']}", body(api, 1)).status == 202


def test_a_plan_that_does_not_exist(api: ApiServer) -> None:
    refused = api.call("POST", "/api/v1/workloads/trainings?planId=0123", body(api, 1, "unplanned"))
    assert refused.status == 409
    assert "There is no plan '0123' of yours" in refused.body.decode()


def test_an_invalid_request_has_no_plan(api: ApiServer) -> None:
    refused = api.call("POST", "/api/v1/workloads/trainings?dryRun=plan", body(api, -1))
    assert refused.status == 400
    odd = api.call("POST", "/api/v1/workloads/trainings?dryRun=perhaps", body(api, 1, "odd"))
    assert (odd.status, odd.json["message"]) == (400, "dryRun: must be true, false or plan")


def test_what_if_changes_nothing(api: ApiServer) -> None:
    path = "/api/v1/scheduling/what-if"
    answer = api.call("POST", path, {"changes": [{"change": "addNodes", "like": "alpha", "count": 1}]})
    assert answer.status == 200, answer
    assert answer.json["changes"] == ["Add 1 node like alpha (0 GPUs each)"]
    assert answer.json["estimates"] is None
    timed = api.call("POST", f"{path}?times=true", {"changes": [{"change": "addNodes", "like": "alpha", "count": 1}]})
    assert timed.json["estimates"] == {"starts": [], "leftOut": 0, "hidden": 0, "samples": 5}
    unknown = api.call("POST", path, {"changes": [{"change": "node", "node": "beta", "action": "drain"}]})
    assert (unknown.status, unknown.json["details"]) == (400, "There is no node 'beta'.")
    nobody = api.call("POST", path, {"changes": [{"change": "removeWorkload", "workload": "nobody"}]})
    assert nobody.status == 404, nobody
    assert "has no workload 'nobody'" in nobody.body.decode()
    wrong = api.call("POST", path, {"changes": [{"change": "paint", "node": "alpha"}]})
    assert wrong.status == 400


def test_a_workload_can_be_created_suspended(api: ApiServer) -> None:
    path = "/api/v1/workloads/trainings"
    plan = api.call("POST", f"{path}?dryRun=plan&suspended=true", body(api, 1, "paused")).json
    assert plan["message"] == "It is submitted suspended, so nothing starts."
    made = api.call("POST", f"{path}?suspended=true", body(api, 1, "paused"))
    assert (made.status, made.json["desiredPhase"]) == (202, "Stopped")
    runs = api.call("POST", f"{path}?suspended=false", body(api, 1, "runs"))
    assert (runs.status, runs.json["desiredPhase"]) == (202, "Running")
    served = body(api, 1, "served") | {"spec": {"image": "x", "servingPort": {"container": 80}}}
    refused = api.call("POST", "/api/v1/workloads/inferences?suspended=true", served)
    assert refused.status == 400, refused
    assert "an inference cannot be suspended" in refused.json["message"]
