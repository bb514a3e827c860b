"""Where words go: results to standard output, everything else to standard error; colour on terminals only."""

import os
from typing import TextIO

from fairlead.cli.command import Invocation

#: As wide as terminals are that do not say it.
_COLUMNS = 80
_COLOURS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "grey": "90", "bold": "1"}


class Console:
    """The two streams of one invocation, and how much may be said."""

    def __init__(self, invocation: Invocation) -> None:
        around = invocation.environment
        self._stdout = around.stdout
        self._stderr = around.stderr
        self._environ = around.environ
        self.is_quiet = bool(invocation.get("quiet"))
        self.is_verbose = bool(invocation.get("verbose") or invocation.get("debug"))
        self.is_live = is_terminal(around.stderr) and not self.is_quiet and around.environ.get("TERM") != "dumb"
        self._line = 0

    def data(self, text: str) -> None:
        """A result."""
        self.clear()
        self._stdout.write(text + "\n")

    def raw(self, content: bytes) -> None:
        """A piece of output that is passed on as it is, at once."""
        self.clear()
        if hasattr(self._stdout, "buffer"):
            self._stdout.flush()
            self._stdout.buffer.write(content)
        else:
            self._stdout.write(content.decode("utf-8", "replace"))
        self._stdout.flush()

    def say(self, text: str) -> None:
        """Something beside the result; nothing when quiet."""
        if not self.is_quiet:
            self.complain(text)

    def complain(self, text: str) -> None:
        """An error or a warning, said in any case."""
        self.clear()
        self._stderr.write(text + "\n")
        self._stderr.flush()

    def live(self, text: str) -> None:
        """The one changing line on a terminal; elsewhere a plain line each time the text differs."""
        if self.is_live:
            shown = fit(text, self._columns(self._stderr) - 1)
            self._stderr.write("\r\x1b[K" + self.paint(shown, "grey", self._stderr))
            self._stderr.flush()
            self._line = len(shown)
        else:
            self.say(text)

    def clear(self) -> None:
        """Take the changing line away."""
        if self._line:
            self._stderr.write("\r\x1b[K")
            self._stderr.flush()
            self._line = 0

    def width(self) -> int | None:
        """The columns that a table may use; None where there is no terminal to fit."""
        if not is_terminal(self._stdout):
            return None
        return self._columns(self._stdout)

    def _columns(self, stream: TextIO) -> int:
        given = self._environ.get("COLUMNS", "")
        if given.isdecimal() and int(given):
            return int(given)
        try:
            return os.get_terminal_size(stream.fileno()).columns or _COLUMNS
        except OSError:
            return _COLUMNS

    def paint(self, text: str, colour: str, stream: TextIO | None = None) -> str:
        if not is_terminal(stream or self._stdout) or self._environ.get("NO_COLOR") or colour not in _COLOURS:
            return text
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"


def is_terminal(stream: TextIO) -> bool:
    return stream.isatty()


def fit(text: str, width: int) -> str:
    """The text, cut with an ellipsis where it is longer than the width."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"
