"""The fields of a spec for autoscaling and request timeouts, the rules between them, and the `Scaling` they mean."""

from typing import Annotated

from msgspec import UNSET, Meta

from fairlead.model.clock import SECOND
from fairlead.model.pods.scaling import INITIALIZATION, REQUEST_TIMEOUT, Measure, Scaling
from fairlead.model.spec.fields import Count32, FieldInfo, FlagDeclaration, Int32, Maybe, Positive32, Spec, value_or
from fairlead.model.spec.rules import Violation

#: The default percentage of the threshold at which pods are added; latency has none.
_PERCENT = {Measure.CONCURRENCY: 70.0, Measure.THROUGHPUT: 70.0, Measure.LATENCY: 100.0}
Hour = Annotated[int, Meta(ge=0, le=3600, extra_json_schema={"format": "int32"})]
_METRIC = r"^[a-zA-Z_:][a-zA-Z0-9_:]*"


class Autoscaling(Spec, frozen=True, kw_only=True):
    """The bounds on the number of pods, and the metric by which it changes."""

    min_replicas: Annotated[
        Maybe[Count32],
        FieldInfo(
            text="The minimum number of pods. With 0, no pod runs while there are no requests.",
            is_common=True,
            default_text="1",
            yaml="minScale",
            yaml_kinds="I",
            flags=(FlagDeclaration(name="--min-replicas", aliases=("--min-scale",)),),
        ),
    ] = UNSET
    max_replicas: Annotated[
        Maybe[Positive32],
        FieldInfo(
            text="The maximum number of pods.",
            is_common=True,
            default_text="minReplicas, at least 1",
            yaml="maxScale",
            yaml_kinds="I",
            flags=(FlagDeclaration(name="--max-replicas", aliases=("--max-scale",)),),
        ),
    ] = UNSET
    initial_replicas: Annotated[
        Maybe[Count32],
        FieldInfo(
            text="The number of pods to begin with.",
            default_text="minReplicas, at least 1",
            flags=(FlagDeclaration(name="--initial-replicas"),),
        ),
    ] = UNSET
    activation_replicas: Annotated[
        Maybe[Positive32],
        FieldInfo(
            text="The number of pods to start when a request arrives and no pod runs.",
            default_text="1",
            flags=(FlagDeclaration(name="--activation-replicas"),),
        ),
    ] = UNSET
    metric: Annotated[
        Maybe[
            Annotated[
                str,
                Meta(
                    pattern=_METRIC + r"\Z",
                    extra_json_schema={"pattern": _METRIC + "$"},
                    extra={"rule": f"supported metrics are {', '.join(Measure)}"},
                ),
            ]
        ],
        FieldInfo(
            text="The metric by which the number of pods changes: concurrency, throughput or latency.",
            yaml="metric",
            yaml_kinds="I",
            flags=(FlagDeclaration(name="--metric"),),
        ),
    ] = UNSET
    metric_threshold: Annotated[
        Maybe[Int32],
        FieldInfo(
            text="The target value of the metric per pod: concurrent requests, requests per second, or milliseconds.",
            yaml="target",
            yaml_kinds="I",
            flags=(FlagDeclaration(name="--metric-threshold"),),
        ),
    ] = UNSET
    metric_threshold_percentage: Annotated[
        Maybe[Annotated[float, Meta(ge=1, le=100, extra_json_schema={"format": "float"})]],
        FieldInfo(
            text="The percentage of the threshold at which pods are added.",
            unit="percent",
            default_text="70; 100 for latency",
            flags=(FlagDeclaration(name="--metric-threshold-percentage"),),
        ),
    ] = UNSET
    concurrency_hard_limit: Annotated[
        Maybe[Count32],
        FieldInfo(
            text="The maximum number of concurrent requests per pod; further requests wait. 0 means no limit.",
            default_text="0",
            flags=(FlagDeclaration(name="--concurrency-hard-limit"),),
        ),
    ] = UNSET
    scale_to_zero_retention_seconds: Annotated[
        Maybe[Hour],
        FieldInfo(
            text="How long the last pod is kept after the last request.",
            unit="seconds",
            default_text="0",
            flags=(FlagDeclaration(name="--scale-to-zero-retention-seconds"),),
        ),
    ] = UNSET
    scale_down_delay_seconds: Annotated[
        Maybe[Hour],
        FieldInfo(
            text="How long the load must stay lower before pods are removed.",
            unit="seconds",
            default_text="0",
            flags=(FlagDeclaration(name="--scale-down-delay-seconds"),),
        ),
    ] = UNSET
    initialization_timeout_seconds: Annotated[
        Maybe[Positive32], FieldInfo(text="The same as in servingConfiguration; prefer that one.", unit="seconds")
    ] = UNSET


