"""Views of workloads, pods, events and history: the contract's fields, filled from records.

Handlers call the `render_` functions; the API description is generated from the structs. Nothing here reads:
everything that a view needs is passed in.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from fairlead.api.http.operation import OURS
from fairlead.api.http.shapes import (
    EventView,
    HistoryMeta,
    HistoryRecord,
    HistorySpec,
    Instant,
    InvolvedObject,
    PhaseUpdate,
    Shape,
    Uuid,
    event_uuid,
)
from fairlead.api.workloads.connections import ConnectionView, render_connections
from fairlead.api.workloads.resource_views import (
    AllocatedResourcesView,
    RequestedPods,
    RequestedResources,
    render_allocated,
    render_asked,
    render_requested,
)
from fairlead.control.decide.expand import base_role, expand_spec
from fairlead.control.serving.urls import UrlSettings
from fairlead.control.workloads.elapsed import pending_seconds, running_seconds
from fairlead.kinds import KINDS
from fairlead.model.clock import Millis, iso
from fairlead.model.dialect import Dialect
from fairlead.model.records.event import Event
from fairlead.model.records.named_message import VisibleProjects
from fairlead.model.records.organization import Cluster, Project, namespace_of
from fairlead.model.records.phase import Phase, PodPhase
from fairlead.model.records.workload import Condition, Pod, Workload

#: Phases that count as waiting and as running.

_SOURCES = {Dialect.CLI: "CLI", Dialect.REST: "Control-plane", Dialect.OLDER_REST: "Control-plane"}
#: The phases that Kubernetes has for a pod.
_POD_PHASES = {
    PodPhase.STARTING: "Pending",
    PodPhase.RUNNING: "Running",
    PodPhase.STOPPING: "Running",
    PodPhase.SUCCEEDED: "Succeeded",
    PodPhase.FAILED: "Failed",
    PodPhase.STOPPED: "Failed",
}


class ActionsSupport(Shape):
    delete: bool
    suspend: bool


class ConditionView(Shape):
    """A condition of the workload, such as a field that is not enforced here."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: Instant | None = None


class WorkloadView(Shape):
    """A workload of any kind, as lists show it."""

    type: str
    name: str
    id: Uuid
    source: Literal["CLI", "Control-plane", "Other"]
    priority: int | None
    priority_class_name: str
    cluster_id: Uuid
    project_name: str
    project_id: str
    department_name: str
    department_id: str
    namespace: str
    created_at: Instant
    phase: Phase
    conditions: tuple[ConditionView, ...]
    k8s_phase: str = msgspec.field(name="k8sPhase")
    tenant_id: int
    running_pods: int
    phase_updated_at: Instant
    k8s_phase_updated_at: Instant = msgspec.field(name="k8sPhaseUpdatedAt")
    updated_at: Instant
    deleted_at: Instant | None
    category: str
    submitted_by: str
    distributed_framework: str | UnsetType = UNSET
    phase_message: str = ""
    phase_reason: Literal["NonPreemptibleOverQuota", "OverLimit"] | None = None
    preemptible: bool | UnsetType = UNSET
    completed_at: Instant | None = None
    total_pending_time_seconds: int | UnsetType = UNSET
    total_running_time_seconds: int | UnsetType = UNSET
    requested_node_pools: tuple[str, ...] = ()
    current_node_pools: tuple[str, ...] = ()
    requested_pods: RequestedPods | UnsetType = UNSET
    workload_requested_resources: RequestedResources | UnsetType = UNSET
    pods_requested_resources: RequestedResources | UnsetType = UNSET
    allocated_resources: AllocatedResourcesView | UnsetType = UNSET
    actions_support: ActionsSupport | UnsetType = UNSET
    images: tuple[str, ...] = ()
    #: Its exposed URLs, its ports on this machine, and related pages.
    urls: tuple[str, ...] = ()
    external_connections: tuple[ConnectionView, ...] = ()
    command: str | UnsetType = UNSET
    arguments: str | UnsetType = UNSET
    environment_variables: dict[str, str] | UnsetType = UNSET
    labels: Annotated[dict[str, str] | UnsetType, OURS] = UNSET
    #: When it was evicted, if that is why it waits.
    evicted_at: Annotated[Instant | UnsetType, OURS] = UNSET


class PendingMessageView(Shape):
    """Why one node pool did not accept the workload."""

    node_pool: str
    phase_reason: Literal["NonPreemptibleOverQuota", "OverLimit"]
    reason: str
    org_type: Literal["PROJECT", "DEPARTMENT"] | None = None
    user_message: str | None = None


class WorkloadDetailedView(WorkloadView, kw_only=True):
    """A workload, with the reasons of the node pools that did not accept it."""

    pending_scheduling_messages: tuple[PendingMessageView, ...] | None


