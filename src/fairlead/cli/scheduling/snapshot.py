"""`snapshot`: prints what the server's scheduler sees now, for `schedule`."""

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.session.session import ServerSession


def commands(_noun: str) -> tuple[Command, ...]:
    return (Command("", "Print the snapshot that the server's scheduler sees", _snapshot),)


def _snapshot(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    # Byte for byte as the server wrote it, so that replaying it gives the same decisions.
    session.console.raw(session.client.snapshot() + b"\n")
    session.close()
    return OK
