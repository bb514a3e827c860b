"""The golden requests, the older page's own example among them, go in over HTTP and come back as they were sent."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.contract.api.agreement import find_disagreements
from tests.contract.api.api_server import ApiServer
from tests.contract.api.provided import provide

REQUESTS = sorted((Path(__file__).parents[2] / "golden" / "training").glob("*.request.json"))
CREATE = "/api/v1/workloads/trainings"


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.name.partition(".")[0])
def test_a_golden_request(api: ApiServer, path: Path) -> None:
    sent: dict[str, Any] = json.loads(path.read_text())
    is_older = isinstance(sent["projectId"], int)
    if not is_older:
        sent |= {"projectId": "1", "clusterId": api.cluster_id}
        provide(api, sent["spec"])
    answer = api.call("POST", CREATE, sent)
    assert answer.status == 202, answer
    created = answer.json
    # What the older dialect forgives comes back as it was sent, beyond today's bounds but in today's types.
    assert is_older or find_disagreements("post", CREATE, 202, created) == []
    assert isinstance(created["projectId"], str)
    shown = api.get(f"{CREATE}/{created['workloadId']}")
    assert shown == created
    if not is_older:
        assert shown["spec"] == sent["spec"]
    for part in ("", "/pods", "/events", "/history", "/explanation"):
        api.get(f"/api/v1/workloads/{created['workloadId']}{part}")
    assert created["workloadId"] in [one["id"] for one in api.get("/api/v1/workloads")["workloads"]]
