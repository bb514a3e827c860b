"""When a workload starts, over HTTP: from declared running times, and from runs that have ended."""

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


def test_runs_that_have_ended_tell_when_the_next_one_starts(api: ApiServer) -> None:
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
    assert (answer["p50"] - answer["now"], answer["p90"] - answer["now"]) == (200, 600)
    assert answer["revision"] > 0
    assert api.get(f"/api/v1/workloads/{HOLDS}/estimate")["status"] == "notWaiting"


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
