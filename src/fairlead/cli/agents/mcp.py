"""`mcp`: tools for coding agents over the Model Context Protocol, on standard input and output or over HTTP.

The package `mcp` is an extra of Fairlead and takes a second to import, so what needs it is loaded only here.
"""

import os

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.flags import PROJECT, Flag, UsageError
from fairlead.cli.nouns import load_module
from fairlead.cli.session.session import ServerSession

SKILL = os.path.join(os.path.dirname(__file__), "SKILL.md")
#: What `--allow` may name; nothing else can be changed through the tools.
ALLOWED = ("submit", "suspend")
_FLAGS = (
    PROJECT,
    Flag(
        "allow",
        "Also offer tools that make changes: submit, suspend, or both separated by a comma",
        placeholder="TOOLS",
    ),
    Flag("skill", "Print a skill file for coding agents, and do nothing else", "boolean"),
    Flag("http", "Listen on this port of 127.0.0.1 instead; 0 takes a free one", "integer", placeholder="PORT"),
)
_DETAILS = """\
Agents start it themselves if their settings contain a line such as
  {"mcpServers": {"fairlead": {"command": "fairlead", "args": ["mcp"]}}}
Tools act with your rights, and only read unless --allow is given.
Over HTTP every request needs the token that is printed at the start, or the
one in FAIRLEAD_MCP_TOKEN.
`fairlead mcp --skill` prints a file that tells an agent how to use Fairlead;
save it as SKILL.md where your agent looks for skills.
The tools need the extra `mcp` of the package; see the page for agents."""


def commands(_noun: str) -> tuple[Command, ...]:
    return (Command("", "Serve tools for coding agents (Model Context Protocol)", _serve, _FLAGS, details=_DETAILS),)


def _serve(invocation: Invocation) -> int:
    if invocation.get("skill"):
        with open(SKILL, encoding="utf-8") as file:
            invocation.environment.stdout.write(file.read())
        return OK
    allowed = [word.strip() for word in str(invocation.get("allow", "")).split(",") if word.strip()]
    unknown = [word for word in allowed if word not in ALLOWED]
    if unknown:
        raise UsageError(f"--allow '{unknown[0]}' is not a tool that makes changes; choose from {', '.join(ALLOWED)}.")
    session = ServerSession(invocation)
    try:
        tool_server = load_module("agents.tool_server")
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("mcp"):
            raise
        session.console.complain(
            "The package `mcp` is missing. Install Fairlead with its extra `mcp`: pip install 'FILE.whl[mcp]'."
        )
        return FAILED
    tools = tool_server.make_tools(session, frozenset(allowed))
    port = invocation.get("http")
    if port is None:
        tools.run("stdio")
    else:
        token = invocation.environment.environ.get("FAIRLEAD_MCP_TOKEN", "")
        tool_server.serve_http(tools, session.console, port, token)
    session.close()
    return OK
