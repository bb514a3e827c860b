"""Routes that read workloads of any kind: lists, counts, pods, events, history, explanation."""

from functools import partial
from typing import TypeVar

from msgspec import UNSET, UnsetType
from starlette.responses import Response

from fairlead.api.http.body import query_boolean, query_choice, query_text, wrong_parameter
from fairlead.api.http.errors import Error
from fairlead.api.http.list_parameters import (
    DELETED,
    LIMIT,
    OFFSET,
    SEARCH,
    filter_by,
    next_offset,
    read_list_request,
    sort_by,
    sort_order,
)
from fairlead.api.http.operation import Call, Operation, Parameter, as_json
from fairlead.api.http.shapes import WORKLOAD_ID, Count, EventView, HistoryList, Shape
from fairlead.api.workloads.explanation import WorkloadExplanation, render_explanation
from fairlead.api.workloads.time_parameters import AT, read_time
from fairlead.api.workloads.views import (
    PodView,
    ViewContext,
    WorkloadDetailedView,
    WorkloadView,
    render_event,
    render_history,
    render_pod,
    render_workload_detailed,
    render_workload_view,
)
from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.explain.estimate import estimate_workload_start
from fairlead.control.explain.foresight import explain_pending
from fairlead.control.explain.past import explain_past_pending, explain_who_went_first, load_timeline
from fairlead.control.explain.why import explain_waiting
from fairlead.control.lists import Page
from fairlead.control.workloads import read
from fairlead.control.workloads.read import POD_FIELD_NAMES, WORKLOAD_FIELDS
from fairlead.foresight.estimate import EstimateAnswer
from fairlead.foresight.precedence import PrecedenceAnswer
from fairlead.foresight.timeline import TimelineAnswer
from fairlead.foresight.why import WhyAnswer
from fairlead.model.records.people import Caller
from fairlead.model.records.workload import Pod

#: The revision of a list; a watch from there misses nothing.
REVISION_HEADER = "x-fairlead-revision"

T = TypeVar("T")


class WorkloadList(Shape):
    workloads: list[WorkloadView]
    next: int | UnsetType = UNSET


class PodList(Shape):
    pods: list[PodView]
    next: int | UnsetType = UNSET


class EventList(Shape):
    events: list[EventView]
    next: int | UnsetType = UNSET


def make_view_context(context: Context, caller: Caller) -> ViewContext:
    directory = context.directory
    return ViewContext(
        now=context.clock(),
        cluster=directory.cluster,
        projects=directory.projects,
        urls=context.url_registry.settings,
        visible=access.visible_projects(caller),
        unreadable=access.unreadable_specs(caller),
    )


def _headers(page: Page[T]) -> dict[str, str]:
    return {REVISION_HEADER: str(page.revision)}


async def list_workloads(call: Call) -> Response:
    page = await read.find_workloads(call.context, call.caller, read_list_request(call, WORKLOAD_FIELDS))
    pods = await read.load_live_pods(call.context, page.items)
    view_context = make_view_context(call.context, call.caller)
    views = [render_workload_view(workload, pods.get(workload.id, ()), view_context) for workload in page.items]
    return as_json(WorkloadList(workloads=views, next=next_offset(page)), headers=_headers(page))


async def count_workloads(call: Call) -> Response:
    return as_json(Count(await read.count_workloads(call.context, call.caller, read_list_request(call))))


async def get_workload(call: Call) -> Response:
    workload = await read.load_workload(call.context, call.caller, call.path["workloadId"])
    pods = await read.load_live_pods(call.context, (workload,))
    return as_json(
        render_workload_detailed(workload, pods.get(workload.id, ()), make_view_context(call.context, call.caller))
    )


async def get_workload_pods(call: Call) -> Response:
    page = await read.load_workload_pods(call.context, call.caller, call.path["workloadId"], read_list_request(call))
    return await _pods(call, page)


async def list_pods(call: Call) -> Response:
    completed = {"true": True, "false": False}.get(query_choice(call, "completed", ("all", "true", "false"), "all"))
    query_choice(call, "verbosity", ("brief", "full"))
    request = read_list_request(call, POD_FIELD_NAMES)
    return await _pods(call, await read.find_pods(call.context, call.caller, request, completed))


