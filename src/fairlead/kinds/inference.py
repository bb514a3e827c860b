"""Inference: equal pods that answer requests on one port, each on its own.

How many run is fixed between the least and the most that are allowed; nothing here follows the load yet.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta

from fairlead.kinds.kind import Kind, Outcome, SetState
from fairlead.kinds.pods import SPELT_OUT, container_of, request_of
from fairlead.kinds.runs import pods
from fairlead.kinds.serving import served, serving_violations
from fairlead.model.fields import About, Count32, Flag, Maybe, PortNumber, Positive32, Spec, is_given, value_or
from fairlead.model.metadata import Username
from fairlead.model.network import ExposedUrls, Ports, RelatedUrls
from fairlead.model.phase import Phase
from fairlead.model.placement import Category, NodePools, Preemptibility, PriorityClass
from fairlead.model.pod_fields import PodFields
from fairlead.model.podset import PodSet, RestartPolicy
from fairlead.model.rules import Limits, Violation, command_violations, priority_violations
from fairlead.model.service_fields import InferenceSecurity, InferenceStorage, ServiceStdin, ServiceTty

ROLE = "predictor"
_AROUND = SPELT_OUT | frozenset(
    {"serving_port", "priority_class", "preemptibility", "category", "username", "tty", "stdin"}
)
Hour = Annotated[int, Meta(ge=0, le=3600, extra_json_schema={"format": "int32"})]
AnyInt32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1, extra_json_schema={"format": "int32"})]


class Autoscaling(Spec, frozen=True, kw_only=True):
    """Between how many pods, and by what, the service grows and shrinks."""

    min_replicas: Annotated[
        Maybe[Count32],
        About(
            text="The fewest pods.",
            default_text="1",
            yaml="minScale",
            yaml_kinds="I",
            flags=(Flag(name="--min-replicas", aliases=("--min-scale",)),),
        ),
    ] = UNSET
    max_replicas: Annotated[
        Maybe[Positive32],
        About(
            text="The most pods.",
            default_text="minReplicas, at least 1",
            yaml="maxScale",
            yaml_kinds="I",
            flags=(Flag(name="--max-replicas", aliases=("--max-scale",)),),
        ),
    ] = UNSET
    initial_replicas: Annotated[
        Maybe[Count32],
        About(text="With how many it begins.", default_text="minReplicas", flags=(Flag(name="--initial-replicas"),)),
    ] = UNSET
    activation_replicas: Annotated[
        Maybe[Positive32], About(text="With how many it wakes from none.", flags=(Flag(name="--activation-replicas"),))
    ] = UNSET
    metric: Annotated[
        Maybe[
            Annotated[
                str,
                Meta(
                    pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*\Z", extra_json_schema={"pattern": "^[a-zA-Z_:][a-zA-Z0-9_:]*$"}
                ),
            ]
        ],
        About(
            text="What the load is measured by: concurrency, throughput or latency.",
            yaml="metric",
            yaml_kinds="I",
            flags=(Flag(name="--metric"),),
        ),
    ] = UNSET
    metric_threshold: Annotated[
        Maybe[AnyInt32],
        About(
            text="How much of it one pod is to bear.",
            yaml="target",
            yaml_kinds="I",
            flags=(Flag(name="--metric-threshold"),),
        ),
    ] = UNSET
    metric_threshold_percentage: Annotated[
        Maybe[Annotated[float, Meta(ge=1, le=100, extra_json_schema={"format": "float"})]],
        About(
            text="From which part of the threshold on pods are added.",
            unit="percent",
            flags=(Flag(name="--metric-threshold-percentage"),),
        ),
    ] = UNSET
    concurrency_hard_limit: Annotated[
        Maybe[Count32],
        About(
            text="The most requests at once per pod; 0 for no limit.", flags=(Flag(name="--concurrency-hard-limit"),)
        ),
    ] = UNSET
    scale_to_zero_retention_seconds: Annotated[
        Maybe[Hour],
        About(
            text="How long the last pod is kept.",
            unit="seconds",
            flags=(Flag(name="--scale-to-zero-retention-seconds"),),
        ),
    ] = UNSET
    scale_down_delay_seconds: Annotated[
        Maybe[Hour],
        About(
            text="How long a lower load must last.", unit="seconds", flags=(Flag(name="--scale-down-delay-seconds"),)
        ),
    ] = UNSET
    initialization_timeout_seconds: Annotated[
        Maybe[Positive32], About(text="As in servingConfiguration, which is the newer place.", unit="seconds")
    ] = UNSET


class ServingConfiguration(Spec, frozen=True, kw_only=True):
    """How long things may take."""

    initialization_timeout_seconds: Annotated[
        Maybe[Positive32],
        About(
            text="How long the first pod may take to be ready.",
            unit="seconds",
            flags=(Flag(name="--initialization-timeout-seconds"),),
        ),
    ] = UNSET
    request_timeout_seconds: Annotated[
        Maybe[Positive32],
        About(text="How long a request may take.", unit="seconds", flags=(Flag(name="--request-timeout-seconds"),)),
    ] = UNSET


class InferenceServingPort(Spec, frozen=True, kw_only=True):
    """Where requests are answered, and by whom they may be sent."""

    container: Annotated[
        Maybe[PortNumber], About(text="The port that pods listen on.", mandatory=True, part="container")
    ] = UNSET
    protocol: Annotated[
        Maybe[Literal["http", "grpc"]], About(text="What is spoken there.", default_text="http", part="protocol")
    ] = UNSET
    authorization_type: Annotated[
        Maybe[
            Literal["public", "authenticatedUsers", "authorizedUsers", "authorizedGroups", "authorizedUsersOrGroups"]
        ],
        About(text="Who may send requests.", default_text="public", part="authorization-type"),
    ] = UNSET
    authorized_users: Annotated[
        Maybe[tuple[str, ...]], About(text="Users and service accounts who may.", part="authorized-users")
    ] = UNSET
    authorized_groups: Annotated[
        Maybe[tuple[str, ...]], About(text="Groups whose members may.", part="authorized-groups")
    ] = UNSET
    cluster_local_access_only: Annotated[
        Maybe[bool],
        About(
            text="Whether it is reached from this cluster only.", default_text="false", part="cluster-local-access-only"
        ),
    ] = UNSET


class InferenceSpec(PodFields, frozen=True, kw_only=True):
    storage: Annotated[Maybe[InferenceStorage], About(text="What is mounted into each pod.")] = UNSET
    security: Annotated[
        Maybe[InferenceSecurity], About(text="Under which identity and with which rights pods run.")
    ] = UNSET
    node_pools: NodePools = UNSET
    priority_class: PriorityClass = UNSET
    preemptibility: Preemptibility = UNSET
    category: Category = UNSET
    ports: Ports = UNSET
    exposed_urls: ExposedUrls = UNSET
    related_urls: RelatedUrls = UNSET
    autoscaling: Annotated[Maybe[Autoscaling], About(text="How many pods there are.")] = UNSET
    serving_configuration: Annotated[Maybe[ServingConfiguration], About(text="How long things may take.")] = UNSET
    serving_port: Annotated[
        Maybe[InferenceServingPort],
        About(text="Where requests are answered.", flags=(Flag(name="--serving-port", form="members"),)),
    ] = UNSET
    username: Username = UNSET
    tty: ServiceTty = UNSET
    stdin: ServiceStdin = UNSET


def _replicas(spec: InferenceSpec) -> int:
    """How many run: as many as it begins with, at least one, within its bounds."""
    scaling = spec.autoscaling if isinstance(spec.autoscaling, Autoscaling) else Autoscaling()
    least = value_or(scaling.min_replicas, 1)
    most = value_or(scaling.max_replicas, max(least, 1))
    return int(min(max(value_or(scaling.initial_replicas, least), least, 1), most))


def podsets(spec: InferenceSpec) -> tuple[PodSet, ...]:
    container = container_of(spec, _AROUND, tty=value_or(spec.tty, False), stdin=value_or(spec.stdin, False))
    port = spec.serving_port
    if isinstance(port, InferenceServingPort):
        container = served(container, port, value_or(port.container, 0), port.cluster_local_access_only is not True)
    return (
        PodSet(
            role=ROLE,
            container=container,
            request=request_of(spec.compute),
            count=_replicas(spec),
            completions=None,
            restart=RestartPolicy.ALWAYS,
            slots=True,
        ),
    )


def outcome(states: Sequence[SetState]) -> Outcome | None:
    """Running when as many pods are ready as it should have, Degraded when some are and others cannot be."""
    [state] = states
    wanted = state.podset.count
    words = f"{state.ready} of {pods(wanted)} ready"
    if state.ready >= wanted:
        return Outcome(Phase.RUNNING, f"{words}.")
    if state.lapsed or (state.ready and state.blocked):
        return Outcome(Phase.DEGRADED, f"{words}.")
    if state.ready or state.running or state.starting:
        return Outcome(Phase.INITIALIZING, f"{words}, the others are on their way.")
    return None


def _violations(spec: InferenceSpec, path: str, limits: Limits) -> list[Violation]:
    found = command_violations(spec, path) + priority_violations(spec, path)
    found += serving_violations(spec.serving_port, f"{path}.servingPort")
    if spec.tty is True and spec.stdin is not True:
        found.append(Violation(f"{path}.tty", "is true, but stdin is not; a terminal needs stdin"))
    scaling = spec.autoscaling
    if isinstance(scaling, Autoscaling):
        least = value_or(scaling.min_replicas, 1)
        most = value_or(scaling.max_replicas, max(least, 1))
        if most < least:
            found.append(
                Violation(f"{path}.autoscaling.maxReplicas", f"is {most}, below minReplicas, which is {least}")
            )
        if least < most and (least, most) != (0, 1) and not is_given(scaling.metric):
            details = f"is missing; it must be given when minReplicas ({least}) is below maxReplicas ({most})"
            found.append(Violation(f"{path}.autoscaling.metric", details))
        if is_given(scaling.metric) and not is_given(scaling.metric_threshold):
            found.append(Violation(f"{path}.autoscaling.metricThreshold", "is missing; metric needs it"))
    return found


def _never(spec: InferenceSpec) -> None:
    """It never ends by itself."""


INFERENCE = Kind(
    key="inference-service",
    title="Inference",
    rest="inferences",
    resource="InferenceWorkload",
    letter="I",
    command=("inference",),
    meant_for="inference",
    category="Deploy",
    priority="very-high",
    can_suspend=False,
    spec=InferenceSpec,
    lists_issues=False,
    podsets=podsets,
    outcome=outcome,
    violations=_violations,
    lifetime_after_end=_never,
    preemptions_borne=lambda spec: None,
)
