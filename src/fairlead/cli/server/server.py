"""`server`: starts, stops or shows the server that runs in the background on this machine."""

import os
import signal
import time
from collections.abc import Sequence

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK, TIMED_OUT, UNREACHABLE
from fairlead.cli.flags import OUTPUT, Flag
from fairlead.cli.session.background import check_flags, find_or_start, is_healthy
from fairlead.cli.session.settings import data_folder, next_command
from fairlead.cli.terminal.console import Console
from fairlead.cli.terminal.output import chosen_format, render
from fairlead.cli.terminal.times import shown_time
from fairlead.client import ClientError
from fairlead.client.access.local import (
    LocalServer,
    exists,
    is_alive,
    is_in_background,
    load_flags,
    load_local,
    make_paths_absolute,
)

_PAUSE = 0.02
_FAREWELL = 5.0
_TIMEOUT = Flag("timeout", "Wait at most this long for the server to stop", "duration", default="30s")


def commands(_noun: str) -> tuple[Command, ...]:
    return (
        Command("status", "Show whether the server runs, and where", _status, OUTPUT),
        Command(
            "start",
            "Start the server; arguments after -- go to `fairlead serve`",
            _start,
            trailing="SERVE-FLAG...",
            details="`fairlead serve --help` lists the flags of the server.",
        ),
        Command("stop", "Stop the server; workloads keep running", _stop, (_TIMEOUT,)),
        Command(
            "restart",
            "Restart the server, with its previous arguments or those after --",
            _restart,
            (_TIMEOUT,),
            trailing="SERVE-FLAG...",
            details="`fairlead serve --help` lists the flags of the server. "
            "A -- with nothing after it starts the server without its previous arguments.",
        ),
    )


def _status(invocation: Invocation) -> int:
    console = Console(invocation)
    folder = data_folder(invocation)
    server = load_local(folder)
    healthy = server is not None and is_healthy(server.url, certificate=server.certificate)
    form = chosen_format(invocation, {})
    if form in ("json", "yaml"):
        facts = {"running": server is not None, "healthy": healthy, "dataDir": folder}
        facts |= (
            {}
            if server is None
            else {"url": server.url, "pid": server.pid, "log": server.log, "version": server.version}
        )
        console.data(render(console, form, facts))
    elif server is None:
        console.data(f"No server is running with data folder {folder}.")
        console.say(f"Start one with `{next_command(invocation, 'server start')}`.")
    else:
        console.data(f"Server:   {server.url}{'' if healthy else ' (does not answer)'}")
        console.data(f"Process:  {server.pid}, version {server.version}, since {shown_time(server.started_at)}")
        console.data(f"Data:     {folder}")
        console.data(f"Log:      {server.log}")
        _warn(console, server)
    return OK if healthy else UNREACHABLE


def _read_flags(invocation: Invocation) -> list[str] | None:
    """The flags after --; the server runs in another folder than this command."""
    flags = invocation.parsed.trailing
    return None if flags is None else make_paths_absolute(flags)


def _start(invocation: Invocation) -> int:
    console = Console(invocation)
    folder = data_folder(invocation)
    flags, recorded = _read_flags(invocation), load_flags(folder)
    known = load_local(folder)
    server = find_or_start(folder, flags, console.say)
    console.data(server.url)
    if flags and known is not None and known.pid == server.pid:
        again = next_command(invocation, "server restart")
        console.say(
            f"The server runs already, so these flags have no effect. Apply them with `{again} -- {' '.join(flags)}`."
        )
    elif known is None:
        _compare(console, recorded, load_flags(folder))
    _warn(console, server)
    stop = next_command(invocation, "server stop")
    console.say(f"Process {server.pid}, log {server.log}. Stop it with `{stop}`.")
    return OK


def _restart(invocation: Invocation) -> int:
    console = Console(invocation)
    folder = data_folder(invocation)
    server = load_local(folder)
    flags, recorded = _read_flags(invocation), load_flags(folder)
    if server is not None:
        if not is_in_background(server.pid):
            raise ClientError(
                f"Process {server.pid} was started with `fairlead serve`. Restart it where it was started."
            )
        check_flags(folder, flags)
        code = _stop(invocation)
        if code != OK:
            return code
    started = find_or_start(folder, flags, console.say)
    console.data(started.url)
    _compare(console, recorded, load_flags(folder))
    _warn(console, started)
    return OK


def _warn(console: Console, server: LocalServer) -> None:
    for warning in server.warnings:
        console.say(f"Warning: {warning}")


def _compare(console: Console, before: Sequence[str], now: Sequence[str]) -> None:
    """Say what differs from the flags that the data folder remembered, if it remembered any."""
    if not before:
        return
    old, new = _group(before), _group(now)
    added = " ".join(flag for flag in new if flag not in old)
    removed = " ".join(flag for flag in old if flag not in new)
    changes = [f"it now has {added}"] * bool(added) + [f"it no longer has {removed}"] * bool(removed)
    if changes:
        console.say(f"Its flags have changed: {'; '.join(changes)}.")
    else:
        console.say(f"Started with the same flags as before: {' '.join(before)}.")


def _group(flags: Sequence[str]) -> list[str]:
    """Each flag with its values."""
    groups: list[str] = []
    for word in flags:
        if word.startswith("--") or not groups:
            groups.append(word)
        else:
            groups[-1] += f" {word}"
    return groups


def _stop(invocation: Invocation) -> int:
    console = Console(invocation)
    server = load_local(data_folder(invocation))
    if server is None:
        console.say(f"No server is running with data folder {data_folder(invocation)}.")
        return OK
    os.kill(server.pid, signal.SIGTERM)
    deadline = time.monotonic() + invocation.get("timeout", 30.0)
    while is_alive(server.pid):
        if time.monotonic() > deadline:
            console.complain(f"Process {server.pid} is still running. Its log is {server.log}.")
            return TIMED_OUT
        time.sleep(_PAUSE)
    # A process that has ended may be a zombie; the first process of some containers never reaps its children.
    deadline = time.monotonic() + _FAREWELL
    while exists(server.pid) and time.monotonic() < deadline:
        time.sleep(_PAUSE)
    console.say("Stopped. Running workloads continue.")
    return OK
