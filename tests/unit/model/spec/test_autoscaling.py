"""From the members of a spec to how its pods follow the load."""

from typing import Any

import pytest

from fairlead.model.pods.scaling import Measure, Scaling
from fairlead.model.spec.autoscaling import Autoscaling, ServingConfiguration, scaling_of
from fairlead.model.spec.fields import build


def made(serving: dict[str, Any] | None = None, **members: Any) -> tuple[int, Scaling]:
    return scaling_of(build(Autoscaling, members), build(ServingConfiguration, serving or {}))


@pytest.mark.parametrize(
    ("members", "want"),
    [
        ({}, (1, 1, 1)),
        ({"minReplicas": 3}, (3, 3, 3)),
        ({"minReplicas": 0}, (1, 0, 1)),
        ({"minReplicas": 0, "maxReplicas": 5}, (1, 0, 5)),
        ({"minReplicas": 2, "maxReplicas": 5, "initialReplicas": 4}, (4, 2, 5)),
        ({"minReplicas": 0, "initialReplicas": 0}, (0, 0, 1)),
        ({"minReplicas": None, "maxReplicas": None}, (1, 1, 1)),
    ],
    ids=["nothing", "least", "from none", "both", "initial", "asleep", "null"],
)
def test_initial_and_later_numbers_of_pods(members: dict[str, Any], want: tuple[int, int, int]) -> None:
    count, scaling = made(**members)
    assert (count, scaling.min_pods, scaling.max_pods) == want


@pytest.mark.parametrize(
    ("members", "want"),
    [
        ({"metric": "concurrency", "metricThreshold": 10}, (Measure.CONCURRENCY, 7.0)),
        ({"metric": "throughput", "metricThreshold": 10}, (Measure.THROUGHPUT, 7.0)),
        ({"metric": "latency", "metricThreshold": 200}, (Measure.LATENCY, 200.0)),
        ({"metric": "latency", "metricThreshold": 200, "metricThresholdPercentage": 50}, (Measure.LATENCY, 100.0)),
        ({}, (Measure.CONCURRENCY, 0.7)),
    ],
    ids=["concurrency", "throughput", "latency", "percentage", "nothing"],
)
def test_what_one_pod_is_to_bear(members: dict[str, Any], want: tuple[Measure, float]) -> None:
    _, scaling = made(**members)
    assert scaling.measure is want[0]
    assert scaling.target == pytest.approx(want[1])


def test_times_are_read_from_both_places_and_the_newer_wins() -> None:
    assert made()[1].initialization == 600_000
    assert made(initializationTimeoutSeconds=5)[1].initialization == 5_000
    assert made({"initializationTimeoutSeconds": 7}, initializationTimeoutSeconds=5)[1].initialization == 7_000
    assert made({"requestTimeoutSeconds": 9})[1].request_timeout == 9_000
    scaling = made(scaleDownDelaySeconds=3, scaleToZeroRetentionSeconds=4, concurrencyHardLimit=2)[1]
    assert (scaling.delay, scaling.retention, scaling.concurrency_limit) == (3_000, 4_000, 2)
