"""A stream of workload changes as server-sent events, resumable without a gap. An addition of Fairlead.

A client lists first and starts from the list's revision header; after a disconnect it sends the id of the last
message. Each message has the current workload, so a slow client skips steps but never the last state.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

import msgspec
from starlette.responses import Response, StreamingResponse

from fairlead.api.http.body import query_integer, query_text
from fairlead.api.http.errors import Error, Gone, RevisionGone
from fairlead.api.http.guard import CHECK_SECONDS, StreamGuard
from fairlead.api.http.operation import Call, Operation, Parameter
from fairlead.api.http.shapes import Shape, Uuid
from fairlead.api.workloads.reads import make_view_context
from fairlead.api.workloads.views import WorkloadView, render_workload_view
from fairlead.control import access
from fairlead.control.workloads import read
from fairlead.model.errors import TooMuch
from fairlead.model.records.people import Caller

#: An empty message is sent after this time without a change, so that both ends notice a dead connection.
KEEP_ALIVE_SECONDS = 15.0
_GREATEST_REVISION = 2**62


class ChangeView(Shape):
    """A change: the newest event of a workload, and the workload as it is now (null once it is purged)."""

    revision: int
    workload_id: Uuid
    reason: str
    message: str
    workload: WorkloadView | None


def watch_operations(streams_most: int) -> tuple[Operation, ...]:
    open_streams = 0

    async def watch(call: Call) -> Response:
        nonlocal open_streams
        since = await _start(call)
        if open_streams >= streams_most:
            raise TooMuch(f"{streams_most} watch streams are open, the limit of this server", 30)
        open_streams += 1

        async def counted() -> AsyncIterator[bytes]:
            nonlocal open_streams
            try:
                async with contextlib.aclosing(_changes(call, since)) as changes:
                    async for message in changes:
                        yield message
            finally:
                open_streams -= 1

        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(counted(), 200, headers, "text/event-stream")

    operation = Operation(
        method="GET",
        path="/api/v1/workloads/watch",
        id="watch_workloads",
        tag="Workloads",
        summary="Watch workload changes as server-sent events",
        run=watch,
        parameters=(
            Parameter(
                name="revision",
                schema={"type": "integer", "format": "int64", "minimum": 0},
                description="Changes after this revision, the X-Fairlead-Revision header of a list; default: now.",
            ),
            Parameter(
                name="Last-Event-ID",
                place="header",
                schema={"type": "string"},
                description="The id of the last received message; it takes precedence over `revision`.",
            ),
            Parameter(name="projectId", schema={"type": "string"}, description="Only workloads of this project."),
        ),
        answers={200: ChangeView, 401: Error, 403: Error, 410: RevisionGone, 500: Error, 503: Error},
        content_type="text/event-stream",
        is_addition=True,
    )
    return (operation,)


async def _start(call: Call) -> int:
    """The revision to start after; raises `Gone` if later events were deleted, or if it never existed."""
    newest = await read.load_revision(call.context)
    last = call.request.headers.get("last-event-id", "")
    if last.isascii() and last.isdigit() and len(last) < 19:
        since = int(last)
    else:
        asked = query_integer(call, "revision", None, 0, _GREATEST_REVISION)
        if asked is None:
            return newest
        since = asked
    if since > newest or since < await read.load_oldest_revision(call.context):
        raise Gone(f"Revision {since} is no longer kept; list again and watch from {newest}", newest)
    return since


async def _changes(call: Call, since: int) -> AsyncGenerator[bytes, None]:
    """Messages until the caller loses access. A commit during a read sets the flag again."""
    changed = asyncio.Event()
    changed.set()

    def hear(revision: int, subjects: Sequence[tuple[str, str]]) -> None:
        changed.set()

    async def check(caller: Caller) -> None:
        access.check(caller, "workloads:read", project)

    project = query_text(call, "projectId")
    guard, silent_seconds = StreamGuard(call, check), 0.0
    stop = call.context.store.subscribe(hear)
    try:
        yield b": watching\n\n"
        while await guard.may_continue():
            if changed.is_set():
                changed.clear()
                since, messages = await _load_messages(call, since, project)
                if messages:
                    # There may be more than one read returns.
                    changed.set()
                for message in messages:
                    silent_seconds = 0.0
                    yield message
            elif not await _wait(changed):
                silent_seconds += CHECK_SECONDS
            if silent_seconds >= KEEP_ALIVE_SECONDS:
                silent_seconds = 0.0
                # Clients remember an id without data, but do not show it.
                yield b"id: %d\n\n" % since
    finally:
        stop()


async def _load_messages(call: Call, since: int, project: str) -> tuple[int, list[bytes]]:
    """The events after a revision as messages, and the revision of the last one."""
    context = call.context
    through, changes = await read.load_changes(context, call.caller, since, project)
    live = await read.load_live_pods(context, (workload for _, workload in changes if workload is not None))
    view_context = make_view_context(call)
    messages = []
    for event, workload in changes:
        view = None if workload is None else render_workload_view(workload, live.get(workload.id, ()), view_context)
        change = ChangeView(
            revision=event.revision,
            workload_id=event.subject_id,
            reason=event.reason,
            message=event.message_for(view_context.visible),
            workload=view,
        )
        messages.append(b"id: %d\nevent: workload\ndata: %b\n\n" % (event.revision, msgspec.json.encode(change)))
    return through, messages


async def _wait(changed: asyncio.Event) -> bool:
    """Whether a change came before it is time to check the caller's rights again."""
    try:
        await asyncio.wait_for(changed.wait(), CHECK_SECONDS)
    except TimeoutError:
        return False
    return True
