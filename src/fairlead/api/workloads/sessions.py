"""Commands, terminals and connections into pods over HTTP, and sign-in links for URLs. An addition of Fairlead.

A session is one POST whose body and answer are streamed at the same time (`duplex`), so it needs no other protocol and
passes proxies that stream. A command's session consists of frames (`FRAME`): a channel, a length, bytes; a port's
session is only bytes.
"""

import asyncio
import contextlib
import socket
import struct

import msgspec
from starlette.responses import Response
from starlette.types import Send

from fairlead.api.http.body import query_boolean, query_integer, query_text, wrong_parameter
from fairlead.api.http.crud import failing
from fairlead.api.http.duplex import STREAM, DuplexHandlers, DuplexResponse
from fairlead.api.http.errors import Error
from fairlead.api.http.guard import StreamGuard
from fairlead.api.http.one_time import LINK_LIFETIME
from fairlead.api.http.operation import Call, Handler, Operation, Parameter, RequestBody, as_json
from fairlead.api.http.shapes import WORKLOAD_ID
from fairlead.api.proxy.access import UrlGate
from fairlead.control.audit import subject_of
from fairlead.control.lists import normal_id
from fairlead.control.workloads.sessions import (
    ExecRequest,
    Session,
    attach,
    connect,
    load_session_workload,
    run_command,
    urls_of,
)
from fairlead.model.clock import iso
from fairlead.model.errors import ComplianceIssue, Invalid

FRAME = struct.Struct("!BI")
#: Channels to the pod: input, its end for this session, the terminal's new size as `COLUMNSxROWS`, its end for all.
INPUT, END, SIZE, FINISH = 0, 1, 2, 3
#: Channels from the pod.
_CHANNELS = {"output": 1, "error": 2, "exit": 3}
_MAX_FRAME_BYTES = 1 << 20


def _duplex_of(session: Session, guard: StreamGuard) -> DuplexResponse:
    """The frames of a command's session."""
    pending = bytearray()

    async def inward(data: bytes) -> None:
        pending.extend(data)
        while len(pending) >= FRAME.size:
            channel, length = FRAME.unpack_from(pending)
            if length > _MAX_FRAME_BYTES:
                raise ValueError("the frame's length is not valid")
            if len(pending) < FRAME.size + length:
                return
            content = bytes(pending[FRAME.size : FRAME.size + length])
            del pending[: FRAME.size + length]
            if channel == INPUT:
                await session.write(content)
            elif channel == END:
                session.close_input()
            elif channel == FINISH:
                session.finish_input()
            elif channel == SIZE:
                columns, _, rows = content.partition(b"x")
                if columns.isdigit() and rows.isdigit():
                    session.resize(min(int(columns), 9999), min(int(rows), 9999))

    async def outward(send: Send) -> None:
        while True:
            name, content = await session.read()
            frame = FRAME.pack(_CHANNELS[name], len(content)) + content
            await send({"type": "http.response.body", "body": frame, "more_body": True})
            if name == "exit":
                return

    return DuplexResponse(DuplexHandlers(inward, outward, session.close_input, session.close), guard)


async def execute(call: Call) -> Response:
    command = tuple(call.request.query_params.getlist("command"))
    if not command or not command[0] or any("\x00" in word for word in command):
        raise wrong_parameter("command", "is required: the command to run, one parameter per word")
    request = ExecRequest(
        pod_id="",
        command=command,
        tty=bool(query_boolean(call, "tty")),
        stdin=bool(query_boolean(call, "stdin")),
        columns=query_integer(call, "columns", 80, 1, 9999),
        rows=query_integer(call, "rows", 24, 1, 9999),
    )
    workload_id = await _audited_id(call, "exec")
    session = await run_command(call.context, call.caller, workload_id, query_text(call, "pod"), request)
    return _duplex_of(session, _guard(call, "exec", workload_id))


async def _audited_id(call: Call, verb: str) -> str:
    """The id of the workload, which the audit names, if the caller may open such a session into it."""
    workload_id = normal_id(call.path["workloadId"], "workload")
    call.audited = subject_of(await load_session_workload(call.context, call.caller, verb, workload_id))
    return workload_id


def _guard(call: Call, verb: str, workload_id: str) -> StreamGuard:
    return StreamGuard(call, lambda caller: load_session_workload(call.context, caller, verb, workload_id))


