"""The routes of every workload kind, from `KINDS`: create, get, delete; suspend, resume and change if the kind has
them. Each parses, calls one use case and formats; everything else is in the kind's own file.
"""

from collections.abc import Awaitable, Callable

import msgspec
from starlette.responses import Response

from fairlead.api.http.body import query_boolean, query_choice, query_text, read_body, wrong_parameter
from fairlead.api.http.errors import ACCEPTED, Error, SubmissionError
from fairlead.api.http.operation import (
    AnyOf,
    Call,
    Handler,
    JsonAnswer,
    JsonSchema,
    Operation,
    Parameter,
    RequestBody,
    as_json,
)
from fairlead.api.http.shapes import WORKLOAD_ID, Accepted
from fairlead.control.assets.caller_environments import QUERY_NAME
from fairlead.control.context import Context
from fairlead.control.explain.feasibility import submit_if_it_can_start
from fairlead.control.explain.plan import plan_submission, submit_as_planned
from fairlead.control.lists import normal_id
from fairlead.control.workloads import lifecycle, read
from fairlead.control.workloads.submit import submit
from fairlead.control.workloads.update import update
from fairlead.foresight.plan import PlanAnswer
from fairlead.formats.rest.requests import read_changes, read_submission, render_workload
from fairlead.formats.yaml.fields import resources
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind, noun_of
from fairlead.model.dialect import Dialect
from fairlead.model.english import with_article
from fairlead.model.errors import Invalid
from fairlead.model.records.people import Caller
from fairlead.model.records.workload import Workload
from fairlead.model.submission import Submission

LifecycleAction = Callable[[Context, Caller, str, str, str], Awaitable[Workload]]


def _addition(name: str, schema: JsonSchema, description: str) -> Parameter:
    return Parameter(name=name, schema=schema, description=f"An addition of Fairlead: {description}", is_addition=True)


DRY_RUN = _addition(
    "dryRun",
    {"type": "string", "enum": ["false", "true", "plan"], "default": "false"},
    "creates nothing. `true` answers 200 with the workload that would be created, `plan` answers 200 with what would "
    "happen: where it starts or what it waits for, and whom it evicts.",
)
ORIGIN = _addition("origin", {"type": "string"}, "the kind of the workload YAML that the workload comes from.")
MUST_FIT = _addition(
    "mustFit",
    {"type": "boolean", "default": False},
    "refuses a workload that could not start even if all nodes were empty, or that waits for one that has failed.",
)
CALLER_ENVIRONMENT = _addition(
    QUERY_NAME, {"type": "string"}, "the id of a stored caller's environment, for workloads on one machine."
)
TIMES = _addition(
    "times",
    {"type": "boolean", "default": True},
    "whether a plan (`dryRun=plan`) estimates when it starts and whom it delays by how much; false is quicker.",
)
PLAN_ID = _addition(
    "planId", {"type": "string"}, "the id of a plan (`dryRun=plan`); answers 409 if it no longer holds."
)
SUSPENDED = _addition(
    "suspended", {"type": "boolean", "default": False}, "creates it suspended; it starts when it is resumed."
)
_ACCEPTED_BODY = msgspec.json.encode(Accepted(202, ACCEPTED))
_FAILURES_OF_CREATION = {401: Error, 403: Error, 503: Error}
_FAILURES = {401: Error, 403: Error, 404: Error, 500: Error, 503: Error}


def request_schema(kind: Kind) -> str:
    """The name of the schema of a creation request of this kind."""
    return f"{kind.title}CreationRequest"


def change_schema(kind: Kind) -> str:
    """The name of the schema of an update request of this kind."""
    return f"{kind.title}UpdateRequest"


def kind_operations() -> tuple[Operation, ...]:
    return tuple(
        msgspec.structs.replace(operation, is_addition=kind.is_addition)
        for kind in KINDS.values()
        for operation in _operations(kind)
    )


def _operations(kind: Kind) -> list[Operation]:
    base = f"/api/v1/workloads/{kind.rest}"
    noun = noun_of(kind)
    word = kind.rest.replace("-", "_").removesuffix("s")
    one = f"{base}/{{workloadId}}"
    operations = [
        Operation(
            method="POST",
            path=base,
            id=f"create_{word}",
            tag=kind.title,
            summary=f"Create {with_article(noun)}",
            run=_creator(kind),
            parameters=(DRY_RUN, ORIGIN, MUST_FIT, CALLER_ENVIRONMENT, TIMES, PLAN_ID, SUSPENDED),
            body=RequestBody(schema=request_schema(kind)),
            answers={
                200: AnyOf(kind.title, PlanAnswer),
                202: kind.title,
                400: _refusal(kind),
                409: Error,
                **_FAILURES_OF_CREATION,
            },
        ),
        Operation(
            method="GET",
            path=one,
            id=f"get_{word}",
            tag=kind.title,
            summary=f"Get {with_article(noun)}",
            run=_getter(kind),
            parameters=(WORKLOAD_ID,),
            answers={200: kind.title, **_FAILURES},
        ),
        _lifecycle_operation(
            kind, "DELETE", one, f"delete_{word}", f"Delete {with_article(noun)} in any phase", lifecycle.delete
        ),
    ]
    if kind.changes is not None:
        operations.append(
            Operation(
                method="PATCH",
                path=one,
                id=f"update_{word}_spec",
                tag=kind.title,
                summary=f"Change {with_article(noun)} while it runs",
                run=_changer(kind),
                parameters=(WORKLOAD_ID,),
                body=RequestBody(schema=change_schema(kind)),
                answers={202: kind.title, 400: Error, **_FAILURES},
            )
        )
    if kind.can_suspend:
        suspend = f"Suspend {with_article(noun)}: its pods are stopped"
        resume = f"Resume a suspended {noun}"
        operations += [
            _lifecycle_operation(kind, "POST", f"{one}/suspend", f"suspend_{word}", suspend, lifecycle.suspend),
            _lifecycle_operation(kind, "POST", f"{one}/resume", f"resume_{word}", resume, lifecycle.resume),
        ]
    return operations


