"""Views of the scheduler: its snapshot, why workloads wait, evictions. An addition of Fairlead."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import Response

from fairlead.api.http.body import query_boolean, query_text, read_body, wrong_parameter
from fairlead.api.http.errors import Error
from fairlead.api.http.operation import Call, Operation, Parameter, RequestBody, as_json
from fairlead.api.http.shapes import Instant, Shape, Uuid
from fairlead.api.workloads.time_parameters import AT, read_time
from fairlead.api.workloads.views import instant
from fairlead.control.explain.cluster_snapshot import load_snapshot
from fairlead.control.explain.foresight import compare_changed
from fairlead.control.explain.past import load_past_snapshot
from fairlead.control.explain.replay import replay_cycles
from fairlead.control.explain.suggestions import suggest_to_caller
from fairlead.control.explain.why import Holder, OwnerFigures, WaitingReport
from fairlead.control.telemetry.submission_history import SubmissionHistory, load_submission_history
from fairlead.foresight.changes import Change
from fairlead.foresight.replayed import ReplayAnswer
from fairlead.foresight.what_if import WhatIfAnswer
from fairlead.model.clock import DAY, SECOND, iso
from fairlead.model.errors import ComplianceIssue, Invalid
from fairlead.model.records.named_message import VisibleProjects, may_name
from fairlead.model.records.workload import EvictionNote

_MAX_SUGGESTIONS = 50
#: The period that is replayed if none is given.
_REPLAYED = 3600 * SECOND
#: The period of which the submissions are listed if none is given.
_RECALLED = 7 * DAY


class Amounts(Shape):
    """GPU devices, millicores, bytes; -1 is unlimited."""

    gpu: float
    cpu: float
    memory: float


class EvictionView(Shape):
    """The last eviction of a pod of a workload: in favor of another workload, or because its node was drained."""

    at: Instant
    pod: str
    node: str
    rule: Literal["preempted", "reclaimed", "consolidated", "stale", "drained"]
    message: str
    by_workload: str | None = None
    by_workload_id: Uuid | None = None
    by_project: str | None = None
    since: Instant | None = None
    gpus: float = 0.0
    over_quota_gpus: float = 0.0
    quota_gpus: float | None = None
    moved_to: str | None = None


class HolderView(Shape):
    """A workload that holds resources which another waits for; without its name if the caller may not see it."""

    workload: str
    workload_id: Uuid | None
    #: Empty if the caller may not see it.
    submitted_by: str
    project: str
    node_pool: str
    nodes: tuple[str, ...]
    holds: Amounts
    preemptible: bool
    is_over_quota: bool
    is_ending: bool
    since: Instant | None


class OwnerFiguresView(Shape):
    """Quota and usage of a project or department in one node pool."""

    name: str
    type: Literal["PROJECT", "DEPARTMENT"]
    node_pool: str
    quota: Amounts
    limit: Amounts
    fair_share: Amounts
    allocated: Amounts
    allocated_non_preemptible: Amounts
    requested: Amounts


class PoolBlockerView(Shape):
    node_pool: str
    message: str
    reason: dict[str, Any]


class WaitingView(Shape):
    """Why a workload waits, who holds the resources, and what would change that."""

    message: str
    #: The message in one line for the caller, with the workloads that hold what it waits for.
    headline: str
    #: If a cluster's scheduler decides and `message` is its own: Fairlead's own analysis.
    counted: str
    #: What keeps it from running, as data: the resource, how much is requested, how much is free.
    reason: dict[str, Any]
    pools: tuple[PoolBlockerView, ...]
    owners: tuple[OwnerFiguresView, ...]
    holders: tuple[HolderView, ...]
    holder_count: int
    remedies: tuple[str, ...]
    waits_for: tuple[str, ...] | UnsetType = UNSET


def render_eviction(note: EvictionNote, visible: VisibleProjects) -> EvictionView:
    is_named = may_name(note.by_project_id, visible)
    return EvictionView(
        at=iso(note.at),
        pod=note.pod,
        node=note.node,
        rule=note.rule,  # type: ignore[arg-type]  # only these exist
        message=note.message_for(visible),
        by_workload=note.by_workload if is_named and note.by_workload else None,
        by_workload_id=note.by_workload_id if is_named and note.by_workload_id else None,
        by_project=note.by_project if is_named and note.by_project else None,
        since=instant(note.since),
        gpus=note.gpus,
        over_quota_gpus=note.over_quota_gpus,
        quota_gpus=note.quota_gpus,
        moved_to=note.moved_to or None,
    )


def render_waiting(report: WaitingReport) -> WaitingView:
    return WaitingView(
        message=report.message,
        headline=report.headline,
        counted=report.counted,
        reason=msgspec.to_builtins(report.reason),
        pools=tuple(
            PoolBlockerView(node_pool=pool.node_pool, message=pool.message, reason=msgspec.to_builtins(pool.reason))
            for pool in report.pools
        ),
        owners=tuple(_owner(figures) for figures in report.owners),
        holders=tuple(_holder(holder) for holder in report.holders),
        holder_count=report.holder_count,
        remedies=report.remedies,
        waits_for=report.reason.waits_for or UNSET,
    )


def _amounts(values: tuple[float, float, float]) -> Amounts:
    return Amounts(gpu=values[0], cpu=values[1], memory=values[2])


def _owner(figures: OwnerFigures) -> OwnerFiguresView:
    return OwnerFiguresView(
        name=figures.name,
        type=figures.type,  # type: ignore[arg-type]  # one of the two
        node_pool=figures.node_pool,
        quota=_amounts(figures.quota),
        limit=_amounts(figures.limit),
        fair_share=_amounts(figures.fair_share),
        allocated=_amounts(figures.allocated),
        allocated_non_preemptible=_amounts(figures.allocated_non_preemptible),
        requested=_amounts(figures.requested),
    )


def _holder(holder: Holder) -> HolderView:
    return HolderView(
        workload=holder.workload,
        workload_id=holder.workload_id,
        submitted_by=holder.submitted_by,
        project=holder.project,
        node_pool=holder.node_pool,
        nodes=holder.nodes,
        holds=Amounts(gpu=holder.gpu, cpu=holder.cpu, memory=holder.memory),
        preemptible=holder.preemptible,
        is_over_quota=holder.is_over_quota,
        is_ending=holder.is_ending,
        since=instant(holder.since),
    )


async def get_snapshot(call: Call) -> Response:
    at = await read_time(call, "at")
    if at is not None:
        return as_json(await load_past_snapshot(call.context, call.caller, at))
    return as_json(await load_snapshot(call.context, call.caller))


async def replay_scheduling(call: Call) -> Response:
    since, until = await read_time(call, "since"), await read_time(call, "until")
    until = call.context.clock() if until is None else until
    since = until - _REPLAYED if since is None else since
    if until < since:
        raise wrong_parameter("until", "must not be before since")
    return as_json(await replay_cycles(call.context, call.caller, since, until))


class WhatIfRequest(Shape):
    """Changes to try out, one after the other."""

    changes: tuple[Change, ...]


async def ask_server_what_if(call: Call) -> Response:
    body = await read_body(call.request, "application/json")
    try:
        given = msgspec.json.decode(body, type=WhatIfRequest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(issues=(ComplianceIssue("", f"the body is not a list of changes: {error}"),)) from None
    with_times = query_boolean(call, "times") is True
    return as_json(await compare_changed(call.context, call.caller, given.changes, with_times=with_times))


async def list_past_submissions(call: Call) -> Response:
    since, until = await read_time(call, "since"), await read_time(call, "until")
    end = call.context.clock() if until is None else until
    since = max(0, end - _RECALLED) if since is None else since
    return as_json(await load_submission_history(call.context, call.caller, since, until))


class Suggestion(Shape):
    """The best change that would start a waiting workload, in a few words."""

    workload_id: Uuid
    message: str


class SuggestionList(Shape):
    suggestions: tuple[Suggestion, ...]


class OpenQuestions(Shape):
    """Questions of the caller that are not answered yet. One is answered at a time, the others wait for it."""

    count: int


async def list_suggestions(call: Call) -> Response:
    ids = [id for id in query_text(call, "workloadIds").split(",") if id]
    if len(ids) > _MAX_SUGGESTIONS:
        raise wrong_parameter("workloadIds", f"must have at most {_MAX_SUGGESTIONS} ids")
    suggestions = await suggest_to_caller(call.context, call.caller, tuple(dict.fromkeys(ids)))
    return as_json(
        SuggestionList(suggestions=tuple(Suggestion(workload_id=id, message=text) for id, text in suggestions.items()))
    )


async def count_questions(call: Call) -> Response:
    return as_json(OpenQuestions(count=call.context.questions.count_open(call.caller.name)))


SCHEDULING_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path="/api/v1/scheduling/snapshot",
        id="get_scheduling_snapshot",
        tag="Scheduling",
        summary="Get the scheduler's current or recorded input as a snapshot; `fairlead schedule` replays it",
        run=get_snapshot,
        parameters=(AT,),
        # Its format has its own reference page, with a JSON schema.
        answers={200: {"type": "object"}, 400: Error, 401: Error, 403: Error, 404: Error, 410: Error, 503: Error},
        is_addition=True,
    ),
    Operation(
        method="GET",
        path="/api/v1/scheduling/replay",
        id="replay_scheduling_cycles",
        tag="Scheduling",
        summary="Repeat recorded scheduling decisions, and list what this version decides differently",
        run=replay_scheduling,
        parameters=(
            Parameter(
                name="since",
                schema={"type": "string"},
                description="The beginning: a time or a revision; an hour before the end if it is left out.",
            ),
            Parameter(name="until", schema={"type": "string"}, description="The end; now if it is left out."),
        ),
        answers={200: ReplayAnswer, 400: Error, 401: Error, 403: Error, 404: Error, 410: Error, 503: Error},
        is_addition=True,
    ),
    Operation(
        method="GET",
        path="/api/v1/scheduling/history",
        id="list_past_submissions",
        tag="Scheduling",
        summary="List what was submitted in a period and how long it ran; `fairlead what-if history` replays it",
        run=list_past_submissions,
        parameters=(
            Parameter(
                name="since",
                schema={"type": "string"},
                description="The beginning: a time or a revision; 7 days before the end if it is left out.",
            ),
            Parameter(name="until", schema={"type": "string"}, description="The end; now if it is left out."),
        ),
        answers={200: SubmissionHistory, 400: Error, 401: Error, 403: Error, 404: Error, 410: Error, 503: Error},
        is_addition=True,
    ),
    Operation(
        method="POST",
        path="/api/v1/scheduling/what-if",
        id="ask_what_if",
        tag="Scheduling",
        summary="Show what changes to quotas, nodes and workloads would do to all workloads; nothing is changed",
        run=ask_server_what_if,
        body=RequestBody(schema=WhatIfRequest),
        parameters=(
            Parameter(
                name="times",
                schema={"type": "boolean", "default": False},
                description="Whether to estimate when waiting workloads start before and after; takes a few seconds.",
            ),
        ),
        answers={200: WhatIfAnswer, 400: Error, 401: Error, 403: Error, 404: Error, 503: Error},
        is_addition=True,
        is_question=True,
    ),
    Operation(
        method="GET",
        path="/api/v1/scheduling/suggestions",
        id="list_suggestions",
        tag="Scheduling",
        summary="Suggest the best change for waiting workloads, as many as can be found quickly",
        run=list_suggestions,
        parameters=(
            Parameter(
                name="workloadIds",
                schema={"type": "string"},
                description=f"Ids separated by commas, at most {_MAX_SUGGESTIONS}.",
            ),
        ),
        answers={200: SuggestionList, 400: Error, 401: Error, 403: Error, 503: Error},
        is_addition=True,
    ),
    Operation(
        method="GET",
        path="/api/v1/scheduling/questions",
        id="count_open_questions",
        tag="Scheduling",
        summary="Count the caller's questions to the scheduler that are not answered yet",
        run=count_questions,
        answers={200: OpenQuestions, 401: Error, 403: Error, 503: Error},
        is_addition=True,
    ),
)