async def _pods(call: Call, page: Page[Pod]) -> Response:
    workloads = await read.load_workloads_of(call.context, page.items)
    view_context = make_view_context(call.context, call.caller)
    views = [
        render_pod(pod, workloads[pod.workload_id], view_context) for pod in page.items if pod.workload_id in workloads
    ]
    return as_json(PodList(pods=views, next=next_offset(page)), headers=_headers(page))


async def count_pods(call: Call) -> Response:
    return as_json(Count(await read.count_pods(call.context, call.caller, read_list_request(call))))


async def get_workload_events(call: Call) -> Response:
    request = read_list_request(call, default_order="desc")
    workload, page = await read.load_events(call.context, call.caller, call.path["workloadId"], request)
    view_context = make_view_context(call.context, call.caller)
    views = [render_event(event, workload, view_context) for event in page.items]
    return as_json(EventList(events=views, next=next_offset(page)), headers=_headers(page))


async def get_workload_history(call: Call) -> Response:
    request = read_list_request(call)
    workload, page = await read.load_events(call.context, call.caller, call.path["workloadId"], request)
    view_context = make_view_context(call.context, call.caller)
    records = [render_history(event, workload, view_context) for event in page.items]
    return as_json(HistoryList(records=records, next=next_offset(page)), headers=_headers(page))


async def explain_workload(call: Call) -> Response:
    workload = await read.load_readable(call.context, call.caller, call.path["workloadId"])
    wants_waiting = query_boolean(call, "waiting", default=True)
    waiting = await explain_waiting(call.context, call.caller, workload) if wants_waiting else None
    return as_json(render_explanation(workload, access.visible_projects(call.caller), waiting))


async def explain_workload_pending(call: Call) -> Response:
    workload = await read.load_workload(call.context, call.caller, call.path["workloadId"])
    at = await read_time(call, "at")
    if at is not None:
        return as_json(await explain_past_pending(call.context, call.caller, workload, at))
    return as_json(await explain_pending(call.context, call.caller, workload))


async def get_workload_timeline(call: Call) -> Response:
    workload = await read.load_workload(call.context, call.caller, call.path["workloadId"])
    return as_json(await load_timeline(call.context, call.caller, workload))


async def explain_workload_precedence(call: Call) -> Response:
    workload = await read.load_workload(call.context, call.caller, call.path["workloadId"])
    given = query_text(call, "other")
    if not given:
        raise wrong_parameter("other", "must be the id of the other workload")
    other = await read.load_workload(call.context, call.caller, given)
    return as_json(await explain_who_went_first(call.context, call.caller, workload, other))


async def estimate_workload(call: Call) -> Response:
    workload = await read.load_workload(call.context, call.caller, call.path["workloadId"])
    return as_json(await estimate_workload_start(call.context, call.caller, workload))


_FAILURES = {401: Error, 403: Error, 500: Error, 503: Error}
_ONE = {**_FAILURES, 404: Error}
_POD_LIST = (
    Parameter(name="verbosity", schema={"type": "string", "enum": ["brief", "full"], "default": "brief"}),
    Parameter(
        name="completed",
        schema={"type": "string", "enum": ["all", "true", "false"], "default": "all"},
        description="Whether to list all pods, only those that have ended, or only those that have not.",
    ),
)


_read = partial(Operation, method="GET", tag="Workloads")