class ServingConfiguration(Spec, frozen=True, kw_only=True):
    """Timeouts."""

    initialization_timeout_seconds: Annotated[
        Maybe[Positive32],
        FieldInfo(
            text="How long the first pods of a revision may take to become ready before the revision has failed.",
            unit="seconds",
            default_text="600",
            flags=(FlagDeclaration(name="--initialization-timeout-seconds"),),
        ),
    ] = UNSET
    request_timeout_seconds: Annotated[
        Maybe[Positive32],
        FieldInfo(
            text="How long a request may wait for the first byte of its response.",
            unit="seconds",
            default_text="300",
            flags=(FlagDeclaration(name="--request-timeout-seconds"),),
        ),
    ] = UNSET


def _bounds(scaling: Autoscaling) -> tuple[int, int]:
    min_replicas = value_or(scaling.min_replicas, 1)
    return min_replicas, value_or(scaling.max_replicas, max(min_replicas, 1))


def scaling_of(autoscaling: Maybe[Autoscaling], serving: Maybe[ServingConfiguration]) -> tuple[int, Scaling]:
    """The number of pods to begin with, and how that number changes."""
    given = autoscaling if isinstance(autoscaling, Autoscaling) else Autoscaling()
    times = serving if isinstance(serving, ServingConfiguration) else ServingConfiguration()
    min_replicas, max_replicas = _bounds(given)
    named = value_or(given.metric, Measure.CONCURRENCY)
    measure = Measure(named) if named in set(Measure) else Measure.CONCURRENCY
    percent = value_or(given.metric_threshold_percentage, _PERCENT[measure])
    initialization = value_or(times.initialization_timeout_seconds, given.initialization_timeout_seconds)
    request_timeout = value_or(times.request_timeout_seconds, REQUEST_TIMEOUT // SECOND)
    initial = min(value_or(given.initial_replicas, max(min_replicas, 1)), max_replicas)
    scaling = Scaling(
        min_pods=min_replicas,
        max_pods=max_replicas,
        initial=initial,
        activation=min(value_or(given.activation_replicas, 1), max_replicas),
        measure=measure,
        target=max(value_or(given.metric_threshold, 1), 1) * percent / 100,
        delay=value_or(given.scale_down_delay_seconds, 0) * SECOND,
        retention=value_or(given.scale_to_zero_retention_seconds, 0) * SECOND,
        concurrency_limit=value_or(given.concurrency_hard_limit, 0),
        initialization=value_or(initialization, INITIALIZATION // SECOND) * SECOND,
        request_timeout=request_timeout * SECOND,
    )
    return initial, scaling


def autoscaling_violations(scaling: Maybe[Autoscaling], path: str) -> list[Violation]:
    """Bounds that contradict each other, and metrics that are not supported."""
    if not isinstance(scaling, Autoscaling):
        return []
    min_replicas, max_replicas = _bounds(scaling)
    broken = []
    if max_replicas < min_replicas:
        broken.append(
            Violation(f"{path}.maxReplicas", f"is {max_replicas}, below minReplicas, which is {min_replicas}")
        )
    for name, number in (
        ("initialReplicas", scaling.initial_replicas),
        ("activationReplicas", scaling.activation_replicas),
    ):
        if value_or(number, 0) > max_replicas:
            broken.append(Violation(f"{path}.{name}", f"is {number}, above maxReplicas, which is {max_replicas}"))
    return broken + _metric_violations(scaling, path, min_replicas, max_replicas)


def _metric_violations(scaling: Autoscaling, path: str, min_replicas: int, max_replicas: int) -> list[Violation]:
    broken = []
    metric, threshold = value_or(scaling.metric, None), value_or(scaling.metric_threshold, None)
    if metric is None:
        if min_replicas < max_replicas and (min_replicas, max_replicas) != (0, 1):
            details = (
                f"is missing; it must be given when minReplicas ({min_replicas}) is below maxReplicas ({max_replicas})"
            )
            broken.append(Violation(f"{path}.metric", details))
        return broken
    if metric not in set(Measure):
        details = f"is {metric}; supported metrics are {', '.join(Measure)}"
        broken.append(Violation(f"{path}.metric", details))
    elif metric == Measure.LATENCY and min_replicas == 0:
        details = (
            "is latency, which cannot be measured while no pod runs; with minReplicas 0 use concurrency or throughput"
        )
        broken.append(Violation(f"{path}.metric", details))
    if threshold is None:
        broken.append(Violation(f"{path}.metricThreshold", "is missing; metric needs it"))
    elif threshold < 1:
        broken.append(Violation(f"{path}.metricThreshold", f"is {threshold}; it must be at least 1"))
    return broken
