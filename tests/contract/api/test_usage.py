"""The report of usage over HTTP: quotas that change, who lent to whom, and what a caller may not see."""

from collections.abc import Callable
from typing import Any

import pytest

from fairlead.control.loop.usage_retention import begin_ledger
from fairlead.model.clock import SECOND
from fairlead.model.records.phase import Phase, PodPhase
from tests import builders
from tests.contract.api.api_server import START, ApiServer
from tests.contract.api.test_people import RESEARCHER, Person

USAGE = "/api/v1/usage"
PROJECTS = "/api/v1/org-unit/projects"
IDS = "11111111-1111-4111-8111-11111111cc0{}", "22222222-2222-4222-8222-22222222cc0{}"


def cores(number: float) -> dict[str, Any]:
    """A quota of that many cores in the only pool, without GPUs."""
    return {"nodePool": {"id": "1"}, "gpu": {"deserved": 0}, "cpu": {"deserved": 1000 * number}}


@pytest.fixture
def api(make_api: Callable[..., ApiServer]) -> ApiServer:
    """A node of 4 cores. Project `default` has a quota of 1 core, `second` of 3; `default` holds 2 from the start."""
    api = make_api()
    body = {"name": "second", "clusterId": api.cluster_id, "resources": [cores(3)], "parentId": "1"}
    assert api.call("POST", PROJECTS, body).status == 201
    set_quota(api, 1)
    api.do(begin_ledger(api.context))
    run_pod(api, 0, "1", "default")
    return api


def set_quota(api: ApiServer, number: float) -> None:
    answer = api.call("PUT", f"{PROJECTS}/1", {"resources": [cores(number)]})
    assert answer.status == 200, answer


def run_pod(api: ApiServer, number: int, project: str, name: str) -> None:
    """A running workload of two cores in a project."""
    workload, pod = (id.format(number) for id in IDS)
    now = api.clock()
    api.put(
        builders.workload(
            f"train-{number}",
            id=workload,
            phase=Phase.RUNNING,
            cluster_id=api.cluster_id,
            project_id=project,
            project_name=name,
            created_at=now,
            phase_updated_at=now,
        ),
        builders.pod(
            f"train-{number}-0",
            id=pod,
            workload_id=workload,
            project_id=project,
            created_at=now,
            phase=PodPhase.RUNNING,
            node="alpha",
            node_pool="default",
            cpu_milli=2000,
        ),
    )


def core_seconds(row: dict[str, Any], *members: str) -> tuple[int, ...]:
    return tuple(round(row[member]["cpuHours"] * 3600) for member in members)


def parties(row: dict[str, Any], member: str) -> dict[str, int]:
    return {party["name"]: round(party["hours"]["cpuHours"] * 3600) for party in row.get(member, [])}


def test_a_quota_counts_from_the_moment_of_its_change(api: ApiServer) -> None:
    """`default` borrows a core from `second` for 100 s, until its quota is 2; all 4 cores are in quotas until then."""
    api.clock.now = START + 100 * SECOND
    set_quota(api, 2)
    api.clock.now = START + 150 * SECOND
    report = api.get(USAGE)
    rows = {row["project"]: row for row in report["rows"]}
    shown = ("used", "withinQuota", "borrowed", "lent")
    assert core_seconds(rows["default"], *shown) == (300, 200, 100, 0)
    assert core_seconds(rows["second"], *shown) == (0, 0, 0, 100)
    assert (parties(rows["second"], "lentTo"), parties(rows["default"], "borrowedFrom")) == (
        {"default": 100},
        {"second": 100},
    )
    (pool,) = report["nodePools"]
    assert core_seconds(pool, "capacity", "used", "idle", "unavailable", "overbooked") == (600, 300, 300, 0, 0)
    assert report["since"] == report["ledgerStart"] == "2023-11-14T22:13:20.000Z"


def test_a_caller_sees_their_own_projects_and_others_only_in_sum(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    ada.may(RESEARCHER, "project", "1")
    api.clock.now = START + 10 * SECOND
    report = ada.get(USAGE)
    (row,) = report["rows"]
    assert (row["project"], parties(row, "borrowedFrom")) == ("default", {"others": 10})
    assert "second" not in str(report)
    assert core_seconds(report["nodePools"][0], "capacity", "used") == (40, 20)


GROUPS: list[tuple[str, list[Any]]] = [
    ("workload", [("train-0", None, None), ("train-1", None, None)]),
    ("project,user", [(None, "default", "ada@example.com"), (None, "second", "ada@example.com")]),
    ("department", [(None, None, None)]),
    ("nodepool,day", [(None, None, None)]),
]


def test_rows_have_the_members_by_which_they_are_grouped(api: ApiServer) -> None:
    run_pod(api, 1, "2", "second")
    api.clock.now = START + 10 * SECOND
    for by, want in GROUPS:
        rows = api.get(f"{USAGE}?by={by}")["rows"]
        assert [(row.get("workload"), row.get("project"), row.get("user")) for row in rows] == want
        assert sum(core_seconds(row, "used")[0] for row in rows) == 40
        assert all(("lent" in row) is (by in ("department", "nodepool,day")) for row in rows)
    assert [(row["day"], row["nodePool"]) for row in rows] == [("2023-11-14", "default")]


WRONG = [
    ("?by=colour", "has unknown values: colour"),
    ("?since=yesterday", "must be an ISO-8601 date and time"),
    ("?since=2023-11-14T22:14:00Z&until=2023-11-14T22:13:50Z", "The period is empty"),
    ("?until=2023-11-01T00:00:00Z", "Nothing is recorded before 2023-11-14T22:13:20.000Z"),
]


def test_a_wrong_question_says_what_is_wrong(api: ApiServer) -> None:
    api.clock.now = START + 10 * SECOND
    for query, part in WRONG:
        answer = api.call("GET", USAGE + query)
        assert answer.status == 400, answer
        assert part in str(answer.json)


def test_one_cluster_of_several(api: ApiServer) -> None:
    api.clock.now += 3600 * SECOND
    whole = api.get(f"{USAGE}?clusterId={api.cluster_id.upper()}")
    assert whole["rows"] == api.get(USAGE)["rows"] != []
    added = api.call("POST", "/api/v1/clusters", {"name": "lab"})
    assert added.status == 201, added
    other = api.get(f"{USAGE}?clusterId={added.json['uuid']}")
    assert [row for row in other["rows"] if row["used"].get("cpuHours")] == []
    assert other["nodePools"] == []
    assert api.get(f"{USAGE}?clusterId={api.cluster_id}")["rows"] == whole["rows"]
    assert api.call("GET", f"{USAGE}?clusterId=11111111-1111-4111-8111-111111111111").status == 404
