"""How doctor sees that a part of KAI does not do its work, against an API server that tells of waiting pods."""

from typing import Any

import msgspec
import pytest

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import ApiError
from fairlead.engines.kubernetes.install.checks import judge_refusal
from fairlead.engines.kubernetes.install.doctor_kai import check_kai_at_work, find_overdue
from fairlead.engines.kubernetes.observe.unacknowledged import find_unacknowledged_pod, load_last_scheduler_event
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload
from fairlead.model.finding import Finding
from tests.contract.test_kubernetes_api import Answer, Scripted, answer, scenario

LONG_AGO, JUST_NOW, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:59:55Z", "2026-01-01T01:00:00Z"
AT_LAST = "2026-01-01T00:59:40Z"
OURS = {"metadata": {"name": "runai-a"}}
GROUP = {"metadata": {"name": "g", "namespace": "n"}}
REFUSAL = {"type": "UnschedulableOnNodePool", "status": "True", "nodePool": "default"}
BOUND_TO = {"metadata": {"creationTimestamp": LONG_AGO}, "spec": {"selectedNode": "w"}}
NOT_THERE = answer(404, {"reason": "NotFound", "message": "not found"})
FORBIDDEN = answer(403, {"reason": "Forbidden", "message": "not yours"})


def pod(made: str = LONG_AGO, **annotations: str) -> dict[str, Any]:
    metadata = {"name": "p", "uid": "u", "namespace": "n", "creationTimestamp": made, "annotations": annotations}
    return {"metadata": metadata, "spec": {"containers": []}}


def told(reason: str, at: str = LONG_AGO) -> Answer:
    return items({"reason": reason, "message": "on n", "lastTimestamp": at})


def items(*found: Any) -> Answer:
    return answer(200, {"items": list(found)})


TRIED = (items(OURS), answer(201, {"metadata": {"creationTimestamp": NOW}}))
WAITS = items(pod(**{"pod-group-name": "g"}))


@pytest.mark.parametrize(
    ("script", "want"),
    [
        ([items()], ("KAI at work", "ok", "no pod has waited for it")),
        ([items(pod(JUST_NOW))], ("KAI at work", "ok", "no pod has waited for it")),
        ([items(pod(AT_LAST)), items()], ("KAI's pod grouper", "missing", "not created a pod group for n/p")),
        ([items(pod()), items()], ("KAI's pod grouper", "missing", "not created a pod group for n/p")),
        ([items(pod()), NOT_THERE], ("KAI's pod grouper", "missing", "not created a pod group for n/p")),
        (
            [items(pod(), pod()), items()],
            ("KAI's pod grouper", "missing", "not created a pod group for n/p and 1 more"),
        ),
        ([WAITS, items(GROUP), items(), NOT_THERE], ("KAI's scheduler", "missing", "has not reacted to n/p")),
        ([WAITS, items(GROUP), items(), FORBIDDEN], ("KAI's scheduler", "missing", "has not reacted to n/p")),
        (
            [WAITS, items({**GROUP, "status": {"schedulingConditions": [REFUSAL]}})],
            ("KAI at work", "ok", "has reacted to all waiting pods: 1"),
        ),
        ([WAITS, items(GROUP), told("Pipelined")], ("KAI at work", "ok", "has reacted to all waiting pods: 1")),
        ([WAITS, items(GROUP), told("Scheduled")], ("KAI's binder", "missing", "does not bind n/p")),
        ([WAITS, items(GROUP), told("Scheduled", JUST_NOW)], ("KAI at work", "ok", "has reacted to all")),
        ([WAITS, items(GROUP), items(), answer(200, BOUND_TO)], ("KAI's binder", "missing", "does not bind n/p")),
    ],
    ids=[
        "nothing waits",
        "waits for a moment",
        "waits for just as long as is enough",
        "no group",
        "no groups at all",
        "two without a group",
        "nothing is said",
        "nothing is said, and requests are not seen",
        "refused",
        "a place is kept",
        "a node is chosen",
        "a node is chosen a moment ago",
        "a node is chosen, and the event is gone",
    ],
)
def test_which_part_of_kai_is_silent(script: list[Answer], want: tuple[str, str, str]) -> None:
    server = Scripted(*TRIED, *script)
    seen: list[Finding] = []

    @scenario
    async def look() -> None:
        async with server as api:
            seen.extend(await check_kai_at_work(api))

    look()
    tried, found = seen
    assert tried.state == "ok"
    assert (found.what, found.state, want[2] in found.found) == (*want[:2], True), found
    assert server.asked[1].startswith("POST /api/v1/namespaces/runai-a/pods?dryRun=All ")
    assert not server.script, "less was asked than is told"


def test_pods_that_somebody_holds_back_do_not_wait_for_kai() -> None:
    held = pod()
    held["spec"]["schedulingGates"] = [{"name": "theirs"}]
    now = 1_767_229_200_000
    assert [len(find_overdue([one], now)) for one in (pod(), held)] == [1, 0]


@pytest.mark.parametrize(
    ("message", "want"),
    [
        ('failed calling webhook "admission.kai-scheduler.svc": connection refused', "missing"),
        ('pods "x" is forbidden: exceeded quota', "note"),
    ],
    ids=["a webhook that does not answer", "a quota"],
)
def test_a_pod_that_could_not_be_tried(message: str, want: str) -> None:
    found = judge_refusal(ApiError(500, "InternalError", message))
    assert (found.state, message in found.found) == (want, True)


@scenario
async def test_a_failed_bind_request_has_the_message_of_the_binder() -> None:
    problem = find_unacknowledged_pod(ObservedWorkload(pods=[msgspec.convert(pod(), objects.Pod)]))
    assert problem is not None
    failed = {**BOUND_TO, "status": {"phase": "Failed", "reason": "no such volume"}}
    server = Scripted(items(), answer(200, failed))
    async with server as api:
        event = await load_last_scheduler_event(api, problem)
    assert event is not None
    assert (event.reason, event.message) == ("BindingError", "no such volume")
    assert server.asked[1].startswith("GET /apis/scheduling.run.ai/v1alpha2/namespaces/n/bindrequests/p ")
