"""`wait NAME --for PHASE`: waits until a workload reaches a phase, for scripts. Its exit codes are documented."""

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import ENDED_OTHERWISE, OK
from fairlead.cli.flags import PROJECT, Flag
from fairlead.cli.pods.waiting import progress_line
from fairlead.cli.session.session import ServerSession
from fairlead.cli.terminal.phases import read_phase
from fairlead.client import NameNotFound, ServerError, Unreachable
from fairlead.client.deadline import Deadline
from fairlead.client.phases import ENDED

_DELETED = "Deleted"
_FLAGS = (
    PROJECT,
    Flag(
        "for",
        "Phases to wait for, separated by commas; Deleted is possible too",
        placeholder="PHASE",
        default="Completed",
    ),
    Flag("timeout", "Give up after this time (default: never)", "duration"),
)
_DETAILS = "Exit codes: 0 the workload reached the phase, 6 timed out, 7 it ended in another phase, 3 not found."


def commands(_noun: str) -> tuple[Command, ...]:
    return (
        Command(
            "",
            "Wait until a workload reaches a phase",
            _wait,
            _FLAGS,
            "NAME",
            1,
            1,
            details=_DETAILS,
            completes="workload",
        ),
    )


def _wait(invocation: Invocation) -> int:
    wanted = {_read(word) for word in invocation.get("for", "Completed").split(",")}
    session = ServerSession(invocation)
    name = invocation.names[0]
    try:
        workload = session.workload(name)
    except NameNotFound:
        # A script that deletes and then waits may start after the deletion is complete.
        if _DELETED not in wanted or not session.was_deleted(name):
            raise
        code = OK
    else:
        code = wait_for(session, workload["id"], wanted, invocation.get("timeout"))
    session.close()
    return code


def _read(word: str) -> str:
    return _DELETED if word.strip().lower() == _DELETED.lower() else read_phase(word.strip())


def wait_for(session: ServerSession, workload_id: str, wanted: set[str], timeout: float | None) -> int:
    """Wait until the workload is in one of the phases or can no longer reach them, even if the server restarts."""
    deadline = Deadline(timeout)
    while True:
        try:
            return _wait_once(session, workload_id, wanted, deadline.left())
        except Unreachable:
            session.console.live("The server does not answer. Waiting for it …")
            session.reconnect(deadline.left())
        except ServerError as error:
            if error.status != 404:
                raise
            # The workload is deleted, which was waited for.
            return OK if _DELETED in wanted else ENDED_OTHERWISE


def _wait_once(session: ServerSession, workload_id: str, wanted: set[str], timeout: float | None) -> int:
    shown = ""
    for workload in session.client.changes(workload_id, timeout=timeout):
        reached = _DELETED if workload.get("deletedAt") else workload["phase"]
        if reached in wanted:
            session.console.clear()
            return OK
        if reached == _DELETED or (reached in ENDED and _DELETED not in wanted):
            message = workload.get("phaseMessage") or ""
            session.console.complain(
                f"{workload['name']} is {reached} and will not change any more. {message}".rstrip()
            )
            return ENDED_OTHERWISE
        text = progress_line(session, workload)
        if text != shown:
            session.console.live(text)
            shown = text
    raise Unreachable("The server closed the stream of changes.")
