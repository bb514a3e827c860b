"""Routes for the environment and the piped input of a caller. An addition of Fairlead, for its command line."""

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from fairlead.api.http.body import receive_json
from fairlead.api.http.errors import Error
from fairlead.api.http.operation import Call, Operation, RequestBody, as_json
from fairlead.api.http.shapes import WORKLOAD_ID, Shape, Uuid
from fairlead.control.assets.caller_environments import create
from fairlead.control.workloads.read import load_caller_environment
from fairlead.model.records.caller_environment import CallerEnvironment
from fairlead.model.spec.fields import Spec


class CallerEnvironmentRequest(Spec, frozen=True, kw_only=True):
    """What a workload takes over from its caller: environment variables, and the standard input in base64."""

    variables: Annotated[dict[str, str], Meta(max_length=10_000)] = msgspec.field(default_factory=dict)
    input: Annotated[str, Meta(max_length=1024 * 1024)] = ""


class CallerEnvironmentView(Shape):
    """The names of the variables and the size of the input; values are never shown."""

    id: Uuid
    names: tuple[str, ...]
    input_bytes: int


def _render(record: CallerEnvironment) -> CallerEnvironmentView:
    return CallerEnvironmentView(id=record.id, names=record.names, input_bytes=record.input_bytes)


async def create_environment(call: Call) -> Response:
    body = await receive_json(call, CallerEnvironmentRequest)
    record = await create(call.context, call.caller, body.variables, body.input)
    return as_json(_render(record), 201)


async def get_environment(call: Call) -> Response:
    return as_json(_render(await load_caller_environment(call.context, call.caller, call.path["workloadId"])))


_FAILURES = {401: Error, 403: Error, 500: Error, 503: Error}
CALLER_ENVIRONMENT_OPERATIONS = (
    Operation(
        method="POST",
        path="/api/v1/caller-environments",
        id="create_caller_environment",
        tag="Workloads",
        summary="Store the caller's environment for a submission that follows",
        run=create_environment,
        body=RequestBody(schema=CallerEnvironmentRequest),
        answers={201: CallerEnvironmentView, 400: Error, 429: Error, **_FAILURES},
        is_addition=True,
    ),
    Operation(
        method="GET",
        path="/api/v1/workloads/{workloadId}/caller-environment",
        id="get_caller_environment",
        tag="Workloads",
        summary="List the names of the variables that a workload took over from its caller",
        run=get_environment,
        parameters=(WORKLOAD_ID,),
        answers={200: CallerEnvironmentView, 404: Error, **_FAILURES},
        is_addition=True,
    ),
)