async def attach_to(call: Call) -> Response:
    workload_id = await _audited_id(call, "attach")
    from_start = bool(query_boolean(call, "fromStart"))
    session = await attach(call.context, call.caller, workload_id, query_text(call, "pod"), from_start=from_start)
    return _duplex_of(session, _guard(call, "attach", workload_id))


async def forward_port(call: Call) -> Response:
    port = query_integer(call, "port", None, 1, 65_535)
    if port is None:
        raise Invalid(
            "The query parameter port is required", (ComplianceIssue("port", "is required: a port of the pod"),)
        )
    workload_id = await _audited_id(call, "port-forward")
    file = await connect(call.context, call.caller, workload_id, query_text(call, "pod"), port)
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=file))

    async def inward(data: bytes) -> None:
        with contextlib.suppress(OSError):
            writer.write(data)
            await writer.drain()

    async def outward(send: Send) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(65_536):
                await send({"type": "http.response.body", "body": piece, "more_body": True})

    def ended() -> None:
        with contextlib.suppress(OSError):
            writer.write_eof()

    async def close() -> None:
        writer.close()

    return DuplexResponse(DuplexHandlers(inward, outward, ended, close), _guard(call, "port-forward", workload_id))


class SignInLink(msgspec.Struct, rename="camel"):
    """A URL of the workload, and a one-time link that signs a browser in to it."""

    url: str
    container_port: int
    sign_in_url: str
    expires_at: str


class SignInLinks(msgspec.Struct):
    links: list[SignInLink]


def url_operations(gate: UrlGate) -> tuple[Operation, ...]:
    async def make_links(call: Call) -> Response:
        workload_id = normal_id(call.path["workloadId"], "workload")
        routes = await urls_of(call.context, call.caller, workload_id)
        expires = iso(call.context.clock() + LINK_LIFETIME)
        links = [SignInLink(url, route.port, gate.make_link(call.caller, route, url), expires) for route, url in routes]
        return as_json(SignInLinks(links), headers={"cache-control": "no-store"})

    return (
        Operation(
            method="POST",
            path="/api/v1/workloads/{workloadId}/sign-in-links",
            id="create_sign_in_links",
            tag="Pods",
            summary="Create one-time links that sign a browser in to the workload's URLs",
            run=make_links,
            parameters=(WORKLOAD_ID,),
            answers={200: SignInLinks, 401: Error, 403: Error, 404: Error, 500: Error, 503: Error},
            is_addition=True,
        ),
    )


_BOOLEAN = {"type": "boolean", "default": False}
_POD = Parameter(name="pod", schema={"type": "string"}, description="The pod's name; default: the first running pod.")
_FRAMES = RequestBody(schema={"type": "string", "format": "binary"}, content_type=STREAM, required=False)
_ANSWERS = {**failing(401, 403, 404, 500, 503), 200: {"type": "string", "format": "binary"}}


def _operation(path: str, id: str, summary: str, run: Handler, *parameters: Parameter) -> Operation:
    return Operation(
        method="POST",
        path=f"/api/v1/workloads/{{workloadId}}/{path}",
        id=id,
        tag="Pods",
        summary=summary,
        run=run,
        parameters=(WORKLOAD_ID, _POD, *parameters),
        body=_FRAMES,
        answers=_ANSWERS,
        content_type=STREAM,
        is_addition=True,
        is_session=True,
    )


SESSION_OPERATIONS: tuple[Operation, ...] = (
    _operation(
        "exec",
        "execute_in_workload",
        "Run a command in a pod",
        execute,
        Parameter(
            name="command",
            schema={"type": "array", "items": {"type": "string"}, "minItems": 1},
            description="The words of the command, one parameter each.",
        ),
        Parameter(name="tty", schema=_BOOLEAN, description="Whether the command gets a terminal."),
        Parameter(name="stdin", schema=_BOOLEAN, description="Whether the body's frames are the command's input."),
        Parameter(name="columns", schema={"type": "integer", "minimum": 1, "maximum": 9999}),
        Parameter(name="rows", schema={"type": "integer", "minimum": 1, "maximum": 9999}),
    ),
    _operation(
        "attach",
        "attach_to_workload",
        "Attach to a pod's main process",
        attach_to,
        Parameter(
            name="fromStart",
            schema=_BOOLEAN,
            description="Whether the answer begins with the pod's earlier output, on engines that keep it.",
        ),
    ),
    _operation(
        "port-forward",
        "forward_port_of_workload",
        "Connect to a port of a pod",
        forward_port,
        Parameter(name="port", schema={"type": "integer", "minimum": 1, "maximum": 65535}),
    ),
)
