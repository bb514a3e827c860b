"""Calls the command line inside the test's process, with streams and an environment of the test's own."""

import io
from pathlib import Path
from typing import NamedTuple

from fairlead.cli.__main__ import main
from fairlead.cli.command import CommandEnvironment


class Called(NamedTuple):
    code: int
    out: str
    err: str


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def call(*arguments: str, home: Path, stdin: str = "", terminal: bool = False, **environ: str) -> Called:
    """One command line, as a user with that home folder and those variables."""
    stream = Terminal if terminal else io.StringIO
    out, err = stream(), stream()
    environment = CommandEnvironment({"HOME": str(home), **environ}, str(home), io.StringIO(stdin), out, err)
    code = main(arguments, environment)
    return Called(code, out.getvalue(), err.getvalue())
