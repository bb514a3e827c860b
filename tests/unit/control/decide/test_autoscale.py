"""How many pods a load asks for, when more come, and when they go again."""

from typing import Any

import pytest

from fairlead.control.decide.autoscale import Load, Rates, ScaleDecision, ScaleState, decide_replicas
from fairlead.model.pods.scaling import Measure, Scaling

NOW = 10_000_000
SECONDS = 1000


def scaling(**members: Any) -> Scaling:
    return Scaling(**({"min_pods": 1, "max_pods": 10, "target": 2.0} | members))


def load(short: float, long: float | None = None, **members: Any) -> Load:
    """So many requests at once, over the short window and the long one."""
    given = {"short": Rates(concurrency=short), "long": Rates(concurrency=short if long is None else long)}
    return Load(**({"in_flight": round(short)} | given | members))


def at(replicas: int, **members: Any) -> ScaleState:
    return ScaleState(replicas=replicas, **({"ready": replicas} | members))


@pytest.mark.parametrize(
    ("rules", "seen", "position", "want"),
    [
        pytest.param(scaling(), load(2), at(1), 1, id="as much as one pod bears"),
        pytest.param(scaling(), load(2.1), at(1), 2, id="a little more"),
        pytest.param(scaling(), load(9), at(1), 5, id="several at once"),
        pytest.param(scaling(), load(100), at(1), 10, id="never more than the most"),
        pytest.param(scaling(), load(9, 3), at(2), 5, id="a burst counts at once"),
        pytest.param(scaling(), load(1, 9), at(2), 2, id="a burst that has passed adds nothing"),
        pytest.param(scaling(), load(1, 7), at(5), 4, id="the long window takes away"),
        pytest.param(scaling(), load(0), at(3), 1, id="not below the least"),
        pytest.param(scaling(min_pods=0), load(0.1), at(3), 1, id="one as long as anybody asks"),
        pytest.param(scaling(min_pods=0), load(0), at(3), 1, id="the last pod goes in a step of its own"),
        pytest.param(scaling(min_pods=0), load(0), at(1), 0, id="none when nobody asks"),
        pytest.param(scaling(min_pods=0), load(0), at(0), 0, id="it sleeps on"),
        pytest.param(scaling(min_pods=0), load(0, in_flight=1), at(0), 1, id="a request wakes it"),
        pytest.param(scaling(min_pods=0, activation=3), load(0, in_flight=1), at(0), 3, id="with as many as it should"),
        pytest.param(
            scaling(min_pods=0, activation=3, max_pods=2), load(0, in_flight=1), at(0), 2, id="but not too many"
        ),
        pytest.param(scaling(min_pods=0), load(9), at(0), 5, id="or with as many as wait"),
        pytest.param(scaling(min_pods=3), load(0), at(1), 3, id="new bounds hold at once"),
        pytest.param(scaling(max_pods=2), load(0), at(5), 1, id="new bounds below the number of pods"),
        pytest.param(scaling(min_pods=2, max_pods=2), load(9), at(2), 2, id="a fixed number"),
        pytest.param(
            scaling(measure=Measure.THROUGHPUT, target=10.0),
            Load(in_flight=1, short=Rates(throughput=25), long=Rates(throughput=25)),
            at(1),
            3,
            id="throughput",
        ),
        pytest.param(
            scaling(measure=Measure.LATENCY, target=100.0),
            Load(in_flight=1, short=Rates(latency=250), long=Rates(latency=250)),
            at(2),
            5,
            id="latency grows with the pods there are",
        ),
        pytest.param(
            scaling(measure=Measure.LATENCY, target=100.0),
            Load(in_flight=1, short=Rates(latency=20), long=Rates(latency=20)),
            at(4),
            1,
            id="latency shrinks",
        ),
        pytest.param(
            scaling(measure=Measure.LATENCY, target=100.0), load(3), at(4), 1, id="no answer says nothing of latency"
        ),
    ],
)
def test_the_number_that_is_wanted(rules: Scaling, seen: Load, position: ScaleState, want: int) -> None:
    assert decide_replicas(rules, seen, position, NOW).replicas == want


def test_nothing_goes_before_a_whole_window_was_seen() -> None:
    seen = load(0, window=60 * SECONDS, counted_since=NOW - 20 * SECONDS)
    assert decide_replicas(scaling(), seen, at(3), NOW) == ScaleDecision(
        replicas=3, low_since=NOW, low_peak=1, recheck_at=NOW + 40 * SECONDS
    )
    begun = at(3, serving_since=NOW - 59 * SECONDS)
    assert decide_replicas(scaling(), load(0), begun, NOW).replicas == 3
    assert decide_replicas(scaling(), load(0), begun, NOW + SECONDS).replicas == 1


def test_a_lower_load_must_last_as_long_as_the_delay_and_its_highest_counts() -> None:
    rules = scaling(delay=30 * SECONDS)
    first = decide_replicas(rules, load(3), at(5), NOW)
    assert (first.replicas, first.low_since, first.low_peak) == (5, NOW, 2)
    position = at(5, low_since=first.low_since, low_peak=first.low_peak)
    second = decide_replicas(rules, load(5), position, NOW + 20 * SECONDS)
    assert (second.replicas, second.low_since, second.low_peak) == (5, NOW, 3)
    position = at(5, low_since=second.low_since, low_peak=second.low_peak)
    third = decide_replicas(rules, load(1), position, NOW + 30 * SECONDS)
    assert (third.replicas, third.low_since, third.reason) == (3, None, "1.0 concurrent requests, target 2 per pod")


def test_a_load_that_comes_back_counts_anew() -> None:
    position = at(5, low_since=NOW - 29 * SECONDS, low_peak=1)
    again = decide_replicas(scaling(delay=30 * SECONDS), load(10), position, NOW)
    assert (again.replicas, again.low_since, again.low_peak) == (5, None, 0)


def test_the_last_pod_stays_for_its_retention() -> None:
    rules = scaling(min_pods=0, retention=100 * SECONDS)
    step = decide_replicas(rules, load(0), at(2), NOW)
    assert (step.replicas, step.low_since, step.recheck_at) == (1, NOW, NOW)
    position = at(1, low_since=step.low_since)
    kept = decide_replicas(rules, load(0), position, NOW + 99 * SECONDS)
    assert (kept.replicas, kept.recheck_at) == (1, NOW + 100 * SECONDS)
    assert decide_replicas(rules, load(0), position, NOW + 100 * SECONDS).replicas == 0


def test_who_is_idle_is_not_looked_at_again() -> None:
    assert decide_replicas(scaling(), load(0), at(1), NOW).recheck_at is None
    assert decide_replicas(scaling(min_pods=0), load(0), at(0), NOW).recheck_at is None
    busy = decide_replicas(scaling(), load(1), at(1), NOW)
    assert busy.recheck_at == NOW + 2 * SECONDS


def test_an_answer_that_alone_is_left_in_the_window_is_looked_at_again() -> None:
    """A slot can hold the end of a request and none of its time. The pods that it asks for must not stay forever."""
    rules = scaling(measure=Measure.LATENCY, target=100.0)
    decision = decide_replicas(rules, Load(long=Rates(latency=150)), at(2), NOW)
    assert decision.replicas == 2
    assert decision.recheck_at is not None


def test_the_same_input_gives_the_same_answer() -> None:
    arguments = (scaling(delay=5), load(3), at(5), NOW)
    assert decide_replicas(*arguments) == decide_replicas(*arguments)