async def _create_as_asked(call: Call, kind: Kind, submission: Submission) -> Response:
    """Create it, plan it or try it out, as the query says."""
    arguments = (call.context, call.caller, submission, call.request_id)
    if query_text(call, DRY_RUN.name) == "plan":
        return as_json(
            await plan_submission(*arguments, with_times=query_boolean(call, TIMES.name, default=True) is True)
        )
    if _tries_out(call):
        return JsonAnswer(render_workload(kind, await submit(*arguments, is_dry_run=True)), 200)
    plan_id = query_text(call, PLAN_ID.name)
    if plan_id:
        workload = await submit_as_planned(*arguments, plan_id)
    elif query_boolean(call, MUST_FIT.name):
        workload = await submit_if_it_can_start(*arguments)
    else:
        workload = await submit(*arguments)
    return JsonAnswer(render_workload(kind, workload), 202)


def _tries_out(call: Call) -> bool:
    try:
        return query_boolean(call, DRY_RUN.name) is True
    except Invalid:
        raise wrong_parameter(DRY_RUN.name, "must be true, false or plan") from None


def _creator(kind: Kind) -> Handler:
    async def create(call: Call) -> Response:
        body = await read_body(call.request, "application/json")
        if not body:
            raise Invalid(f"The request has no body; send the {noun_of(kind)} as a JSON object")
        submission = read_submission(kind, body)
        if not call.request.scope["query_string"]:
            workload = await submit(call.context, call.caller, submission, call.request_id)
            return JsonAnswer(render_workload(kind, workload), 202)
        submission = _with_origin(kind, submission, query_choice(call, ORIGIN.name, tuple(resources())))
        environment = query_text(call, CALLER_ENVIRONMENT.name)
        is_active = not _is_suspended(call, kind)
        submission = msgspec.structs.replace(submission, caller_environment=environment, is_active=is_active)
        return await _create_as_asked(call, kind, submission)

    return create


def _is_suspended(call: Call, kind: Kind) -> bool:
    is_wanted = query_boolean(call, SUSPENDED.name) is True
    if is_wanted and not kind.can_suspend:
        raise wrong_parameter(SUSPENDED.name, f"must be false: {with_article(noun_of(kind))} cannot be suspended")
    return is_wanted


def _with_origin(kind: Kind, submission: Submission, origin: str) -> Submission:
    """The submission with its original kind; if that is another one, the workload gets a condition."""
    if not origin:
        return submission
    remark = f"was written as a {origin}; it runs as a {kind.resource}"
    remarks = submission.remarks if origin == kind.resource else (*submission.remarks, ("kind", remark))
    return msgspec.structs.replace(submission, dialect=Dialect.WORKLOAD_YAML, remarks=remarks)


def _changer(kind: Kind) -> Handler:
    async def change(call: Call) -> Response:
        workload_id = normal_id(call.path["workloadId"], "workload")
        wanted = read_changes(kind, await read_body(call.request, "application/json"))
        workload = await update(call.context, call.caller, kind.key, workload_id, wanted, call.request_id)
        return JsonAnswer(render_workload(kind, workload), 202)

    return change


def _refusal(kind: Kind) -> type[Error]:
    return SubmissionError if kind.lists_issues else Error


def _getter(kind: Kind) -> Handler:
    async def get(call: Call) -> Response:
        workload = await read.load_workload(call.context, call.caller, call.path["workloadId"], kind.key)
        return JsonAnswer(render_workload(kind, workload))

    return get


def _lifecycle_operation(
    kind: Kind, method: str, path: str, id: str, summary: str, change: LifecycleAction
) -> Operation:
    async def run(call: Call) -> Response:
        workload_id = normal_id(call.path["workloadId"], "workload")
        await change(call.context, call.caller, kind.key, workload_id, call.request_id)
        return JsonAnswer(_ACCEPTED_BODY, 202)

    return Operation(
        method=method,
        path=path,
        id=id,
        tag=kind.title,
        summary=summary,
        run=run,
        parameters=(WORKLOAD_ID,),
        answers={202: Accepted, **_FAILURES},
    )
