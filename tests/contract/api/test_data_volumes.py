"""Data volumes as the contract has them: shared with a scope, usable there, gone when nothing mounts them."""

from collections.abc import Callable

from tests.contract.api.agreement import find_disagreements
from tests.contract.api.api_server import ApiServer
from tests.contract.api.test_people import RESEARCHER, Person

BASE = "/api/v1/datavolumes"
DATA_VOLUME_ADMINISTRATOR = 14


def test_the_life_of_a_data_volume(make_api: Callable[..., ApiServer]) -> None:
    api = make_api()
    body = {"name": "second", "clusterId": api.cluster_id, "resources": []}
    other = api.call("POST", "/api/v1/org-unit/projects", body).json["id"]
    input = {"name": "corpus", "originPvcName": "data", "projectId": "1"}
    refused = api.call("POST", BASE, input)
    assert refused.status == 400, refused
    assert "has no claim 'data'" in refused.json["details"]
    claim = {"name": "data", "projectId": "1", "size": "1G"}
    assert api.call("POST", "/api/v1/persistent-volume-claims", claim).status == 201
    made = api.call("POST", BASE, input)
    assert made.status == 201, made
    assert find_disagreements("post", BASE, 201, made.json) == []
    assert api.call("POST", BASE, input).status == 400
    assert api.call("GET", f"{BASE}/name-availability?dataName=corpus").status == 409
    assert api.call("GET", f"{BASE}/name-availability?dataName=free").status == 204
    one = f"{BASE}/{made.json['id']}"
    assert api.get(one) == made.json
    assert find_disagreements("get", f"{BASE}/{{datavolumeId}}", 200, made.json) == []
    listed = api.get(f"{BASE}?requestType=Originated")
    assert find_disagreements("get", BASE, 200, listed) == []
    usable = f"{BASE}?requestType=UsableInProject&usableInProjectId="
    assert [len(api.get(f"{usable}{id}")["datavolumes"]) for id in ("1", other)] == [1, 0]
    mount = {"dataVolume": [{"id": made.json["id"], "mountPath": "/corpus"}]}
    training = api.training("reads", projectId=other, spec={"image": "python:3", "storage": mount})
    assert api.call("POST", "/api/v1/workloads/trainings", training).status == 400
    shared = api.call("PATCH", f"{one}/sharedScopes", {"add": [{"scopeId": other, "scopeType": "project"}]})
    assert shared.status == 200, shared
    assert find_disagreements("patch", f"{BASE}/{{datavolumeId}}/sharedScopes", 200, shared.json) == []
    assert api.get(f"{one}/sharedScopes") == shared.json
    assert [len(api.get(f"{usable}{id}")["datavolumes"]) for id in ("1", other)] == [1, 1]
    assert api.call("POST", "/api/v1/workloads/trainings", training).status == 202
    ada = Person(api, "ada@example.com")
    ada.may(RESEARCHER, "project", other)
    assert ada.get(one)["name"] == "corpus"
    assert ada.call("DELETE", one).status == 404
    changed = api.call("PATCH", one, {"description": "texts"})
    assert changed.json["description"] == "texts"
    assert find_disagreements("patch", f"{BASE}/{{datavolumeId}}", 200, changed.json) == []
    owner = Person(api, "eve@example.com")
    owner.may(DATA_VOLUME_ADMINISTRATOR, "project", "1")
    refusals = [person.call("DELETE", one) for person in (owner, api)]
    assert [refused.status for refused in refusals] == [412, 412]
    assert "corpus is used by 1 workload that you may not see" in refusals[0].json["details"]
    assert "corpus is used by reads" in refusals[1].json["details"]
    removed = api.call("PATCH", f"{one}/sharedScopes", {"remove": [{"scopeId": other, "scopeType": "project"}]})
    assert removed.json == []
    assert ada.call("GET", one).status == 404
    assert api.get(f"{BASE}/count?requestType=Originated") == {"count": 1}
