"""How many pods a service should have now, from its load and from previous decisions. Pure.

The load is measured over two windows, as in Knative: the short one adds pods, so that a burst is met, and the long one
removes them, so that a pause changes nothing. Called by `rollout.py`.
"""

import math

import msgspec

from fairlead.model.clock import Millis
from fairlead.model.pods.scaling import Measure, Scaling


class Rates(msgspec.Struct, frozen=True):
    """Means over a window of time."""

    concurrency: float = 0.0
    #: Requests per second.
    throughput: float = 0.0
    #: Milliseconds; None when no answer ended in the window.
    latency: float | None = None


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What the proxy knows about a service's requests."""

    #: Requests that are being answered or wait for a pod.
    in_flight: int = 0
    short: Rates = Rates()
    long: Rates = Rates()
    #: The length of the long window, and since when requests have been counted.
    window: Millis = 60_000
    counted_since: Millis = 0
    #: Requests that each pod is answering.
    busy: dict[str, int] = {}

    @property
    def is_idle(self) -> bool:
        """Whether no request came, was answered or ended within the whole window."""
        return not self.in_flight and self.long == Rates()


NO_LOAD = Load()


class ScaleState(msgspec.Struct, frozen=True, kw_only=True):
    """Where the number of pods stands."""

    replicas: int
    ready: int = 0
    serving_since: Millis = 0
    low_since: Millis | None = None
    low_peak: int = 0


class ScaleDecision(msgspec.Struct, frozen=True, kw_only=True):
    replicas: int
    #: Since when fewer pods would be enough, and how many at most.
    low_since: Millis | None = None
    low_peak: int = 0
    #: When to decide again even without requests; None if time alone changes nothing.
    recheck_at: Millis | None = None
    reason: str = ""


def decide_replicas(scaling: Scaling, load: Load, position: ScaleState, now: Millis) -> ScaleDecision:
    bounded = min(max(position.replicas, scaling.min_pods), scaling.max_pods)
    if scaling.min_pods == scaling.max_pods:
        return ScaleDecision(replicas=bounded, reason="its bounds allow no other number")
    if not bounded:
        return _wake(scaling, load)
    soon = None if load.is_idle else now + max(load.window // 30, 100)
    short, long = (_asked(scaling, rates, position.ready) for rates in (load.short, load.long))
    if short > bounded:
        return ScaleDecision(
            replicas=min(short, scaling.max_pods), recheck_at=soon, reason=_describe_load(scaling, load.short)
        )
    wanted_pods = max(short, long, scaling.min_pods, 0 if load.is_idle else 1)
    if wanted_pods >= bounded:
        return ScaleDecision(
            replicas=bounded, recheck_at=soon, reason="its bounds" if bounded != position.replicas else ""
        )
    return _shrink(scaling, load, msgspec.structs.replace(position, replicas=bounded), wanted_pods, now)


def _wake(scaling: Scaling, load: Load) -> ScaleDecision:
    if not load.in_flight:
        return ScaleDecision(replicas=0)
    wanted = max(scaling.activation, _asked(scaling, load.short, 0), 1)
    return ScaleDecision(replicas=min(wanted, scaling.max_pods), reason="a request arrived")


def _shrink(scaling: Scaling, load: Load, position: ScaleState, wanted_pods: int, now: Millis) -> ScaleDecision:
    """Fewer pods would be enough. They go after the window and the delay; the last one after the retention too."""
    low_since = now if position.low_since is None else position.low_since
    peak = max(wanted_pods, position.low_peak)
    whole_at = max(load.counted_since, position.serving_since) + load.window
    recheck_at = None if load.is_idle else now + max(load.window // 30, 100)
    goal = peak
    due = max(whole_at, low_since + scaling.delay)
    if goal == 0:
        # The last pod goes in a step of its own, after the retention.
        goal = 1 if position.replicas > 1 else 0
        if not goal:
            due = max(due, low_since + scaling.retention)
    if now < due:
        recheck_at = due if recheck_at is None else min(recheck_at, due)
        return ScaleDecision(replicas=position.replicas, low_since=low_since, low_peak=peak, recheck_at=recheck_at)
    reason = "no requests" if load.is_idle else _describe_load(scaling, load.long)
    # The remaining pods start a new count; if only the last one is left to go, from the same beginning.
    again = low_since if goal and not peak else None
    return ScaleDecision(
        replicas=goal, low_since=again, recheck_at=now if again is not None else recheck_at, reason=reason
    )


def _asked(scaling: Scaling, rates: Rates, ready: int) -> int:
    if scaling.measure is Measure.CONCURRENCY:
        share = rates.concurrency / scaling.target
    elif scaling.measure is Measure.THROUGHPUT:
        share = rates.throughput / scaling.target
    else:
        share = max(ready, 1) * rates.latency / scaling.target if rates.latency is not None else 0.0
    # A load too small to show in a rounded mean needs no further pod.
    return math.ceil(round(share, 3))


def _describe_load(scaling: Scaling, rates: Rates) -> str:
    if scaling.measure is Measure.CONCURRENCY:
        return f"{rates.concurrency:.1f} concurrent requests, target {scaling.target:g} per pod"
    if scaling.measure is Measure.THROUGHPUT:
        return f"{rates.throughput:.1f} requests per second, target {scaling.target:g} per pod"
    return f"{rates.latency or 0.0:.0f} ms per request, target {scaling.target:g} ms"
