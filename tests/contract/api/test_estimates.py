"""When a workload starts, over HTTP: from declared running times, and from runs that have ended."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from fairlead.control.explain.runtimes import make_runtime
from fairlead.model.records.phase import Phase, PodPhase
from tests import builders
from tests.contract.api.api_server import START, ApiServer

HOLDS = "11111111-1111-4111-8111-11111111bbbb"
WAITS = "22222222-2222-4222-8222-22222222bbbb"
POD = "33333333-3333-4333-8333-33333333bbbb"
ENDED = "44444444-4444-4444-8444-44444444bbb{}"


def spec(cores: float, **members: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode({"image": "x", "compute": {"cpuCoreRequest": cores}, **members}))


def test_ended_runs_predict_when_the_next_one_starts(api: ApiServer) -> None:
    """A node of 4 cores that one workload fills, one that waits for it, and three of the same project that ended."""
    shared: dict[str, Any] = {"cluster_id": api.cluster_id, "created_at": START, "phase_updated_at": START}
    held: dict[str, Any] = {"phase": PodPhase.RUNNING, "node": "alpha", "node_pool": "default", "cpu_milli": 4000}
    api.put(
        builders.workload("holds", id=HOLDS, phase=Phase.RUNNING, priority=90, spec=spec(4), **shared),
        builders.pod("holds-0-0", id=POD, workload_id=HOLDS, role="worker", created_at=START, **held),
        builders.workload("waits", id=WAITS, phase=Phase.PENDING, priority=50, spec=spec(4), **shared),
    )
    for number in range(3):
        ended: dict[str, Any] = {"phase": Phase.COMPLETED, "running_time": 100_000 * (number + 1)}
        api.put(builders.workload(f"ended-{number}", id=ENDED.format(number), spec=spec(4), **ended, **shared))
    answer = api.get(f"/api/v1/workloads/{WAITS}/estimate")
    assert answer["status"] == "estimated"
    assert [(step["workload"], step["basis"]) for step in answer["chain"]] == [("holds", "similar runs")]
    assert (answer["p50"] - answer["now"], answer["p90"] - answer["now"]) == (200, pytest.approx(506.9, abs=0.1))
    assert answer["assumptions"][0] == "Nothing else is submitted or fails."
    assert answer["revision"] > 0
    assert api.get(f"/api/v1/workloads/{HOLDS}/estimate")["status"] == "notWaiting"


def test_what_was_submitted_yesterday_is_expected_again(make_api: Callable[..., ApiServer]) -> None:
    """Yesterday at this time plus 50 seconds, something with a higher priority was submitted that ran 300 seconds."""
    api = make_api()
    declared = spec(4, annotations=[{"name": "fairlead/expected-runtime", "value": "100"}])
    shared: dict[str, Any] = {"cluster_id": api.cluster_id, "created_at": START, "phase_updated_at": START}
    held: dict[str, Any] = {"phase": PodPhase.RUNNING, "node": "alpha", "node_pool": "default", "cpu_milli": 4000}
    api.put(
        builders.workload("holds", id=HOLDS, phase=Phase.RUNNING, priority=90, spec=declared, **shared),
        builders.pod("holds-0-0", id=POD, workload_id=HOLDS, role="worker", created_at=START, **held),
        builders.workload("waits", id=WAITS, phase=Phase.PENDING, priority=50, spec=spec(4), **shared),
    )
    ended: dict[str, Any] = {"phase": Phase.COMPLETED, "cluster_id": api.cluster_id, "spec": spec(4), "priority": 90}
    for number, seconds in ((0, 2 * 86_400 - 1), (1, 86_400 - 50)):
        at = START - seconds * 1000
        past: dict[str, Any] = {"created_at": at, "running_time": 300_000 * number, "completed_at": at + 300_000}
        api.put(builders.workload(f"past-{number}", id=ENDED.format(number), **past, **ended))
    answer = api.get(f"/api/v1/workloads/{WAITS}/estimate")
    assert answer["assumptions"][0].startswith("As much is submitted as in the last days")
    assert answer["p50"] - answer["now"] == pytest.approx(400, abs=5)
    assert [step["workload"] for step in answer["chain"]] == ["holds"]


@pytest.mark.parametrize(
    ("members", "want"),
    [
        ({"annotations": [{"name": "fairlead/expected-runtime", "value": "600"}]}, 600),
        ({"leader": {"annotations": [{"name": "fairlead/expected-runtime", "value": "60.5"}]}}, 60.5),
        ({"annotations": [{"name": "fairlead/expected-runtime", "value": "long"}]}, None),
        ({"annotations": [{"name": "fairlead/expected-runtime", "value": "-1"}]}, None),
        ({"annotations": [{"name": "other", "value": "600"}]}, None),
        ({}, None),
    ],
)
def test_a_declared_running_time(members: dict[str, Any], want: float | None) -> None:
    workload = builders.workload("declares", phase=Phase.RUNNING, phase_updated_at=START, spec=spec(1, **members))
    runtime = make_runtime(workload, {}, START + 5000)
    assert (runtime.declared, runtime.elapsed, runtime.limit) == (want, 5, None)
