"""Which Jobs are made anew after their pods were taken away."""

from typing import Any

import pytest

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload
from fairlead.engines.kubernetes.plan.recreate import find_fully_preempted_jobs

TAKEN = objects.Condition(type="DisruptionTarget", status="True")


def pod(phase: str = "Failed", *, of: str = "job-1", policy: str = "Never", is_taken: bool = True) -> objects.Pod:
    return objects.Pod(
        metadata=objects.Metadata(name="p", labels={"batch.kubernetes.io/controller-uid": of}),
        spec=objects.PodSpec(restart_policy=policy),
        status=objects.PodStatus(phase=phase, conditions=(TAKEN,) if is_taken else ()),
    )


@pytest.mark.parametrize(
    ("pods", "status", "want"),
    [
        pytest.param([pod()], {}, ["train"], id="taken"),
        pytest.param([pod(), pod()], {}, ["train"], id="all-taken"),
        pytest.param([], {}, [], id="no-pod-yet"),
        pytest.param([pod(of="job-0")], {}, [], id="of-the-job-before"),
        pytest.param([pod("Running")], {}, [], id="being-taken"),
        pytest.param([pod(is_taken=False)], {}, [], id="failed"),
        pytest.param([pod(), pod("Pending", is_taken=False)], {}, [], id="one-of-two"),
        pytest.param([pod(policy="OnFailure")], {}, [], id="counted-by-the-job"),
        pytest.param([pod()], {"succeeded": 1}, [], id="has-counted-an-end"),
        pytest.param([pod()], {"failed": 1}, [], id="has-counted-a-failure"),
        pytest.param([pod()], {"active": 1}, [], id="its-next-pod-is-not-seen-yet"),
    ],
)
def test_jobs_that_lost_all_their_pods(pods: list[objects.Pod], status: dict[str, Any], want: list[str]) -> None:
    job = objects.Runner(metadata=objects.Metadata(name="train", uid="job-1"), status=objects.RunnerStatus(**status))
    assert [
        found.name for found in find_fully_preempted_jobs(ObservedWorkload(runners=(job,), pods=tuple(pods)))
    ] == want
