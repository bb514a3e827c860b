"""On a cluster, every answer about the future says who decides there and how often ours decided the same."""

from fairlead.control.context import EngineView
from fairlead.foresight.kai.agreement import Agreement, describe_agreement
from tests.contract.api.api_server import ApiServer
from tests.contract.api.busy_node import WAITS, fill_node
from tests.contract.api.test_plans import body

MORE_NODES = {"changes": [{"change": "addNodes", "like": "alpha", "count": 1}]}


def ask_all(api: ApiServer) -> list[str]:
    """The first assumption of each answer."""
    answers = [
        api.get(f"/api/v1/workloads/{WAITS}/why"),
        api.get(f"/api/v1/workloads/{WAITS}/estimate"),
        api.call("POST", "/api/v1/workloads/trainings?dryRun=plan", body(api, 2)).json,
        api.call("POST", "/api/v1/scheduling/what-if", MORE_NODES).json,
    ]
    return [answer["assumptions"][0] for answer in answers]


def test_answers_say_how_often_ours_decided_as_kai_did(api: ApiServer) -> None:
    fill_node(api)
    assert not any("KAI" in first for first in ask_all(api))
    api.context.engine = EngineView(is_cluster=True)
    assert ask_all(api) == [describe_agreement(Agreement())] * 4
    # Also in answers that are kept, because the state has not changed.
    api.context.agreement = Agreement(placements=407, equal_placements=406, victims=9, equal_victims=8)
    firsts = ask_all(api)
    assert firsts[0].endswith("both agreed in 406 of 407 placements and 8 of 9 evictions.")
    assert firsts == [firsts[0]] * 4
