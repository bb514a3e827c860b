"""`serve`: hands its words to the server, which is loaded only here and reads its settings itself."""

import importlib

from fairlead.cli.command import Command, Invocation

_APPLICATION = "fairlead.app"


def commands(_noun: str) -> tuple[Command, ...]:
    return (Command("", "Run a server in the foreground", _serve, is_raw=True, most=None),)


def _serve(invocation: Invocation) -> int:
    code: int = importlib.import_module(_APPLICATION).main(invocation.names)
    return code
