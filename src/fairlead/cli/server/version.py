"""`version`: the version of the client and, if it answers, of the server."""

from fairlead import __version__
from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT
from fairlead.cli.session.session import ServerSession
from fairlead.client import ClientError


def commands(_noun: str) -> tuple[Command, ...]:
    return (Command("", "Show the versions of client and server", _version, flags=OUTPUT),)


def _version(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    server = ""
    try:
        session.client.clusters()
        server = session.client.server_version or "unknown"
    except ClientError as error:
        if invocation.get("debug"):
            session.console.complain(str(error))
    versions = {"client": __version__, "server": server or None}
    if not session.show(versions, __version__):
        session.console.data(f"fairlead {__version__}")
        session.console.data(f"server   {server or 'not reachable'}")
    session.close()
    return OK
