"""What a command is: its words, flags and help as data, and the function that carries it out.

Noun modules declare their commands with it; `__main__` finds and runs them; `help` and `completion` read them.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TextIO

from fairlead.cli.flags import Flag, Parsed


class CommandEnvironment(NamedTuple):
    """All that a command gets from the process it runs in."""

    environ: Mapping[str, str]
    folder: str
    stdin: TextIO
    stdout: TextIO
    stderr: TextIO


class Invocation(NamedTuple):
    """One call of a command: what was typed after its words, and where."""

    parsed: Parsed
    environment: CommandEnvironment
    #: The words of the command as typed, for messages that show what to type next.
    words: tuple[str, ...] = ()

    def get(self, flag: str, default: Any = None) -> Any:
        return self.parsed.values.get(flag, default)

    @property
    def names(self) -> list[str]:
        return self.parsed.names


class Command(NamedTuple):
    #: The verb below the noun; empty for a noun that is a command by itself.
    verb: str
    summary: str
    #: Returns the exit code.
    run: Callable[[Invocation], int]
    flags: tuple[Flag, ...] = ()
    #: How its names are shown in the usage line, e.g. `NAME...`.
    usage: str = ""
    #: How many arguments it takes; the greatest is None if there is no limit.
    min_names: int = 0
    max_names: int | None = 0
    aliases: tuple[str, ...] = ()
    #: What the words after `--` are, for the usage line; without it, they are refused.
    trailing: str = ""
    #: Further help below the flags.
    details: str = ""
    #: Its words are read by somebody else: they come as names, unread.
    is_raw: bool = False
    #: What its first name names (`workload`, `project` …), for completion.
    completes: str = ""


def one(noun: str) -> str:
    """A noun with its article, for summaries."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
