"""Filters, sorting and pages of the workload list, with every field of the contract's pattern."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from fairlead.model.records.organization import GpuDevice, Node
from fairlead.model.records.phase import Phase
from fairlead.store.base import Change, Delete, Put
from fairlead.store.collections import NODES, WORKLOADS
from tests import builders
from tests.contract.api.agreement import load_contract
from tests.contract.api.api_server import START, ApiServer

NAMES = ["alpha", "beta", "gamma", "delta"]
_PATTERN = load_contract("neighbours-2.24.contract.json")["components"]["parameters"]["WorkloadsFilter"]["schema"]
FIELDS = re.match(r"\^\(([^)]+)\)", _PATTERN["items"]["pattern"])[1].split("|")  # type: ignore[index]  # it matches


@pytest.fixture(scope="module")
def filled(api: ApiServer) -> ApiServer:
    for number, name in enumerate(NAMES):
        api.put(
            builders.workload(
                name,
                id=f"00000000-0000-4000-8000-00000000000{number}",
                cluster_id=api.cluster_id,
                created_at=START + number * 1000,
                phase=Phase.RUNNING if number % 2 else Phase.PENDING,
                priority=number * 10,
                priority_class="low" if number < 2 else "high",
                completed_at=START + 5000 if name == "delta" else None,
                created_by=f"{name}@example.com",
                allocated_gpu=number / 2,
            )
        )
    return api


def names(api: ApiServer, query: str) -> list[str]:
    return [workload["name"] for workload in api.get(f"/api/v1/workloads?{query}")["workloads"]]


@pytest.mark.parametrize(
    ("filters", "want_names"),
    [
        ("name==beta", ["beta"]),
        ("name!=beta", ["alpha", "gamma", "delta"]),
        ("name=@LPH", ["alpha"]),
        ("name!@a", []),
        ("name=^ga", ["gamma"]),
        ("name=$ta", ["beta", "delta"]),
        ("type==Training", NAMES),
        ("type!=Training", []),
        ("phase==Running,name=^b", ["beta"]),
        ("priority>=20", ["gamma", "delta"]),
        ("priority<=9.5", ["alpha"]),
        ("priorityClassName==high", ["gamma", "delta"]),
        ("allocatedGPU==0.5", ["beta"]),
        ("completedAt>=2000-01-01T00:00:00Z", ["delta"]),
        ("completedAt!=2000-01-01T00:00:00Z", NAMES),
        ("createdAt<=2023-11-14T22:13:21.000Z", ["alpha", "beta"]),
        ("submittedBy=^gamma@", ["gamma"]),
        ("aiApplicationName==x", []),
        ("aiApplicationName!=x", NAMES),
        ("idleGpus>=0", []),
        ("name==a,b", []),
    ],
)
def test_filters(filled: ApiServer, filters: str, want_names: list[str]) -> None:
    assert names(filled, f"filterBy={quote(filters)}") == want_names
    # Clients differ in whether they encode the commas and operators of several filters.
    assert names(filled, f"filterBy={quote(filters, safe=',=@!^$<>')}") == want_names
    assert filled.get(f"/api/v1/workloads/count?filterBy={quote(filters)}") == {"count": len(want_names)}


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_of_the_contract_filters_and_sorts(filled: ApiServer, field: str) -> None:
    value = "2024-01-01T00:00:00Z" if field.endswith("At") else "1"
    for operator in ("==", "!=", "<=", ">="):
        filled.get(f"/api/v1/workloads?filterBy={quote(field + operator + value)}")
    assert sorted(names(filled, f"sortBy={field}&sortOrder=desc")) == sorted(NAMES)


@pytest.mark.parametrize(
    ("query", "want_details"),
    [
        ("filterBy=colour==red", "colour"),
        ("filterBy=name", "is not a filter"),
        ("filterBy=name=~x", "is not a filter"),
        ("filterBy=createdAt=@2024", "does not support =@"),
        ("filterBy=createdAt==yesterday", "ISO 8601"),
        ("filterBy=priority==high", "a number"),
        ("filterBy=priority==inf", "a number"),
        ("filterBy=name==x%00", "NUL"),
        ("sortBy=colour", "sortBy"),
        ("sortOrder=up", "sortOrder"),
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=ten", "limit"),
        ("offset=-1", "offset"),
        ("offset=99999999999999999999", "offset"),
        ("deleted=perhaps", "deleted"),
    ],
)
def test_what_cannot_be_asked_is_400_and_says_why(filled: ApiServer, query: str, want_details: str) -> None:
    answer = filled.call("GET", f"/api/v1/workloads?{query}")
    assert answer.status == 400, answer
    assert want_details in answer.json["details"]
    assert set(answer.json) == {"code", "message", "details"}


def test_every_bad_filter_is_named(filled: ApiServer) -> None:
    answer = filled.call("GET", "/api/v1/workloads?filterBy=colour==red,size==big,name==x")
    assert "colour" in answer.json["details"]
    assert "size" in answer.json["details"]


def test_sorting_and_pages(filled: ApiServer) -> None:
    assert names(filled, "sortBy=name") == ["alpha", "beta", "delta", "gamma"]
    assert names(filled, "sortBy=priority&sortOrder=desc") == ["delta", "gamma", "beta", "alpha"]
    first = filled.get("/api/v1/workloads?limit=3")
    assert [workload["name"] for workload in first["workloads"]] == ["alpha", "beta", "gamma"]
    assert first["next"] == 3
    last = filled.get(f"/api/v1/workloads?limit=3&offset={first['next']}")
    assert [workload["name"] for workload in last["workloads"]] == ["delta"]
    assert "next" not in last


def test_search_looks_into_names(filled: ApiServer) -> None:
    assert names(filled, "search=ELT") == ["delta"]
    assert names(filled, "search=100%25") == []


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ("/api/v1/org-unit/projects?filterBy=name==default", lambda body: len(body["projects"]) == 1),
        ("/api/v1/org-unit/projects?filterBy=parentName=^x", lambda body: body["projects"] == []),
        ("/api/v1/org-unit/projects?search=def", lambda body: len(body["projects"]) == 1),
        ("/api/v1/org-unit/departments/count", lambda body: body == {"count": 1}),
        ("/api/v1/nodes?filterBy=status==Ready", lambda body: [node["name"] for node in body["nodes"]] == ["alpha"]),
        ("/api/v1/nodes?filterBy=gpuType==H100", lambda body: body["nodes"] == []),
        ("/api/v1/node-pools?sortBy=name", lambda body: body["nodepools"][0]["isDefault"]),
        ("/api/v1/workload-priorities?filterBy=value>=125", lambda body: len(body["priorities"]) == 3),
        ("/api/v1/workload-types?externalTypesOnly=true", lambda body: body["types"] == []),
        ("/api/v1/org-unit/priorities", lambda body: sum(rank["isDefault"] for rank in body["priorities"]) == 1),
    ],
)
def test_lists_around_workloads(filled: ApiServer, path: str, want: Any) -> None:
    assert want(filled.get(path))


def test_nodes_are_found_by_the_type_of_gpu_that_is_shown(api: ApiServer) -> None:
    """Also where the model is not known."""
    node = Node(id="gpus", name="gpus", cpu_milli=1000, memory_bytes=2**30, gpus=(GpuDevice(0),))
    api.do(api.context.store.commit(Change(writes=(Put(NODES, node),))))
    api.do(api.context.directory.load())
    try:
        [view] = api.get("/api/v1/nodes?filterBy=name==gpus")["nodes"]
        found = api.get(f"/api/v1/nodes?filterBy=gpuType=={view['gpuInfo']['gpuType']}")["nodes"]
        assert [each["name"] for each in found] == ["gpus"]
    finally:
        api.do(api.context.store.commit(Change(writes=(Delete(NODES, "gpus"),))))
        api.do(api.context.directory.load())


@pytest.fixture
def timed(api: ApiServer) -> Iterator[ApiServer]:
    """Three workloads, two minutes after their last change of phase; one had run for ten seconds before."""
    phases = {"waits": Phase.PENDING, "runs": Phase.RUNNING, "ended": Phase.COMPLETED}
    for number, (name, phase) in enumerate(phases.items()):
        id, at = f"00000000-0000-4000-8000-0000000001{number:02}", api.clock.now - 120_000
        ran = 0 if phase is Phase.PENDING else 10_000
        times = {"created_at": at, "phase_updated_at": at, "running_time": ran}
        api.put(builders.workload(name, id=id, cluster_id=api.cluster_id, project_name="timed", phase=phase, **times))
    yield api
    for number in range(len(phases)):
        api.do(
            api.context.store.commit(
                Change(writes=(Delete(WORKLOADS, f"00000000-0000-4000-8000-0000000001{number:02}"),))
            )
        )


@pytest.mark.parametrize(
    ("query", "want"),
    [
        ("filterBy=totalRunningTimeSeconds>=100", ["runs"]),
        ("filterBy=totalRunningTimeSeconds==130", ["runs"]),
        ("filterBy=totalRunningTimeSeconds<=10,phase!=Completed", ["waits"]),
        ("filterBy=totalPendingTimeSeconds>=120", ["waits"]),
        ("filterBy=totalPendingTimeSeconds!=120&sortBy=name&sortOrder=desc", ["runs", "ended"]),
        ("sortBy=totalRunningTimeSeconds&sortOrder=desc", ["runs", "ended", "waits"]),
        ("sortBy=totalRunningTimeSeconds&sortOrder=desc&offset=1&limit=1", ["ended"]),
        ("filterBy=totalRunningTimeSeconds>=1,aiApplicationId==x", []),
    ],
)
def test_times_count_until_now(timed: ApiServer, query: str, want: list[str]) -> None:
    """As they are shown, not only until the last change of phase."""
    where = "projectName==timed"
    query = query.replace("filterBy=", f"filterBy={where},") if "filterBy" in query else f"filterBy={where}&{query}"
    assert names(timed, query) == want
    if "limit" not in query:
        assert timed.get(f"/api/v1/workloads/count?{query.partition('&')[0]}") == {"count": len(want)}
