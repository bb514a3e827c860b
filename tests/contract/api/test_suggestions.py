"""Suggestions for what waits, and the times of a plan, over HTTP. One test, because it needs the node to itself."""

from tests.contract.api.api_server import ApiServer
from tests.contract.api.busy_node import FILLS, WAITS, fill_node
from tests.contract.api.test_plans import body


def test_suggestions_and_times_of_what_waits(api: ApiServer) -> None:
    fill_node(api)
    path = "/api/v1/scheduling/suggestions"
    (suggestion,) = api.get(f"{path}?workloadIds={WAITS},{FILLS},nobody")["suggestions"]
    assert suggestion["workloadId"] == WAITS
    whole = api.get(f"/api/v1/workloads/{WAITS}/why")["changes"][0]
    assert suggestion["message"].lower().startswith(whole["message"].lower())
    assert api.get(f"{path}?workloadIds=nobody") == {"suggestions": []}
    assert api.call("GET", f"{path}?workloadIds={','.join(map(str, range(51)))}").status == 400
    assert api.get("/api/v1/scheduling/questions") == {"count": 0}
    request = body(api, 2, "timed")
    plan = api.call("POST", "/api/v1/workloads/trainings?dryRun=plan", request).json
    assert (plan["status"], plan["timing"]["p50"] - plan["now"]) == ("waits", 600)
    quick = api.call("POST", "/api/v1/workloads/trainings?dryRun=plan&times=false", request).json
    assert (quick["id"], quick["timing"]) == (plan["id"], None)
