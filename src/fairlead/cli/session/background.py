"""Finds this machine's server, or starts one in the background.

Several commands at once start only one server: they wait for a lock in the data folder.
"""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from fairlead.cli.flags import UsageError
from fairlead.client import ClientError, Unreachable
from fairlead.client.access.local import BACKGROUND, HOLDER, LOCK, LocalServer, load_flags, load_local
from fairlead.client.access.urls import Trust, read_address
from fairlead.client.connection import Connection

#: Seconds after which a server that is not ready has failed.
_PATIENCE = 60.0
_PAUSE = 0.01
_LAST_LINES = 20
#: How the server begins the reason why it cannot start, in plain text.
_REASON_PREFIX = "fairlead serve: "


def is_healthy(url: str, timeout: float = 10.0, certificate: str | None = None) -> bool:
    """Whether a server answers at the address, with this certificate or one that the machine trusts."""
    connection = Connection(read_address(url), timeout, Trust(None, certificate))
    try:
        response = connection.send("GET", "/healthz", {}, None)
        response.read()
        return response.status == 200
    except Unreachable:
        return False
    finally:
        connection.close()


def find_or_start(folder: str, flags: Sequence[str] | None, say: Callable[[str], None]) -> LocalServer:
    """This machine's server. If none runs, one is started with the flags; None stands for its previous flags.

    In a new data folder it is a personal server.
    """
    server = _load_answering(folder)
    if server is not None:
        return server
    with open_lock(folder, LOCK) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        while server is None:
            server = _wait_for_holder(folder, say)
            if server is None:
                say("Starting a server in the background …")
                server = _start(folder, load_flags(folder) if flags is None else flags)
        return server


def open_lock(folder: str, name: str) -> TextIO:
    """A lock file of a data folder, which is made if it does not exist."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return open(os.path.join(folder, name), "w", encoding="utf-8")
    except OSError as error:
        problem = error.strerror or error
        raise ClientError(
            f"The data folder {folder} cannot be used: {problem}. Name another one with --data-dir."
        ) from error


def check_flags(folder: str, flags: Sequence[str] | None) -> None:
    """Raise if a server of the data folder would not start with these flags, or else with its previous flags."""
    command = [*_command(folder), "--check", *(load_flags(folder) if flags is None else flags)]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", stdin=subprocess.DEVNULL)
    if done.returncode:
        reason = done.stderr.rpartition("fairlead serve: ")[2].removeprefix("error: ").strip()
        raise UsageError(f"{reason or 'The flags are not valid'}. The running server was not touched.")


def _command(folder: str) -> list[str]:
    return [sys.executable, "-m", "fairlead", *BACKGROUND, "--data-dir", folder]


def _load_answering(folder: str) -> LocalServer | None:
    server = load_local(folder)
    return server if server is not None and is_healthy(server.url, certificate=server.certificate) else None


def _is_held(folder: str) -> bool:
    """Whether a server holds the data folder, ready or not. A starting server retries if this check is in its way."""
    with open(os.path.join(folder, HOLDER), "a", encoding="utf-8") as holder:
        try:
            fcntl.flock(holder, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def _wait_for_holder(folder: str, say: Callable[[str], None]) -> LocalServer | None:
    """Wait for a server that another command has started; None if there is none."""
    deadline = time.monotonic() + _PATIENCE
    is_told = False
    while _is_held(folder):
        server = _load_answering(folder)
        if server is not None:
            return server
        if time.monotonic() > deadline:
            known = load_local(folder)
            what = f"Process {known.pid} at {known.url}" if known else "A process"
            raise Unreachable(f"{what} is using the data folder {folder} and does not answer. Its log: {_log(folder)}")
        if not is_told:
            say("Another server is starting. Waiting for it …")
            is_told = True
        time.sleep(_PAUSE)
    return None


def _log(folder: str) -> str:
    return os.path.join(folder, "logs", "server.log")


def _start(folder: str, extra: Sequence[str]) -> LocalServer | None:
    """The new server; None if another server has taken the folder in the meantime."""
    log = _log(folder)
    os.makedirs(os.path.dirname(log), mode=0o700, exist_ok=True)
    command = [*_command(folder), *extra]
    with open(log, "ab") as output:
        begin = output.tell()
        # A session of its own: neither Ctrl-C nor the end of the terminal stops it.
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", start_new_session=True
        )
    server = _wait_until_ready(folder, child)
    if server is None:
        has_ended = child.poll() is not None
        child.kill()
        child.wait()
        if has_ended and _is_held(folder):
            return None
        raise ClientError(f"The server did not start. The end of its log {log}:\n{_tail(log, begin)}")
    # It outlives this command; Popen must not warn about it at exit.
    child.returncode = 0
    return server


def _wait_until_ready(folder: str, child: "subprocess.Popen[bytes]") -> LocalServer | None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and child.poll() is None:
        server = load_local(folder)
        if server is not None and server.pid == child.pid and is_healthy(server.url, certificate=server.certificate):
            return server
        time.sleep(_PAUSE)
    return None


def _tail(path: str, begin: int) -> str:
    with open(path, "rb") as file:
        file.seek(begin)
        lines = file.read().decode("utf-8", "replace").splitlines()
    # The line of JSON before the reason says the same.
    lines = [line for line in lines if line.startswith(_REASON_PREFIX)] or lines
    return "\n".join(f"  {line}" for line in lines[-_LAST_LINES:]) or "  (empty)"
