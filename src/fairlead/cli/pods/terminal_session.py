"""Passes bytes between this terminal and a command or main process in a pod, until either side ends."""

import contextlib
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from typing import NamedTuple

from fairlead.client.duplex import END, ERROR, EXIT, INPUT, OUTPUT, SIZE, Duplex

_PIECE = 32_768
#: Detaches from a pod and leaves it running: Ctrl-P Ctrl-Q, as with containers.
DETACH, DETACH_KEYS = b"\x10\x11", "Ctrl-P Ctrl-Q"


class SessionEnd(NamedTuple):
    #: The exit code of the command; None if the other side did not say one.
    code: int | None = None
    #: The connection broke before the end.
    is_cut: bool = False
    is_detached: bool = False


def window() -> tuple[int, int]:
    """Columns and rows of the terminal, or default values without one."""
    try:
        columns, rows = os.get_terminal_size(1)
    except OSError:
        return 80, 24
    return columns or 80, rows or 24


def run_session(
    duplex: Duplex,
    *,
    stdin: bool,
    with_terminal: bool,
    can_detach: bool = False,
    on_ready: Callable[[], None] = lambda: None,
) -> SessionEnd:
    """Pass bytes both ways until the command ends. With a terminal on both sides, keys are passed on as typed.

    `on_ready` is called when keys that are typed from now on are passed on.
    """
    with _raw_terminal(with_terminal and stdin) as resized:
        on_ready()
        return _pass_bytes(duplex, stdin, resized, can_detach)


def redraw(duplex: Duplex) -> None:
    """Tell the other side the size of this window. The size changes twice, so that a program draws its screen again."""
    columns, rows = window()
    for shown in (rows + 1, rows):
        duplex.send_frame(SIZE, f"{columns}x{shown}".encode())


@contextlib.contextmanager
def _raw_terminal(wanted: bool) -> Iterator[int]:
    """Set the terminal to raw mode; yields a descriptor that is readable when the window size has changed."""
    readable, writable = os.pipe()
    if not wanted or not sys.stdin.isatty():
        yield readable
        return
    before = termios.tcgetattr(0)
    os.set_blocking(writable, False)
    previous = signal.signal(signal.SIGWINCH, lambda *_: os.write(writable, b"."))
    try:
        tty.setraw(0, termios.TCSADRAIN)  # what was typed before the session began is for it
        yield readable
    finally:
        signal.signal(signal.SIGWINCH, previous)
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def _pass_bytes(duplex: Duplex, stdin: bool, resized: int, can_detach: bool) -> SessionEnd:
    pending = bytearray()
    waiting: list[Duplex | int] = [duplex, resized, *([0] if stdin else [])]
    if not stdin:
        duplex.send_frame(END)
    typed = b""
    while True:
        ready = [duplex] if duplex.has_pending else select.select(waiting, [], [])[0]
        if resized in ready:
            os.read(resized, 64)
            columns, rows = window()
            duplex.send_frame(SIZE, f"{columns}x{rows}".encode())
        if 0 in ready:
            data = os.read(0, _PIECE)
            typed = (typed + data)[-2:]
            if can_detach and typed == DETACH:
                return SessionEnd(is_detached=True)
            if data:
                duplex.send_frame(INPUT, data)
            else:
                duplex.send_frame(END)
                waiting.remove(0)
        if duplex in ready:
            for channel, data in duplex.frames(pending):
                if channel == EXIT:
                    return SessionEnd(int(data) if data.isdigit() else None)
                if channel in (OUTPUT, ERROR):
                    _write(1 if channel == OUTPUT else 2, data)
            if duplex.is_over:
                return SessionEnd(is_cut=True)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
