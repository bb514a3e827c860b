"""A stream of workload changes as server-sent events, resumable without a gap. An addition of Fairlead.

A client lists first and starts from the list's revision header; after a disconnect it sends the id of the last
message. Each message has the current workload, so a slow client skips steps but never the last state.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial

import msgspec
from starlette.responses import Response, StreamingResponse

from fairlead.api.http.body import query_integer, query_text
from fairlead.api.http.errors import Error, Gone, RevisionGone
from fairlead.api.http.guard import CHECK_SECONDS, StreamGuard
from fairlead.api.http.operation import Call, Operation, Parameter
from fairlead.api.http.shapes import Shape, Uuid
from fairlead.api.workloads.change_feed import GZIP_HEADER, Batch, ChangeFeeds, Message
from fairlead.api.workloads.reads import make_view_context
from fairlead.api.workloads.views import WorkloadView, render_workload_view
from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.workloads import read
from fairlead.model.errors import TooMuch
from fairlead.model.records.people import Caller

#: An empty message is sent after this time without a change, so that both ends notice a dead connection.
KEEP_ALIVE_SECONDS = 15.0
_MAX_REVISION = 2**62


class ChangeView(Shape):
    """A change: the newest event of a workload, and the workload as it is now (null once it is purged)."""

    revision: int
    workload_id: Uuid
    reason: str
    message: str
    workload: WorkloadView | None


def watch_operations(streams_most: int) -> tuple[Operation, ...]:
    feeds = ChangeFeeds(streams_most)

    async def watch(call: Call) -> Response:
        since = await _start(call)
        if feeds.is_full:
            raise TooMuch(f"{streams_most} watch streams are open, the limit of this server", 30)
        is_compressed = call.accepts("gzip")
        headers = {"cache-control": "no-store", "x-accel-buffering": "no", "vary": "accept-encoding"}
        headers |= {"content-encoding": "gzip"} if is_compressed else {}
        pieces = _encode(_watch(call, since, feeds), is_compressed=is_compressed)
        return StreamingResponse(pieces, 200, headers, "text/event-stream")

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
        revision = query_integer(call, "revision", None, 0, _MAX_REVISION)
        if revision is None:
            return newest
        since = revision
    if since > newest or since < await read.load_oldest_revision(call.context):
        raise Gone(f"Revision {since} is no longer kept; list again and watch from {newest}", newest)
    return since


async def _encode(batches: AsyncGenerator[Batch, None], *, is_compressed: bool) -> AsyncIterator[bytes]:
    async with contextlib.aclosing(batches):
        if is_compressed:
            yield GZIP_HEADER
        async for batch in batches:
            yield batch.deflated if is_compressed else batch.text


async def _watch(call: Call, since: int, feeds: ChangeFeeds) -> AsyncGenerator[Batch, None]:
    with feeds.count():
        yield Batch(since, since, [(since, b": watching\n\n")])
        async with contextlib.aclosing(_changes(call, since, feeds)) as batches:
            async for batch in batches:
                yield batch


async def _changes(call: Call, since: int, feeds: ChangeFeeds) -> AsyncGenerator[Batch, None]:
    """Changes until the caller loses access. If the caller sees other projects from now on, another feed has them."""
    project = query_text(call, "projectId")

    async def check(caller: Caller) -> None:
        access.check(caller, "workloads:read", project)

    guard, clock = StreamGuard(call, check), asyncio.get_running_loop().time
    sent_at = clock()
    while await guard.may_continue():
        seen = _seen(call.caller)
        load = partial(_load_messages, call.context, call.caller, project)
        async with feeds.join((project, *seen), call.context.store.subscribe, load, since) as feed:
            while await guard.may_continue() and _seen(call.caller) == seen:
                since, batches = await feed.read(since, CHECK_SECONDS)
                if not batches and clock() - sent_at >= KEEP_ALIVE_SECONDS:
                    # Clients remember an id without data, but do not show it.
                    batches = [Batch(since, since, [(since, b"id: %d\n\n" % since)])]
                for batch in batches:
                    yield batch
                    sent_at = clock()


def _seen(caller: Caller) -> tuple[object, object]:
    """What tells callers apart for whom the messages differ."""
    return access.visible_projects(caller), access.unreadable_specs(caller)


async def _load_messages(context: Context, caller: Caller, project: str, since: int) -> tuple[int, list[Message]]:
    """The events after a revision as messages, and the revision of the last one."""
    through, changes = await read.load_changes(context, caller, since, project)
    live = await read.load_live_pods(context, (workload for _, workload in changes if workload is not None))
    view_context = make_view_context(context, caller)
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
        text = b"id: %d\nevent: workload\ndata: %b\n\n" % (event.revision, msgspec.json.encode(change))
        messages.append((event.revision, text))
    return through, messages