WORKLOAD_OPERATIONS: tuple[Operation, ...] = (
    _read(
        path="/api/v1/workloads",
        id="get_workloads",
        summary="List workloads of all kinds",
        run=list_workloads,
        parameters=(
            DELETED,
            OFFSET,
            LIMIT,
            sort_order(),
            sort_by(WORKLOAD_FIELDS),
            filter_by(WORKLOAD_FIELDS),
            SEARCH,
        ),
        answers={200: WorkloadList, **_FAILURES},
    ),
    _read(
        path="/api/v1/workloads/count",
        id="count_workloads",
        summary="Count workloads",
        run=count_workloads,
        parameters=(DELETED, filter_by(WORKLOAD_FIELDS), SEARCH),
        answers={200: Count, **_FAILURES},
    ),
    _read(
        path="/api/v1/workloads/pods",
        id="list_pods",
        summary="List pods of all workloads",
        run=list_pods,
        tag="Pods",
        parameters=(
            DELETED,
            OFFSET,
            LIMIT,
            sort_order(),
            sort_by(POD_FIELD_NAMES),
            filter_by(POD_FIELD_NAMES),
            *_POD_LIST,
            SEARCH,
        ),
        answers={200: PodList, **_ONE},
    ),
    _read(
        path="/api/v1/workloads/pods/count",
        id="count_pods",
        summary="Count pods",
        run=count_pods,
        tag="Pods",
        parameters=(DELETED, filter_by(POD_FIELD_NAMES), SEARCH),
        answers={200: Count, **_FAILURES},
    ),
    _read(
        path="/api/v1/workloads/{workloadId}",
        id="get_workload",
        summary="Get a workload of any kind, with the reasons why it is pending",
        run=get_workload,
        parameters=(WORKLOAD_ID,),
        answers={200: WorkloadDetailedView, **_ONE},
    ),
    _read(
        path="/api/v1/workloads/{workloadId}/pods",
        id="get_workload_pods",
        summary="List the pods of a workload",
        run=get_workload_pods,
        tag="Pods",
        parameters=(WORKLOAD_ID, DELETED, OFFSET, LIMIT, SEARCH),
        answers={200: PodList, **_ONE},
    ),
    _read(
        path="/api/v1/workloads/{workloadId}/events",
        id="get_workload_events",
        summary="List the events of a workload and its pods",
        run=get_workload_events,
        tag="Events",
        parameters=(WORKLOAD_ID, OFFSET, LIMIT, sort_order("desc")),
        answers={200: EventList, **_ONE},
    ),
    _read(
        path="/api/v1/workloads/{workloadId}/history",
        id="get_workload_history",
        summary="List the events and phase changes of a workload, oldest first",
        run=get_workload_history,
        tag="Events",
        parameters=(WORKLOAD_ID, OFFSET, LIMIT),
        answers={200: HistoryList, **_ONE},
    ),
    _read(
        path="/api/v1/workloads/{workloadId}/explanation",
        id="explain_workload",
        summary="Explain the phase of a workload and the origin of its values",
        run=explain_workload,
        parameters=(
            WORKLOAD_ID,
            Parameter(
                name="waiting",
                schema={"type": "boolean", "default": True},
                description="Whether to ask the scheduler why it waits; false is cheaper.",
            ),
        ),
        answers={200: WorkloadExplanation, **_ONE},
        is_addition=True,
    ),
    _read(
        path="/api/v1/workloads/{workloadId}/why",
        id="explain_workload_pending",
        summary="Explain why a workload is pending, with the smallest changes that would start it",
        run=explain_workload_pending,
        parameters=(WORKLOAD_ID, AT),
        answers={200: WhyAnswer, **_ONE, 410: Error},
        is_addition=True,
    ),
    _read(
        path="/api/v1/workloads/{workloadId}/timeline",
        id="get_workload_timeline",
        summary="Get since when a workload waited for what, when it ran, and why it was evicted",
        run=get_workload_timeline,
        parameters=(WORKLOAD_ID,),
        answers={200: TimelineAnswer, **_ONE},
        is_addition=True,
    ),
    _read(
        path="/api/v1/workloads/{workloadId}/precedence",
        id="explain_workload_precedence",
        summary="Explain why another workload was placed while this one waited",
        run=explain_workload_precedence,
        parameters=(
            WORKLOAD_ID,
            Parameter(name="other", schema={"type": "string"}, description="The id of the other workload."),
        ),
        answers={200: PrecedenceAnswer, **_ONE, 410: Error},
        is_addition=True,
    ),
    _read(
        path="/api/v1/workloads/{workloadId}/estimate",
        id="estimate_workload",
        summary="Estimate when a pending workload starts: the median and the 90 % value",
        run=estimate_workload,
        parameters=(WORKLOAD_ID,),
        answers={200: EstimateAnswer, **_ONE},
        is_addition=True,
    ),
)
