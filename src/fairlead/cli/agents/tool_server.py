"""The tools for agents as an MCP server: which are offered, and how HTTP is guarded. Needs the package `mcp`."""

import hmac
import secrets
import socket
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from fairlead import __version__
from fairlead.cli.agents.agent_tools import AgentTools, UnknownKind
from fairlead.cli.session.session import ServerSession
from fairlead.cli.terminal.console import Console
from fairlead.client import ClientError
from fairlead.client.json_object import Json

P = ParamSpec("P")

_READING = ("explain", "plan", "what_if", "estimate", "queue_overview", "audit_quota", "diagnose_eviction", "usage")
_INSTRUCTIONS = (
    "Tools of Fairlead, a workload orchestrator for AI clusters. Ask `explain` why a workload waits and what would "
    "start it, `plan` before submitting, `estimate` when it starts, `what_if` what a change would do. Answers come "
    "from the scheduler itself and name their assumptions. Workloads that the user may not see are counted, not named."
)
_LOOPBACK = "127.0.0.1"


def _with_error_text(tool: Callable[P, Json]) -> Callable[P, Json]:
    """An agent reads the message of a refusal; without this it would learn only that something failed."""

    @wraps(tool)
    def call(*given: P.args, **named: P.kwargs) -> Json:
        try:
            return tool(*given, **named)
        except (ClientError, UnknownKind) as error:
            raise ToolError(str(error)) from error

    return call


def make_tools(session: ServerSession, allowed: frozenset[str]) -> MCPServer:
    """A server with the reading tools, and those changing ones that are allowed."""
    server = MCPServer(
        "fairlead", title="Fairlead", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING"
    )
    tools = AgentTools(session)
    for name in _READING:
        server.add_tool(
            _with_error_text(getattr(tools, name)), name=name, annotations=ToolAnnotations(read_only_hint=True)
        )
    for name in sorted(allowed):
        destructive = ToolAnnotations(read_only_hint=False, destructive_hint=name != "submit")
        server.add_tool(_with_error_text(getattr(tools, name)), name=name, annotations=destructive)
    return server


class RequireToken:
    """Answers 401 to whoever does not send the token: the tools act with the rights of the user who started them."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app = app
        self.expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
            if not hmac.compare_digest(given, self.expected):
                refusal = PlainTextResponse("Send the token of this server as `Authorization: Bearer TOKEN`.\n", 401)
                await refusal(scope, receive, send)
                return
        await self.app(scope, receive, send)


def serve_http(server: MCPServer, console: Console, port: int, token: str) -> None:
    """Listen on loopback until interrupted. A token that was not given is made and printed."""
    app = RequireToken(server.streamable_http_app(host=_LOOPBACK), token or (new_token := secrets.token_urlsafe(32)))
    listener = socket.create_server((_LOOPBACK, port))
    console.complain(f"Listening on http://{_LOOPBACK}:{listener.getsockname()[1]}/mcp")
    if not token:
        console.complain(f"Token: {new_token}")
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
