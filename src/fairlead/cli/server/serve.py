"""`serve`: runs a server in the foreground. The server parses the arguments itself."""

from fairlead.app import main
from fairlead.cli.command import Command, Invocation


def commands(_noun: str) -> tuple[Command, ...]:
    return (Command("", "Run a server in the foreground", _serve, is_raw=True, max_names=None),)


def _serve(invocation: Invocation) -> int:
    return main(invocation.names)
