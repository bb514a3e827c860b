"""Limits on idle GPUs on one machine: measured by NVIDIA's library if the GPUs are real, and only stored otherwise."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.e2e.fields import conditions
from tests.e2e.server import Server, until
from tests.e2e.test_quota import events, project, submit
from tests.fake_nvml import FakeNvml

pytestmark = [pytest.mark.debian("gcc"), pytest.mark.debian("libc6-dev")]

RULE = "trainingJobMaxIdleDurationSeconds"
#: The warning comes after half of it.
LIMIT = {RULE: 6}


def utilization(server: Server, workload_id: str) -> list[float]:
    """What was measured in the last minute; a question takes a sample, if the last one is more than a second old."""
    now = datetime.now(UTC)
    span = {"start": (now - timedelta(minutes=1)).isoformat(), "end": now.isoformat(), "numberOfSamples": 61}
    query = urlencode({"metricType": "GPU_UTILIZATION", **span})
    answer = server.call("GET", f"/api/v1/workloads/{workload_id}/metrics?{query}")
    assert answer.status in (200, 207), answer
    return [float(each["value"]) for each in answer.json["measurements"][0]["values"]]


def test_idle_gpus_are_warned_about_and_given_back(make_server: Callable[..., Server], tmp_path: Path) -> None:
    nvml = FakeNvml(tmp_path / "nvml", "40", "80")
    server = make_server("--personal", environment=nvml.environment)
    team = project(server, "team-a", 2, schedulingRules=LIMIT)
    workload = submit(server, team, "slow", 2)
    server.until_phase(workload, "Running")
    assert RULE not in conditions(server, workload, "NotEnforced")
    until(lambda: 60.0 in utilization(server, workload), "GPUs in use")
    nvml.set("0", "80")
    until(lambda: 40.0 in utilization(server, workload), "one GPU in use")
    nvml.set("0", "0")

    def reasons() -> list[str]:
        utilization(server, workload)
        return [event["reason"] for event in events(server, workload)]

    until(lambda: "IdleGpus" in reasons(), "a warning")
    until(lambda: "IdleLimit" in reasons(), "the end of its time")
    server.until_phase(workload, "Stopped")


def test_declared_gpus_are_not_measured(make_server: Callable[..., Server], tmp_path: Path) -> None:
    """Even if the machine has others: nobody can tell which are meant."""
    nvml = FakeNvml(tmp_path / "nvml", "0", "0")
    server = make_server("--personal", "--node", "here:cpu=4,memory=4Gi,gpus=2", environment=nvml.environment)
    team = project(server, "team-a", 2, schedulingRules=LIMIT)
    workload = submit(server, team, "unknown", 2)
    assert "GPU utilization is not measured" in conditions(server, workload, "NotEnforced")[RULE]
