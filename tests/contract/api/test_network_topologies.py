"""Network topologies: made, given to node pools, seen by the scheduler, and taken away again."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from fairlead.model.records.phase import Phase
from fairlead.scheduling import TopologyConstraint, read_snapshot
from tests import builders
from tests.contract.api.api_server import ApiServer
from tests.contract.api.test_people import RESEARCHER, Person

PATH = "/api/v1/network-topologies"
LEVELS = ["example.com/block", "example.com/rack"]


@pytest.fixture
def api(make_api: Callable[..., ApiServer]) -> ApiServer:
    return make_api()


def body(api: ApiServer, **members: Any) -> dict[str, Any]:
    return {
        "name": "fabric",
        "clusterId": api.cluster_id,
        "levels": ["example.com/block", "example.com/rack"],
    } | members


def test_a_topology_is_made_given_to_a_pool_and_deleted(api: ApiServer) -> None:
    made = api.call("POST", PATH, body(api))
    assert made.status == 201, made
    id = made.json["id"]
    assert (made.json["levels"], made.json["nodePools"]) == (LEVELS, [])
    assert [one["name"] for one in api.get(PATH)["networkTopologies"]] == ["fabric"]
    pool = api.call("PATCH", "/api/v1/node-pools/1", {"networkTopologyId": id})
    assert (pool.status, pool.json["networkTopologyId"]) == (200, id), pool
    assert api.get(f"{PATH}/{id}")["nodePools"] == ["default"]
    refused = api.call("DELETE", f"{PATH}/{id}")
    assert refused.status == 400, refused
    assert "is used by node pool default" in refused.json["details"]
    assert api.call("PATCH", "/api/v1/node-pools/1", {"networkTopologyId": ""}).status == 200
    assert api.call("DELETE", f"{PATH}/{id}").status == 204
    assert api.call("GET", f"{PATH}/{id}").status == 404
    assert api.call("DELETE", f"{PATH}/{id}").status == 404


@pytest.mark.parametrize(
    ("members", "want"),
    [
        pytest.param({"levels": []}, "levels", id="no level"),
        pytest.param({"levels": ["rack", "rack"]}, "levels[1]", id="a level twice"),
        pytest.param({"levels": ["a b"]}, "levels[0]", id="no label"),
        pytest.param({"levels": ["kubernetes.io/hostname", "rack"]}, "levels[0]", id="machines above racks"),
        pytest.param({"name": "Fabric"}, "name", id="a name with capitals"),
        pytest.param({"clusterId": "55555555-5555-4555-8555-555555555555"}, "clusterId", id="another cluster"),
    ],
)
def test_a_topology_that_breaks_rules_is_400(api: ApiServer, members: dict[str, Any], want: str) -> None:
    answer = api.call("POST", PATH, body(api, **members))
    assert answer.status == 400, answer
    assert want in answer.body.decode()


def test_a_name_is_given_once(api: ApiServer) -> None:
    assert api.call("POST", PATH, body(api)).status == 201
    again = api.call("POST", PATH, body(api))
    assert again.status == 400, again
    assert "a network topology named fabric already exists" in again.body.decode()


def test_topologies_are_for_administrators(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    ada.may(RESEARCHER, "project", "1")
    assert ada.call("GET", PATH).status == 403
    assert ada.call("POST", PATH, body(api)).status == 403


def test_gangs_in_such_a_pool_prefer_its_lowest_level(api: ApiServer) -> None:
    id = api.call("POST", PATH, body(api)).json["id"]
    assert api.call("PATCH", "/api/v1/node-pools/1", {"networkTopologyId": id}).status == 200
    asked = {"image": "python:3", "distributedFramework": "PyTorch", "numWorkers": 2}
    chosen = [
        {"name": "kai.scheduler/topology", "value": "fabric"},
        {"name": "kai.scheduler/topology-required-placement", "value": "example.com/block"},
    ]
    for kind, name, spec in (
        ("distributed-training", "near", asked),
        ("distributed-training", "chosen", asked | {"annotations": chosen}),
        ("training", "alone", {"image": "python:3"}),
    ):
        stored = msgspec.Raw(msgspec.json.encode(spec))
        api.put(builders.workload(name, kind=kind, phase=Phase.PENDING, spec=stored, cluster_id=api.cluster_id))
    snapshot = read_snapshot(api.call("GET", "/api/v1/scheduling/snapshot").body)
    assert [(topology.name, topology.levels[-1]) for topology in snapshot.topologies] == [
        ("fabric", "example.com/rack")
    ]
    assert {job.name: job.topology for job in snapshot.jobs} == {
        "near": TopologyConstraint(topology="fabric", preferred="example.com/rack"),
        "chosen": TopologyConstraint(topology="fabric", required="example.com/block"),
        "alone": None,
    }
