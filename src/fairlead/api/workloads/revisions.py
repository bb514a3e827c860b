"""Routes and views of revisions, for every kind of workload that has them."""

from typing import Annotated

from msgspec import UNSET, UnsetType
from starlette.responses import Response

from fairlead.api.http.body import query_boolean
from fairlead.api.http.errors import Error
from fairlead.api.http.list_parameters import DELETED, LIMIT, OFFSET, next_offset, read_list_request, sort_order
from fairlead.api.http.operation import OURS, Call, Handler, Operation, Parameter, as_json
from fairlead.api.http.shapes import WORKLOAD_ID, Count, HistoryList, Instant, Shape, Uuid
from fairlead.api.workloads.reads import EventList, make_view_context
from fairlead.api.workloads.resource_views import (
    AllocatedResourcesView,
    RequestedPods,
    RequestedResources,
    render_allocated,
    render_asked,
)
from fairlead.api.workloads.views import PodView, ViewContext, instant, render_event, render_history, render_pod
from fairlead.control.decide.expand import expand_spec
from fairlead.control.workloads import revisions
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind, noun_of
from fairlead.model.clock import iso
from fairlead.model.english import with_article
from fairlead.model.records.phase import Phase, PodPhase
from fairlead.model.records.revision import Revision, Stage
from fairlead.model.records.workload import Pod, Workload


class RevisionView(Shape):
    """A revision: one state of a workload's spec, and the progress of its pods."""

    id: Uuid
    name: str
    type: str
    workload_id: Uuid
    project_id: str
    department_id: str
    cluster_id: Uuid
    tenant_id: int
    created_at: Instant
    deleted_at: Instant | None
    phase: Phase
    phase_message: str
    phase_updated_at: Instant
    running_pods: int
    #: Whether all requests go to it.
    is_serving: Annotated[bool, OURS]
    requested_node_pools: tuple[str, ...] = ()
    current_node_pools: tuple[str, ...] = ()
    requested_pods: RequestedPods | UnsetType = UNSET
    pods_requested_resources: RequestedResources | UnsetType = UNSET
    revision_requested_resources: RequestedResources | UnsetType = UNSET
    allocated_resources: AllocatedResourcesView | UnsetType = UNSET
    images: tuple[str, ...] = ()
    command: str | UnsetType = UNSET
    arguments: str | UnsetType = UNSET
    environment_variables: dict[str, str] | UnsetType = UNSET


class RevisionList(Shape):
    revisions: list[RevisionView]


class RevisionPodList(Shape):
    pods: list[PodView]


def render_revision(revision: Revision, workload: Workload, pods: list[Pod], view_context: ViewContext) -> RevisionView:
    requested = render_asked(expand_spec(workload.kind, bytes(revision.spec)).podsets)
    active = [pod for pod in pods if not pod.has_ended]
    return RevisionView(
        id=revision.id,
        name=revision.name,
        type=KINDS[workload.kind].title,
        workload_id=workload.id,
        project_id=workload.project_id,
        department_id=workload.department_id,
        cluster_id=workload.cluster_id,
        tenant_id=view_context.cluster.tenant_id,
        created_at=iso(revision.created_at),
        deleted_at=instant(workload.deleted_at),
        phase=revision.phase,
        phase_message=revision.phase_message,
        phase_updated_at=iso(revision.phase_updated_at),
        running_pods=sum(pod.phase is PodPhase.RUNNING for pod in active),
        is_serving=revision.stage is Stage.SERVING,
        requested_node_pools=revision.node_pools,
        current_node_pools=tuple(sorted({pod.node_pool for pod in active if pod.node_pool})),
        allocated_resources=render_allocated(active),
        revision_requested_resources=requested.pop("workload_requested_resources"),
        **requested,
    )


_FAILURES = {401: Error, 403: Error, 500: Error, 503: Error}
_ONE = {**_FAILURES, 404: Error}
_ID = Parameter(
    name="revisionId",
    place="path",
    schema={"type": "string", "format": "uuid"},
    description="The revision's id.",
)


def revision_operations() -> tuple[Operation, ...]:
    return tuple(operation for kind in KINDS.values() if kind.has_revisions for operation in _operations(kind))


