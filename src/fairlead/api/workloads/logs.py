"""Logs of a workload's pods as plain text, streamed while they are written. An addition of Fairlead."""

from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse

from fairlead.api.http.body import query_boolean, query_integer, query_text, wrong_parameter
from fairlead.api.http.errors import Error
from fairlead.api.http.guard import StreamGuard
from fairlead.api.http.operation import Call, Operation, Parameter
from fairlead.api.http.shapes import WORKLOAD_ID
from fairlead.control.lists import normal_id
from fairlead.control.workloads.sessions import LogRequest, load_session_workload, pod_logs
from fairlead.model.clock import SECOND, Millis, from_iso


def read_since(text: str, now: Millis) -> Millis | None:
    """A time: ISO-8601, or a number of seconds ago."""
    if not text:
        return None
    try:
        return now - round(float(text) * SECOND) if text.replace(".", "", 1).isdigit() else from_iso(text)
    except (ValueError, OverflowError) as error:
        raise wrong_parameter("since", "must be an ISO-8601 date and time, or a number of seconds ago") from error


async def _first(stream: AsyncIterator[bytes]) -> tuple[bytes, AsyncIterator[bytes]]:
    """Wait for the first piece, so that errors still get their own status."""
    try:
        return await anext(stream), stream
    except StopAsyncIteration:
        return b"", stream


async def _joined(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first:
        yield first
    async for piece in rest:
        yield piece


async def get_logs(call: Call) -> Response:
    follow = bool(query_boolean(call, "follow"))
    request = LogRequest(
        pod_id="",
        attempt=query_integer(call, "attempt", None, 1),
        follow=follow,
        tail=query_integer(call, "tail", None, 0),
        since=read_since(query_text(call, "since"), call.context.clock()),
        timestamps=bool(query_boolean(call, "timestamps")),
        limit_bytes=query_integer(call, "limitBytes", None, 1),
    )
    workload_id = normal_id(call.path["workloadId"], "workload")
    previous = bool(query_boolean(call, "previous"))
    pod = query_text(call, "pod")
    stream = await pod_logs(call.context, call.caller, workload_id, pod, request, previous)
    if follow:
        guard = StreamGuard(call, lambda caller: load_session_workload(call.context, caller, "logs", workload_id))
        stream = guard.limit(stream)
    else:
        stream = _joined(*await _first(stream))
    return StreamingResponse(stream, 200, {"cache-control": "no-store", "x-accel-buffering": "no"}, "text/plain")


_INTEGER = {"type": "integer", "format": "int32", "minimum": 0}
_POSITIVE = {"type": "integer", "format": "int32", "minimum": 1}
_BOOLEAN = {"type": "boolean", "default": False}

LOG_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path="/api/v1/workloads/{workloadId}/logs",
        id="get_workload_logs",
        tag="Pods",
        summary="Get the logs of a pod of a workload",
        run=get_logs,
        parameters=(
            WORKLOAD_ID,
            Parameter(
                name="pod",
                schema={"type": "string"},
                description="The pod's name; default: the master or leader, or the newest pod.",
            ),
            Parameter(name="attempt", schema=_POSITIVE, description="The attempt of the pod; default: the latest."),
            Parameter(name="previous", schema=_BOOLEAN, description="The previous attempt."),
            Parameter(name="follow", schema=_BOOLEAN, description="Follow the logs until the pod ends."),
            Parameter(name="tail", schema=_INTEGER, description="Only this number of lines from the end."),
            Parameter(
                name="since",
                schema={"type": "string"},
                description="Only lines since this time, or since this number of seconds ago.",
            ),
            Parameter(name="timestamps", schema=_BOOLEAN, description="Start each line with its time."),
            Parameter(name="limitBytes", schema=_POSITIVE, description="The maximum number of bytes."),
        ),
        answers={200: {"type": "string"}, 401: Error, 403: Error, 404: Error, 500: Error, 503: Error},
        content_type="text/plain",
        is_addition=True,
    ),
)