class ContainerView(Shape):
    name: str
    image: str
    started_at: Instant | None = None


class PodView(Shape):
    """A pod of a workload: one process tree on a node."""

    name: str
    priority_class_name: str
    id: Uuid
    workload_id: Uuid
    cluster_id: Uuid
    created_at: Instant
    containers: tuple[ContainerView, ...]
    k8s_phase: str = msgspec.field(name="k8sPhase")
    tenant_id: int
    k8s_phase_updated_at: Instant = msgspec.field(name="k8sPhaseUpdatedAt")
    updated_at: Instant
    project_id: str
    completed_at: Instant | None = None
    deleted_at: Instant | None = None
    node_name: str | None = None
    current_node_pool: str | None = None
    requested_node_pools: tuple[str, ...] = ()
    requested_resources: RequestedResources | UnsetType = UNSET
    allocated_resources: AllocatedResourcesView | UnsetType = UNSET
    project_name: str | UnsetType = UNSET
    workload_name: str | UnsetType = UNSET
    revision_id: Uuid | UnsetType = UNSET
    #: The numbers of its GPUs on its node; empty if it has none, or if its cluster does not say which they are.
    gpu_devices: Annotated[tuple[int, ...], OURS] = ()
    #: How often its process was restarted in place.
    restarts: Annotated[int, OURS] = 0
    #: How its process ended, or how it ended before the last restart.
    exit_code: Annotated[int | UnsetType, OURS] = UNSET
    signal: Annotated[int | UnsetType, OURS] = UNSET
    reason: Annotated[str, OURS] = ""
    message: Annotated[str, OURS] = ""


class ViewContext(msgspec.Struct, frozen=True):
    """What views need in addition to the records."""

    now: Millis
    cluster: Cluster
    projects: Mapping[str, Project]
    urls: UrlSettings = UrlSettings()
    #: Whose workloads the caller may see; messages name no others.
    visible: VisibleProjects = frozenset()
    #: (kind, project) of workloads whose specs the caller may not read; an empty project for removed ones.
    unreadable: frozenset[tuple[str, str]] = frozenset()

    def shows_process(self, workload: Workload) -> bool:
        """Whether the caller may see its command, arguments and variables."""
        project_id = workload.project_id if workload.project_id in self.projects else ""
        return (workload.kind, project_id) not in self.unreadable

    def namespace(self, workload: Workload) -> str:
        project = self.projects.get(workload.project_id)
        return project.namespace if project else namespace_of(workload.project_name)


def instant(at: Millis | None) -> str | None:
    return None if at is None else iso(at)


def render_workload_view(workload: Workload, pods: Sequence[Pod], view_context: ViewContext) -> WorkloadView:
    return WorkloadView(**_members(workload, pods, view_context))


def render_workload_detailed(
    workload: Workload, pods: Sequence[Pod], view_context: ViewContext
) -> WorkloadDetailedView:
    messages = tuple(
        PendingMessageView(
            node_pool=message.node_pool,
            phase_reason=message.reason,  # type: ignore[arg-type]  # only these two are stored
            reason=message.reason,
            org_type=message.org_type,  # type: ignore[arg-type]  # only values of the contract are stored
            user_message=message.message,
        )
        for message in workload.pending_messages
    )
    waits = workload.phase in (Phase.PENDING, Phase.CREATING, Phase.RESUMING)
    return WorkloadDetailedView(
        **_members(workload, pods, view_context), pending_scheduling_messages=messages if waits else None
    )


def _members(workload: Workload, pods: Sequence[Pod], view_context: ViewContext) -> dict[str, Any]:
    kind = KINDS[workload.kind]
    podsets = expand_spec(workload.kind, bytes(workload.spec)).podsets
    ended = workload.is_terminal or workload.deleted_at is not None
    return {
        "type": kind.title,
        "name": workload.name,
        "id": workload.id,
        "source": _SOURCES.get(workload.dialect, "Other"),
        "priority": workload.priority,
        "priority_class_name": workload.priority_class,
        "cluster_id": workload.cluster_id,
        "project_name": workload.project_name,
        "project_id": workload.project_id,
        "department_name": workload.department_name,
        "department_id": workload.department_id,
        "namespace": view_context.namespace(workload),
        "created_at": iso(workload.created_at),
        "phase": workload.phase,
        "conditions": tuple(_render_condition(condition) for condition in workload.conditions),
        "k8s_phase": workload.phase.value,
        "tenant_id": view_context.cluster.tenant_id,
        "running_pods": workload.running_pods,
        "phase_updated_at": iso(workload.phase_updated_at),
        "k8s_phase_updated_at": iso(workload.phase_updated_at),
        "updated_at": iso(workload.updated_at),
        "deleted_at": instant(workload.deleted_at),
        "category": workload.category,
        "submitted_by": workload.created_by,
        "distributed_framework": workload.framework or UNSET,
        "phase_message": workload.phase_message_for(view_context.visible),
        "phase_reason": workload.phase_reason,
        "preemptible": workload.preemptible,
        "completed_at": instant(workload.completed_at),
        "total_pending_time_seconds": pending_seconds(workload, view_context.now),
        "total_running_time_seconds": running_seconds(workload, view_context.now),
        "requested_node_pools": workload.node_pools,
        "current_node_pools": tuple(sorted({pod.node_pool for pod in pods if pod.node_pool})),
        "actions_support": ActionsSupport(delete=workload.deleted_at is None, suspend=kind.can_suspend and not ended),
        "allocated_resources": render_allocated(pods),
        **render_connections(workload, podsets, pods, view_context.urls),
        **render_asked(podsets, shows_process=view_context.shows_process(workload)),
        "labels": {label.name: label.value or "" for label in podsets[0].container.fields.labels if label.name},
        "evicted_at": _evicted_at(workload),
    }