def _operations(kind: Kind) -> list[Operation]:
    reads = Reads(kind)
    noun = noun_of(kind)
    word = kind.rest.replace("-", "_").removesuffix("s")
    base = f"/api/v1/workloads/{kind.rest}"
    many, one = f"{base}/{{workloadId}}/revisions", f"{base}/revisions/{{revisionId}}"
    workload, paged = (WORKLOAD_ID, DELETED), (_ID, OFFSET, LIMIT)

    def read(path: str, id: str, summary: str, run: Handler, parameters: tuple[Parameter, ...], shown: type) -> None:
        operations.append(
            Operation(
                method="GET",
                path=path,
                id=id.format(word),
                tag="Revisions",
                summary=summary,
                run=run,
                parameters=parameters,
                answers={200: shown, **_ONE},
            )
        )

    operations: list[Operation] = []
    read(
        many,
        "get_{}_workload_revisions",
        f"List the revisions of {with_article(noun)}",
        reads.find,
        workload,
        RevisionList,
    )
    counted = f"Count the revisions of {with_article(noun)}"
    read(f"{many}/count", "count_{}_workload_revisions", counted, reads.count, workload, Count)
    read(one, "get_{}_revision", f"Get a revision of {with_article(noun)}", reads.get, (_ID,), RevisionView)
    of_pods = "List the pods of a revision"
    read(f"{one}/pods", "get_{}_revision_pods", of_pods, reads.get_pods, (_ID, DELETED), RevisionPodList)
    happened, sorted_ = "List the events of a revision and its pods", (*paged, sort_order("desc"))
    read(f"{one}/events", "get_{}_revision_events", happened, reads.get_events, sorted_, EventList)
    read(
        f"{one}/history",
        "get_{}_revision_history",
        "List the history of a revision, oldest first",
        reads.get_history,
        paged,
        HistoryList,
    )
    return operations


class Reads:
    """The handlers for one kind of workload."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    async def find(self, call: Call) -> Response:
        deleted = bool(query_boolean(call, "deleted"))
        workload, listed = await revisions.find_revisions(
            call.context, call.caller, self._kind.key, call.path["workloadId"], deleted
        )
        view_context = make_view_context(call.context, call.caller)
        views = []
        for revision in listed:
            pods = await revisions.load_revision_pods(call.context, revision, active_only=True)
            views.append(render_revision(revision, workload, pods, view_context))
        return as_json(RevisionList(revisions=views))

    async def count(self, call: Call) -> Response:
        deleted = bool(query_boolean(call, "deleted"))
        _, listed = await revisions.find_revisions(
            call.context, call.caller, self._kind.key, call.path["workloadId"], deleted
        )
        return as_json(Count(len(listed)))

    async def _load(self, call: Call) -> tuple[Workload, Revision]:
        return await revisions.load_revision(call.context, call.caller, self._kind.key, call.path["revisionId"])

    async def get(self, call: Call) -> Response:
        workload, revision = await self._load(call)
        pods = await revisions.load_revision_pods(call.context, revision, active_only=True)
        return as_json(render_revision(revision, workload, pods, make_view_context(call.context, call.caller)))

    async def get_pods(self, call: Call) -> Response:
        """Pods that were stopped count as deleted, as in the list of a workload's pods."""
        workload, revision = await self._load(call)
        deleted = bool(query_boolean(call, "deleted"))
        pods = await revisions.load_revision_pods(call.context, revision)
        is_deleted = workload.deleted_at is not None
        shown = [pod for pod in pods if deleted == (is_deleted or pod.is_replaced or pod.phase is PodPhase.STOPPED)]
        view_context = make_view_context(call.context, call.caller)
        return as_json(RevisionPodList(pods=[render_pod(pod, workload, view_context) for pod in shown]))

    async def get_events(self, call: Call) -> Response:
        workload, revision = await self._load(call)
        request = read_list_request(call, default_order="desc")
        page = await revisions.load_revision_events(call.context, revision, request)
        view_context = make_view_context(call.context, call.caller)
        events = [render_event(event, workload, view_context) for event in page.items]
        return as_json(EventList(events=events, next=next_offset(page)))

    async def get_history(self, call: Call) -> Response:
        workload, revision = await self._load(call)
        page = await revisions.load_revision_events(call.context, revision, read_list_request(call))
        view_context = make_view_context(call.context, call.caller)
        records = [render_history(event, workload, view_context) for event in page.items]
        return as_json(HistoryList(records=records, next=next_offset(page)))
