"""`serve`: hands its words to the server, which is loaded only here and reads its settings itself."""

from fairlead.cli.command import Command, Invocation


def commands(_noun: str) -> tuple[Command, ...]:
    return (Command("", "Run a server in the foreground", _serve, is_raw=True, most=None),)


def _serve(invocation: Invocation) -> int:
    code: int = invocation.surroundings.load("server").main(invocation.names)
    return code
