"""Output of commands: results go to standard output, everything else to standard error; colours on terminals only."""

import os
import re
from typing import TextIO

from fairlead.cli.command import Invocation

#: The width of a terminal that does not report one.
_COLUMNS = 80
_COLOURS = {
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "grey": "90",
    "bold": "1",
}
#: Our own colours, and what a terminal would obey: names and messages come from other people, too.
_CONTROL = re.compile(
    r"\x1b\[(?:0|1|3[1-6]|90)m|\r(?!\n|\Z)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)


class Console:
    """The two output streams of one invocation, and how verbose it is."""

    def __init__(self, invocation: Invocation) -> None:
        environment = invocation.environment
        self._stdout = environment.stdout
        self._stderr = environment.stderr
        self._environ = environment.environ
        self.is_quiet = bool(invocation.get("quiet"))
        self.is_verbose = bool(invocation.get("verbose") or invocation.get("debug"))
        self.is_live = (
            is_terminal(environment.stderr) and not self.is_quiet and environment.environ.get("TERM") != "dumb"
        )
        self._line = 0

    def data(self, text: str) -> None:
        """Print a result."""
        self.clear()
        self._stdout.write(escape(text) + "\n")

    def clear_screen(self) -> None:
        self._stdout.write("\x1b[H\x1b[2J")

    def title(self, text: str) -> None:
        """Print the heading of a part of the result."""
        self.data("")
        self.data(self.paint(text, "bold"))

    def raw(self, content: bytes) -> None:
        """Pass bytes on unchanged, without buffering."""
        self.clear()
        if hasattr(self._stdout, "buffer"):
            self._stdout.flush()
            self._stdout.buffer.write(content)
        else:
            self._stdout.write(content.decode("utf-8", "replace"))
        self._stdout.flush()

    def say(self, text: str) -> None:
        """Print information besides the result, unless --quiet is given."""
        if not self.is_quiet:
            self.complain(text)

    def complain(self, text: str) -> None:
        """Print an error or a warning, even with --quiet."""
        self.clear()
        self._stderr.write(escape(text) + "\n")
        self._stderr.flush()

    def live(self, text: str) -> None:
        """Show progress: one changing line on a terminal, plain lines elsewhere."""
        if self.is_live:
            shown = fit(escape(text), self._columns(self._stderr) - 1)
            self._stderr.write("\r\x1b[K" + self.paint(shown, "grey", self._stderr))
            self._stderr.flush()
            self._line = len(shown)
        else:
            self.say(text)

    def clear(self) -> None:
        """Clear the progress line."""
        if self._line:
            self._stderr.write("\r\x1b[K")
            self._stderr.flush()
            self._line = 0

    def width(self) -> int | None:
        """The width of the terminal; None if there is no terminal."""
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


def escape(text: str) -> str:
    """The text with control characters as JSON escapes them, except tabs, line ends and our own colours."""
    return _CONTROL.sub(lambda found: found[0] if len(found[0]) > 1 else f"\\u{ord(found[0]):04x}", text)


def fit(text: str, width: int) -> str:
    """The text, cut with an ellipsis if it is longer than the width."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"
