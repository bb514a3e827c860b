"""Inference: equal pods that serve requests on one port; their number follows the load.

A change while it runs rolls out as a revision: the previous one serves until the new one is ready.
"""

from collections.abc import Sequence
from typing import Annotated, Literal, cast, get_type_hints

from msgspec import UNSET, defstruct

from fairlead.kinds.kind import Kind, Outcome, SetState
from fairlead.kinds.pods import SPELT_OUT, container_of, request_of
from fairlead.kinds.runs import pods
from fairlead.kinds.serving import listening, served, serving_violations
from fairlead.model.pods.podset import PodSet, RestartPolicy
from fairlead.model.records.phase import Phase
from fairlead.model.records.revision import Stage
from fairlead.model.spec.autoscaling import Autoscaling, ServingConfiguration, autoscaling_violations, scaling_of
from fairlead.model.spec.fields import FieldInfo, FlagDeclaration, Maybe, PortNumber, Spec, value_or
from fairlead.model.spec.metadata import Username
from fairlead.model.spec.network import ExposedUrls, Ports, RelatedUrls
from fairlead.model.spec.placement import Category, NodePools, Preemptibility, PriorityClass
from fairlead.model.spec.pod_fields import PodFields
from fairlead.model.spec.rules import SubmissionLimits, Violation, class_violations, pod_violations
from fairlead.model.spec.service_fields import InferenceSecurity, InferenceStorage, ServiceStdin, ServiceTty

ROLE = "predictor"
#: Fields that are not part of the container.
_AROUND = SPELT_OUT | frozenset(
    {
        *("serving_port", "autoscaling", "serving_configuration"),
        *("priority_class", "preemptibility", "category", "username", "tty", "stdin"),
    }
)
#: What PATCH can change.
_CHANGEABLE = (
    *("image", "image_pull_policy", "image_pull_secrets", "command", "args", "working_dir", "create_home_dir"),
    *("environment_variables", "compute", "probes", "node_type", "node_affinity_required", "pod_affinity"),
    *("node_pools", "priority_class", "preemptibility", "category", "autoscaling", "serving_configuration"),
)


class InferenceServingPort(Spec, frozen=True, kw_only=True):
    """The port that serves requests, and who may send them."""

    container: Annotated[
        Maybe[PortNumber], FieldInfo(text="The port that pods listen on.", mandatory=True, part="container")
    ] = UNSET
    protocol: Annotated[
        Maybe[Literal["http", "grpc"]], FieldInfo(text="The protocol.", default_text="http", part="protocol")
    ] = UNSET
    authorization_type: Annotated[
        Maybe[
            Literal["public", "authenticatedUsers", "authorizedUsers", "authorizedGroups", "authorizedUsersOrGroups"]
        ],
        FieldInfo(text="Who may send requests.", default_text="public", part="authorization-type"),
    ] = UNSET
    authorized_users: Annotated[
        Maybe[tuple[str, ...]],
        FieldInfo(text="Users and service accounts who may send requests.", part="authorized-users"),
    ] = UNSET
    authorized_groups: Annotated[
        Maybe[tuple[str, ...]], FieldInfo(text="Groups whose members may send requests.", part="authorized-groups")
    ] = UNSET
    cluster_local_access_only: Annotated[
        Maybe[bool],
        FieldInfo(
            text="Whether it can be reached only from inside the cluster.",
            default_text="false",
            part="cluster-local-access-only",
        ),
    ] = UNSET


class InferenceSpec(PodFields, frozen=True, kw_only=True):
    storage: Annotated[Maybe[InferenceStorage], FieldInfo(text="The volumes of each pod.")] = UNSET
    security: Annotated[Maybe[InferenceSecurity], FieldInfo(text="The user and the privileges of the pods.")] = UNSET
    node_pools: NodePools = UNSET
    priority_class: PriorityClass = UNSET
    preemptibility: Preemptibility = UNSET
    category: Category = UNSET
    ports: Ports = UNSET
    exposed_urls: ExposedUrls = UNSET
    related_urls: RelatedUrls = UNSET
    autoscaling: Annotated[Maybe[Autoscaling], FieldInfo(text="The number of pods and how it follows the load.")] = (
        UNSET
    )
    serving_configuration: Annotated[Maybe[ServingConfiguration], FieldInfo(text="Timeouts.")] = UNSET
    serving_port: Annotated[
        Maybe[InferenceServingPort],
        FieldInfo(
            text="The port that serves requests.",
            is_common=True,
            flags=(
                FlagDeclaration(name="--serving-port", form="object"),
                FlagDeclaration(name="--serving-port", form="members"),
            ),
        ),
    ] = UNSET
    username: Username = UNSET
    tty: ServiceTty = UNSET
    stdin: ServiceStdin = UNSET


