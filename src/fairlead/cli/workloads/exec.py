"""`exec`, `bash` and `attach`: run commands in a pod, or attach to its main process, as if they ran here.

The exit code is that of the remote command. With a terminal on both sides, keys are passed on as they are typed.
"""

import contextlib
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK, RUN_FAILED
from fairlead.cli.flags import PROJECT, Flag, UsageError
from fairlead.cli.session.session import ServerSession
from fairlead.cli.workloads.follow import check_container, wait_for_pod
from fairlead.client.access.urls import quote
from fairlead.client.duplex import END, ERROR, EXIT, INPUT, OUTPUT, SIZE, Duplex, open_duplex

_PIECE = 32_768
#: Detaches from a pod and leaves it running: Ctrl-P Ctrl-Q, as with containers.
_DETACH = b"\x10\x11"
_CUT = "The connection to the pod was lost before the command ended.\n"

POD_FLAGS = (
    PROJECT,
    Flag("pod", "Pod (default: the first that is running)", placeholder="NAME"),
    Flag("container", "Container; pods have only one", short="c", placeholder="NAME"),
    Flag("wait-timeout", "Wait at most this long for a pod to run", "duration"),
)
EXEC_FLAGS = (
    *POD_FLAGS,
    Flag("stdin", "Pass standard input to the command", "boolean", "i"),
    Flag("tty", "Allocate a terminal", "boolean", "t"),
)


def commands(noun: str) -> tuple[Command, ...]:
    by_verb = {command.verb: command for command in verbs()}
    return (by_verb[noun]._replace(verb=""),)


def verbs() -> tuple[Command, ...]:
    """The verbs of this module."""
    return (
        Command(
            "exec",
            "Run a command in a pod",
            _exec,
            EXEC_FLAGS,
            "NAME",
            1,
            1,
            trailing="COMMAND [ARGUMENT...]",
            details="The exit code is that of the command.",
            completes="workload",
        ),
        Command("bash", "Open a shell in a pod", _bash, EXEC_FLAGS, "NAME", 1, 1, completes="workload"),
        Command(
            "attach",
            "Attach to a pod's main process",
            _attach,
            POD_FLAGS,
            "NAME",
            1,
            1,
            details="Ctrl-P Ctrl-Q detaches from the pod. Input needs a pod that was submitted with stdin.",
            completes="workload",
        ),
    )


def _exec(invocation: Invocation) -> int:
    command = invocation.parsed.trailing
    if not command:
        raise UsageError("No command given. Put it after --, as in: fairlead exec NAME -- nvidia-smi")
    return _run(invocation, command, bool(invocation.get("stdin")), bool(invocation.get("tty")))


def _bash(invocation: Invocation) -> int:
    has_terminal = invocation.environment.stdin.isatty()
    shell = ["/bin/sh", "-c", "command -v bash >/dev/null && exec bash || exec sh"]
    return _run(invocation, shell, invocation.get("stdin", True), invocation.get("tty", has_terminal))


def _run(invocation: Invocation, command: list[str], stdin: bool, with_terminal: bool) -> int:
    columns, rows = _window()
    query = "&".join(f"command={quote(word)}" for word in command)
    query += f"&stdin={_yes(stdin)}&tty={_yes(with_terminal)}&columns={columns}&rows={rows}"
    return _open(invocation, "exec", query, stdin, with_terminal)


def _attach(invocation: Invocation) -> int:
    return _open(invocation, "attach", "", True, invocation.environment.stdin.isatty())


def _window() -> tuple[int, int]:
    """Columns and rows of the terminal, or default values without one."""
    try:
        columns, rows = os.get_terminal_size(1)
    except OSError:
        return 80, 24
    return columns or 80, rows or 24


def _yes(value: bool) -> str:
    return "true" if value else "false"


def _open(invocation: Invocation, verb: str, query: str, stdin: bool, with_terminal: bool) -> int:
    session = ServerSession(invocation)
    try:
        workload = session.workload(invocation.names[0])
        if invocation.get("wait-timeout"):
            wait_for_pod(session, workload["id"], invocation.get("wait-timeout"))
        check_container(session, workload)
        if invocation.get("pod"):
            query += f"&pod={quote(invocation.get('pod'))}"
        duplex = open_duplex(session.client, f"/api/v1/workloads/{workload['id']}/{verb}", query.removeprefix("&"))
        try:
            with _raw_terminal(with_terminal and stdin) as resized:
                return _converse(duplex, stdin, resized, can_detach=verb == "attach")
        finally:
            duplex.close()
    finally:
        session.close()


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
        tty.setraw(0)
        yield readable
    finally:
        signal.signal(signal.SIGWINCH, previous)
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def _converse(duplex: Duplex, stdin: bool, resized: int, *, can_detach: bool) -> int:
    """Pass bytes both ways until the command ends; returns its exit code."""
    pending = bytearray()
    waiting: list[Duplex | int] = [duplex, resized, *([0] if stdin else [])]
    if not stdin:
        duplex.send_frame(END)
    typed = b""
    while True:
        ready = [duplex] if duplex.has_pending else select.select(waiting, [], [])[0]
        if resized in ready:
            os.read(resized, 64)
            columns, rows = _window()
            duplex.send_frame(SIZE, f"{columns}x{rows}".encode())
        if 0 in ready:
            data = os.read(0, _PIECE)
            typed = (typed + data)[-2:]
            if can_detach and typed == _DETACH:
                return OK
            if data:
                duplex.send_frame(INPUT, data)
            else:
                duplex.send_frame(END)
                waiting.remove(0)
        if duplex in ready:
            for channel, data in duplex.frames(pending):
                if channel == EXIT and not data.isdigit() and not can_detach:
                    sys.stderr.write(_CUT)
                    return RUN_FAILED
                if channel == EXIT:
                    return int(data) if data.isdigit() else OK
                if channel in (OUTPUT, ERROR):
                    _write(1 if channel == OUTPUT else 2, data)
            if duplex.is_over:
                sys.stderr.write(_CUT)
                return RUN_FAILED


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
