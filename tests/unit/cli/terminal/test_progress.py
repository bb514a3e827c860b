"""The progress line of long work: on a terminal only, with the time, and gone at the end."""

import threading
from pathlib import Path

import pytest

from fairlead.cli.command import CommandEnvironment, Invocation
from fairlead.cli.flags import Parsed
from fairlead.cli.terminal.console import Console
from fairlead.cli.terminal.progress import Progress, render_progress
from tests.unit.cli.calling import Terminal, call


class Watched(Terminal):
    """A terminal on which a test can wait for a number of writes."""

    def __init__(self, wanted: int) -> None:
        super().__init__()
        self._left = wanted
        self.is_written = threading.Event()

    def write(self, text: str) -> int:
        self._left -= 1
        if self._left == 0:
            self.is_written.set()
        return super().write(text)


def console_on(stderr: Terminal) -> Console:
    environment = CommandEnvironment({}, "/", Terminal(), Terminal(), stderr)
    return Console(Invocation(Parsed({}, [], []), environment))


def test_it_continues_by_itself_and_leaves_nothing() -> None:
    stderr = Watched(4)
    with Progress(console_on(stderr), "Restoring", every=0.001) as progress:
        assert "Restoring …" in stderr.getvalue()
        assert stderr.is_written.wait(60), "nobody has called it again"
        progress.show("Reading")
        assert "Reading …" in stderr.getvalue()
    assert stderr.getvalue().endswith("\r\x1b[K")


def test_an_error_within_leaves_no_line_either() -> None:
    stderr = Watched(1)
    with pytest.raises(ValueError, match="broken"), Progress(console_on(stderr), "Restoring"):
        raise ValueError("broken")
    assert stderr.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(
    ("seconds", "want"), [(0.4, "Moving …"), (12.7, "Moving … 12 s"), (125.0, "Moving … 2 min 5 s")]
)
def test_the_time_is_shown_if_it_takes_long(seconds: float, want: str) -> None:
    assert render_progress("Moving", seconds) == want


@pytest.mark.parametrize("terminal", [True, False], ids=["on a terminal", "elsewhere"])
def test_backup_and_restore_show_it_on_a_terminal_only(terminal: bool, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    backup = call("backup", "b.tar.gz", "--data-dir", str(data), home=tmp_path, terminal=terminal)
    restored = call("restore", "none.tar.gz", "--data-dir", str(data), home=tmp_path, terminal=terminal)
    assert 0 not in (backup.code, restored.code), "there is no database to back up, and no backup"
    assert ("Backing up" in backup.err, "Restoring" in restored.err) == (terminal, terminal)
    assert "Nothing was backed up" in backup.err
