"""Follows a workload: passes its output on, and returns its exit code. Used by `run` and by `submit --attach`."""

from fairlead.cli.exit_codes import OK, RUN_FAILED
from fairlead.cli.pods.waiting import PendingProgress
from fairlead.cli.session.session import ServerSession
from fairlead.client import ServerError, Unreachable
from fairlead.client.json_object import Json
from fairlead.client.output import PodOutput, sorted_pods
from fairlead.client.phases import ENDED, exit_code_of


def follow_to_end(
    session: ServerSession, created: Json, patience: float | None = None, *, passes_output: bool = True
) -> int:
    """Pass on the output of every pod, one after another, until the workload ends; returns its exit code.

    If the server goes away, this waits for it and continues the output where it stopped.
    """
    output = PodOutput(created["workloadId"], PendingProgress(session))
    while True:
        try:
            for piece in output.pieces(session.client, patience):
                if passes_output:
                    session.console.raw(piece)
            break
        except (Unreachable, ServerError) as error:
            # A server that stops may still answer that it does.
            if isinstance(error, ServerError) and error.status != 503:
                raise
            session.console.live("The server does not answer. Waiting for it …")
            session.reconnect()
    session.console.clear()
    if output.workload["phase"] in ENDED:
        return _report_end(session, output.workload, created["name"])
    why = output.workload.get("phaseMessage") or ""
    session.console.say(f"{created['name']} is {output.workload['phase']}. {why}".rstrip())
    return RUN_FAILED


def _report_end(session: ServerSession, workload: Json, name: str) -> int:
    if workload["phase"] == "Completed":
        return OK
    message = workload.get("phaseMessage") or ""
    session.console.complain(f"{name} failed. {message}".rstrip())
    return command_exit_code(sorted_pods(session.client, workload["id"]))


def command_exit_code(pods: list[Json]) -> int:
    """The exit code of the pod that ended last; 128 plus the number for a signal, as in shells."""
    code = exit_code_of(pods)
    return RUN_FAILED if code is None else code
