"""Suggestions for what waits, and the times of a plan, over HTTP. One test, because it needs the node to itself."""

from typing import Any

import msgspec

from fairlead.model.records.phase import Phase, PodPhase
from tests import builders
from tests.contract.api.api_server import START, ApiServer
from tests.contract.api.test_plans import body

FILLS = "11111111-1111-4111-8111-11111111cccc"
FILLS_POD = "44444444-4444-4444-8444-44444444cccc"
WANTS = "22222222-2222-4222-8222-22222222cccc"


def test_suggestions_and_times_of_what_waits(api: ApiServer) -> None:
    """A node of 4 cores that one workload fills for 600 s, and one that waits for it."""
    shared: dict[str, Any] = {"cluster_id": api.cluster_id, "created_at": START, "phase_updated_at": START}
    held: dict[str, Any] = {"phase": PodPhase.RUNNING, "node": "alpha", "node_pool": "default", "cpu_milli": 4000}
    declared = {"annotations": [{"name": "fairlead/expected-runtime", "value": "600"}]}
    fills = msgspec.Raw(msgspec.json.encode({"image": "x", "compute": {"cpuCoreRequest": 4}, **declared}))
    wants = msgspec.Raw(msgspec.json.encode({"image": "x", "compute": {"cpuCoreRequest": 2}}))
    api.put(
        builders.workload("fills", id=FILLS, phase=Phase.RUNNING, priority=90, spec=fills, **shared),
        builders.pod("fills-0-0", id=FILLS_POD, workload_id=FILLS, role="worker", created_at=START, **held),
        builders.workload("wants", id=WANTS, phase=Phase.PENDING, priority=50, spec=wants, **shared),
    )
    path = "/api/v1/scheduling/suggestions"
    (suggestion,) = api.get(f"{path}?workloadIds={WANTS},{FILLS},nobody")["suggestions"]
    assert suggestion["workloadId"] == WANTS
    whole = api.get(f"/api/v1/workloads/{WANTS}/why")["changes"][0]
    assert suggestion["message"].lower().startswith(whole["message"].lower())
    assert api.get(f"{path}?workloadIds=nobody") == {"suggestions": []}
    assert api.call("GET", f"{path}?workloadIds={','.join(map(str, range(51)))}").status == 400
    assert api.get("/api/v1/scheduling/questions") == {"count": 0}
    request = body(api, 2, "timed")
    plan = api.call("POST", "/api/v1/workloads/trainings?dryRun=plan", request).json
    assert (plan["status"], plan["timing"]["p50"] - plan["now"]) == ("waits", 600)
    quick = api.call("POST", "/api/v1/workloads/trainings?dryRun=plan&times=false", request).json
    assert (quick["id"], quick["timing"]) == (plan["id"], None)
