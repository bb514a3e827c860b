"""What a command is: its words, flags and help as data, and the function that runs it.

Noun modules declare their commands with it; `__main__` runs them; `help` and `completion` read them.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TextIO

from fairlead.cli.flags import Flag, Parsed


class CommandEnvironment(NamedTuple):
    """Everything that a command takes from the process it runs in."""

    environ: Mapping[str, str]
    folder: str
    stdin: TextIO
    stdout: TextIO
    stderr: TextIO


class Invocation(NamedTuple):
    """One call of a command: the arguments, and the environment it was called in."""

    parsed: Parsed
    environment: CommandEnvironment
    #: The words of the command as typed, for messages with a next step.
    words: tuple[str, ...] = ()

    def get(self, flag: str, default: object = None) -> Any:
        return self.parsed.values.get(flag, default)

    @property
    def names(self) -> list[str]:
        return self.parsed.names


class Command(NamedTuple):
    #: The verb after the noun; empty if the noun itself is the command.
    verb: str
    summary: str
    #: Returns the exit code.
    run: Callable[[Invocation], int]
    flags: tuple[Flag, ...] = ()
    #: How its arguments are shown in the usage line, such as `NAME...`.
    usage: str = ""
    #: How many arguments it takes; the greatest is None if there is no limit.
    min_names: int = 0
    max_names: int | None = 0
    aliases: tuple[str, ...] = ()
    #: How the arguments after `--` are shown in the usage line; if empty, it takes none.
    trailing: str = ""
    #: Further help below the flags.
    details: str = ""
    #: It parses its flags itself: all words come as names.
    is_raw: bool = False
    #: What its first argument names (`workload`, `project` …), for completion.
    completes: str = ""
