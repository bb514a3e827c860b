"""What `run` passes on from the calling shell: environment variables and piped input.

A short input is stored with the workload, so that it survives restarts of the server and of the workload. A longer one,
or one that has not ended yet, is passed on while the command runs.
"""

import base64
import contextlib
import os
import select
import stat
import threading
from collections.abc import Mapping
from typing import NamedTuple

from fairlead.cli.command import Invocation
from fairlead.cli.flags import Flag, UsageError
from fairlead.cli.session.session import ServerSession
from fairlead.client import Client, ClientError
from fairlead.client.commands import variables_of_caller
from fairlead.client.duplex import EXIT, FINISH, INPUT, Duplex, open_duplex
from fairlead.client.json_object import Json
from fairlead.client.phases import ENDED

FLAGS = (
    Flag(
        "export",
        "Variables of this shell that the command gets (default on your own server: all)",
        placeholder="all|none|NAME[=VALUE],...",
    ),
    Flag("input", "Whether piped input is passed on", choices=("auto", "none"), default="auto"),
)
#: As much as the server stores of variables, and of input.
_MAX_VARIABLES, _MAX_INPUT = 256 * 1024, 512 * 1024
#: Seconds for the first byte of a pipe, and between two pieces, after which it counts as a stream that goes on.
_FIRST_WAIT, _NEXT_WAIT = 0.05, 0.5
_PIECE = 32_768


class PipedInput(NamedTuple):
    """What was read of a pipe before the submission, and whether that is all of it."""

    data: bytes = b""
    is_whole: bool = True


NO_INPUT = PipedInput()


def choose_variables(invocation: Invocation, *, is_own_server: bool) -> dict[str, str]:
    """The variables that `--export` names; by default all if the server is the caller's own, without an image."""
    environ = invocation.environment.environ
    default = "all" if is_own_server and not invocation.get("image") else "none"
    entries = [entry.strip() for entry in (invocation.get("export") or default).split(",")]
    if "none" in (entry.lower() for entry in entries):
        if len(entries) > 1:
            raise UsageError("--export none cannot be combined with names.")
        return {}
    chosen: dict[str, str] = {}
    for entry in filter(None, entries):
        name, equals, value = entry.partition("=")
        if entry.lower() == "all":
            chosen |= variables_of_caller(environ)
        elif equals:
            chosen[name] = value
        elif name in environ:
            chosen[name] = environ[name]
        else:
            raise UsageError(f"--export {name}: this shell has no variable of that name.")
    if _size(chosen) > _MAX_VARIABLES:
        raise UsageError(f"The variables of this shell hold more than {_MAX_VARIABLES:,} bytes; use --export NAME,...")
    return chosen


def _size(variables: Mapping[str, str]) -> int:
    return sum(len(name.encode()) + len(value.encode("utf-8", "replace")) for name, value in variables.items())


def read_input(invocation: Invocation) -> PipedInput:
    """Read what is piped into the call, as far as it is there and the server would store it."""
    descriptor = _piped(invocation)
    if descriptor < 0:
        return NO_INPUT
    data, wait = b"", _FIRST_WAIT
    while len(data) <= _MAX_INPUT:
        if not select.select([descriptor], [], [], wait)[0]:
            return PipedInput(data, is_whole=False)
        piece = os.read(descriptor, _PIECE)
        if not piece:
            return PipedInput(data)
        data, wait = data + piece, _NEXT_WAIT
    return PipedInput(data, is_whole=False)


def _piped(invocation: Invocation) -> int:
    """The descriptor of a pipe, a socket or a file that is the standard input; -1 for anything else."""
    if invocation.get("input") == "none":
        return -1
    try:
        descriptor = invocation.environment.stdin.fileno()
        mode = os.fstat(descriptor).st_mode
    except (OSError, ValueError):
        return -1
    return descriptor if stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode) else -1


def store(client: Client, variables: Mapping[str, str], piped: PipedInput) -> str:
    """Store variables and a whole input for the submission that follows; returns their id, empty for none."""
    data = piped.data if piped.is_whole else b""
    if not variables and not data:
        return ""
    body = {"variables": dict(variables), "input": base64.b64encode(data).decode()}
    return str(client.request("POST", "/api/v1/caller-environments", body)["id"])


class InputStream:
    """Passes a pipe on to the workload's pod, in a thread of its own, while the caller follows the output."""

    def __init__(self, session: ServerSession, created: Json, piped: PipedInput) -> None:
        self._session = ServerSession(session.invocation)
        self._created = created
        self._first = piped.data
        self._descriptor = session.invocation.environment.stdin.fileno()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        id = self._created["workloadId"]
        try:
            self._session.client.wait(id, ("Running", "Degraded"))
            duplex = open_duplex(self._session.client, f"/api/v1/workloads/{id}/attach", "")
            try:
                self._pass_on(duplex)
            finally:
                duplex.close()
            if self._session.client.wait(id, ("Pending", "Terminating", "Stopping", "Stopped"))["phase"] in ENDED:
                return
            why = "its pod was stopped, and piped input cannot be sent twice"
        except (ClientError, OSError) as error:
            why = f"its input was cut off: {error}"
        self._give_up(why)

    def _pass_on(self, duplex: Duplex) -> None:
        """Send everything, then wait until the pod ends; its output reaches the caller another way."""
        pending = bytearray()
        for start in range(0, len(self._first), _PIECE):
            duplex.send_frame(INPUT, self._first[start : start + _PIECE])
        waiting: list[Duplex | int] = [duplex, self._descriptor]
        while not duplex.is_over:
            ready = [duplex] if duplex.has_pending else select.select(waiting, [], [])[0]
            if self._descriptor in ready:
                data = os.read(self._descriptor, _PIECE)
                duplex.send_frame(INPUT if data else FINISH, data)
                if not data:
                    waiting.remove(self._descriptor)
            if duplex in ready and any(channel == EXIT for channel, _ in duplex.frames(pending)):
                return

    def _give_up(self, why: str) -> None:
        name = self._created["name"]
        with contextlib.suppress(ClientError, OSError):
            self._session.reconnect()
            workload = self._session.client.workload(self._created["workloadId"])
            if workload["phase"] not in (*ENDED, "Stopping", "Stopped"):
                self._session.console.complain(f"{name} is stopped: {why}.")
                self._session.client.request("POST", f"/api/v1/workloads/trainings/{workload['id']}/suspend")