def _evicted_at(workload: Workload) -> str | UnsetType:
    """When it was evicted; unset once it runs again, or if it was suspended since."""
    last = workload.last_eviction
    is_why = last is not None and workload.phase in (Phase.TERMINATING, Phase.PENDING) and last.run == workload.run
    return iso(last.at) if last is not None and is_why else UNSET


def _render_condition(condition: Condition) -> ConditionView:
    return ConditionView(
        type=condition.type,
        status=condition.status,
        reason=condition.reason,
        message=condition.message,
        last_transition_time=instant(condition.last_transition_time or None),
    )


def render_pod(pod: Pod, workload: Workload, view_context: ViewContext) -> PodView:
    spec = next((each.spec for each in workload.revisions if each.id == pod.revision_id), workload.spec)
    sets = expand_spec(workload.kind, bytes(spec)).podsets
    podset = next((podset for podset in sets if podset.role == base_role(pod.role)), None)
    touched = max(pod.created_at, pod.started_at or 0, pod.completed_at or 0)
    image = podset.container.image if podset else ""
    return PodView(
        name=pod.name,
        priority_class_name=workload.priority_class,
        id=pod.id,
        workload_id=pod.workload_id,
        cluster_id=workload.cluster_id,
        created_at=iso(pod.created_at),
        containers=(
            ContainerView(name=pod.container or workload.name, image=image, started_at=instant(pod.started_at)),
        ),
        k8s_phase=(not pod.has_ended and pod.cluster_phase) or _POD_PHASES[pod.phase],
        tenant_id=view_context.cluster.tenant_id,
        k8s_phase_updated_at=iso(touched),
        updated_at=iso(touched),
        project_id=pod.project_id,
        completed_at=instant(pod.completed_at),
        deleted_at=instant(pod.completed_at if pod.phase is PodPhase.STOPPED else workload.deleted_at),
        node_name=pod.node or None,
        current_node_pool=pod.node_pool or None,
        requested_node_pools=workload.node_pools,
        requested_resources=render_requested(podset) if podset else UNSET,
        allocated_resources=render_allocated(() if pod.has_ended else (pod,)),
        # Only a cluster's pod names its container.
        gpu_devices=() if pod.has_ended or pod.container else pod.gpu_devices,
        project_name=workload.project_name,
        workload_name=workload.name,
        revision_id=pod.revision_id or UNSET,
        restarts=pod.restarts,
        exit_code=UNSET if pod.exit_code is None else pod.exit_code,
        signal=UNSET if pod.signal is None else pod.signal,
        reason=pod.reason,
        message=pod.message,
    )


def render_event(event: Event, workload: Workload, view_context: ViewContext) -> EventView:
    if event.pod_id:
        uid, kind, name = event.pod_id, "Pod", event.pod_name
    else:
        uid, kind, name = workload.id, KINDS[workload.kind].resource, workload.name
    return EventView(
        created_at=iso(event.at),
        type=event.type,
        cluster_id=workload.cluster_id,
        message=event.message_for(view_context.visible),
        id=event_uuid(workload.cluster_id, event),
        reason=event.reason,
        source=event.source,
        involved_object=InvolvedObject(uid=uid, kind=kind, name=name, namespace=view_context.namespace(workload)),
    )


def render_history(event: Event, workload: Workload, view_context: ViewContext) -> HistoryRecord:
    if event.phase:
        meta = HistoryMeta(creation_timestamp=iso(event.at), type="PhaseUpdate")
        update = PhaseUpdate(phase=event.phase, phase_message=event.message_for(view_context.visible))
        return HistoryRecord(meta=meta, spec=HistorySpec(phase_update=update))
    meta = HistoryMeta(creation_timestamp=iso(event.at), type="Event")
    return HistoryRecord(meta=meta, spec=HistorySpec(event=render_event(event, workload, view_context)))
