"""Quotas and fair shares of GPUs over HTTP: who borrows, who lends, and what a caller may not see."""

from collections.abc import Callable
from typing import Any

import pytest

from fairlead.scheduling.model.decisions import FairShare
from tests.contract.api.api_server import ApiServer
from tests.contract.api.test_people import RESEARCHER, Person

SHARES = "/api/v1/scheduling/shares"
PROJECTS = "/api/v1/org-unit/projects"


def gpus(number: float) -> dict[str, Any]:
    return {"nodePool": {"id": "1"}, "gpu": {"deserved": number}}


def share(queue: str, fair: float, used: float, requested: float) -> FairShare:
    return FairShare(
        queue=queue,
        node_pool="default",
        fair_share=(fair, 0.0, 0.0),
        requested=(requested, 0.0, 0.0),
        allocated=(used, 0.0, 0.0),
        allocated_non_preemptible=(0.0, 0.0, 0.0),
    )


@pytest.fixture
def api(make_api: Callable[..., ApiServer]) -> ApiServer:
    """Project `default` has a quota of 1 GPU, `second` of 3, and that is all there is; `default` uses 3."""
    api = make_api()
    body = {"name": "second", "clusterId": api.cluster_id, "resources": [gpus(3)], "parentId": "1"}
    assert api.call("POST", PROJECTS, body).status == 201
    assert api.call("PUT", f"{PROJECTS}/1", {"resources": [gpus(1)]}).status == 200
    api.context.fair_shares = (share("project-1", 3.0, 3.0, 4.0), share("project-2", 1.0, 1.0, 1.0))
    return api


def projects_of(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in answer["shares"] if row["type"] == "project"}


def test_who_borrows_and_who_lends(api: ApiServer) -> None:
    rows = projects_of(api.get(SHARES))
    shown = ("quota", "fairShare", "used", "requested", "borrowed", "lent")
    assert [rows["default"][member] for member in shown] == [1, 3, 3, 4, 2, 0]
    assert [rows["second"][member] for member in shown] == [3, 1, 1, 1, 0, 2]


def test_a_caller_sees_their_own_projects_only(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    ada.may(RESEARCHER, "project", "2")
    answer = ada.get(SHARES)
    assert projects_of(answer).keys() == {"second"}
    assert projects_of(answer)["second"]["lent"] == 2


def test_a_server_that_does_not_schedule_has_no_shares(api: ApiServer) -> None:
    api.context.fair_shares = ()
    assert api.get(SHARES) == {"shares": []}


def test_the_shares_are_those_that_the_loop_of_a_cluster_knows(api: ApiServer) -> None:
    view = api.context.add_view(api.cluster_id)
    view.fair_shares, api.context.fair_shares = api.context.fair_shares, ()
    assert projects_of(api.get(SHARES))["default"]["fairShare"] == 3
