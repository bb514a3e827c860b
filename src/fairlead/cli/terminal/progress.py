"""One line that shows on a terminal what a command does and for how long. Used by commands that may take long.

Elsewhere, and with --quiet, it shows nothing: scripts and logs get only what the command says itself.
"""

import threading
import time
from types import TracebackType

from fairlead.cli.terminal.console import Console

#: A short wait needs no seconds.
_FIRST_SECONDS = 2.0


class Progress:
    """A context in which nothing else is printed; the line is gone at its end."""

    def __init__(self, console: Console, text: str, every: float = 1.0) -> None:
        self._console = console
        self._text = text
        self._every = every
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> "Progress":
        if self._console.is_live:
            self._draw()
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        if self._console.is_live:
            self._thread.join()
            self._console.clear()

    def show(self, text: str) -> None:
        """Show another step."""
        self._text = text
        if self._console.is_live:
            self._draw()

    def _tick(self) -> None:
        while not self._is_over.wait(self._every):
            self._draw()

    def _draw(self) -> None:
        with self._lock:
            self._console.live(render_progress(self._text, time.monotonic() - self._began))


def render_progress(text: str, seconds: float) -> str:
    if seconds < _FIRST_SECONDS:
        return f"{text} …"
    minutes, rest = divmod(int(seconds), 60)
    return f"{text} … {minutes} min {rest} s" if minutes else f"{text} … {rest} s"