def _changes() -> type[Spec]:
    hints = get_type_hints(InferenceSpec, include_extras=True)
    fields = [(name, hints[name], UNSET) for name in _CHANGEABLE]
    changes = defstruct(
        "InferenceChanges",
        fields,
        bases=(Spec,),
        namespace={"__doc__": "What can be changed while it runs."},
        frozen=True,
        kw_only=True,
        rename="camel",
        forbid_unknown_fields=True,
    )
    return cast(type[Spec], changes)


def podsets(spec: InferenceSpec) -> tuple[PodSet, ...]:
    container = container_of(spec, _AROUND, tty=value_or(spec.tty, False), stdin=value_or(spec.stdin, False))
    port, inside = spec.serving_port, 0
    if isinstance(port, InferenceServingPort):
        inside = value_or(port.container, 0)
        is_outside = port.cluster_local_access_only is not True
        container = listening(served(container, port, inside, is_outside), inside)
    count, scaling = scaling_of(spec.autoscaling, spec.serving_configuration)
    return (
        PodSet(
            role=ROLE,
            container=container,
            request=request_of(spec.compute),
            count=count,
            completions=None,
            restart=RestartPolicy.ALWAYS,
            has_fixed_indices=True,
            naming="{workload}-{revision}-{index}",
            scaling=scaling,
            serving_port=inside,
        ),
    )


def outcome(states: Sequence[SetState]) -> Outcome | None:
    """Running if all pods of the serving revision are ready, or it is scaled to zero; Updating while a new revision
    starts; Degraded if pods are missing."""
    serving = next((state for state in states if state.podset.stage in (None, Stage.SERVING)), None)
    coming = next((state for state in states if state.podset.stage is Stage.STARTING), None)
    if serving is None:
        return None if coming is None else _starting(coming)
    wanted = serving.podset.count
    message = f"{serving.ready} of {pods(wanted)} ready"
    if coming is not None and (serving.ready or not wanted):
        number = coming.podset.revision
        message += f"; revision {number}: {coming.ready} of {pods(coming.podset.count)} ready"
        return Outcome(Phase.UPDATING, message)
    if not wanted:
        return Outcome(Phase.RUNNING, "Scaled to zero; the next request starts a pod")
    if serving.ready >= wanted:
        return Outcome(Phase.RUNNING, message)
    if serving.lapsed or (serving.ready and serving.blocked):
        return Outcome(Phase.DEGRADED, message)
    return _starting(serving)


def _starting(state: SetState) -> Outcome | None:
    if state.ready or state.running or state.starting:
        return Outcome(Phase.INITIALIZING, f"{state.ready} of {pods(state.podset.count)} ready, starting the others")
    return None


def _violations(spec: InferenceSpec, path: str, limits: SubmissionLimits) -> list[Violation]:
    broken = pod_violations(spec, path) + class_violations(spec, path)
    broken += serving_violations(spec.serving_port, f"{path}.servingPort")
    if spec.tty is True and spec.stdin is not True:
        broken.append(Violation(f"{path}.tty", "is true, but stdin is not; a terminal needs stdin"))
    return broken + autoscaling_violations(spec.autoscaling, f"{path}.autoscaling")


def _never(spec: InferenceSpec) -> None:
    """It never ends by itself."""


INFERENCE = Kind(
    key="inference-service",
    title="Inference",
    rest="inferences",
    resource="InferenceWorkload",
    older_policy="InferencePolicy",
    letter="I",
    command=("inference",),
    meant_for="inference",
    resource_type="inferences",
    category="Deploy",
    priority="very-high",
    can_suspend=False,
    spec=InferenceSpec,
    changes=_changes(),
    has_revisions=True,
    lists_issues=False,
    podsets=podsets,
    outcome=outcome,
    violations=_violations,
    lifetime_after_end=_never,
    max_preemptions=lambda spec: None,
)
