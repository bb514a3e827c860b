"""`estimate NAME`: when a pending workload starts, and what that rests on."""

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT, PROJECT
from fairlead.cli.nouns import load_module
from fairlead.cli.scheduling.answers import OFFLINE, RUNTIMES, SNAPSHOT, WORKLOAD, read_workload, show_estimate
from fairlead.cli.scheduling.questions import announce_turn
from fairlead.cli.session.session import ServerSession


def commands(_noun: str) -> tuple[Command, ...]:
    summary = "Estimate when a pending workload starts"
    flags = (PROJECT, WORKLOAD, SNAPSHOT, RUNTIMES, *OUTPUT)
    return (Command("", summary, _estimate, flags, "NAME", 0, 1, completes="workload"),)


def _estimate(invocation: Invocation) -> int:
    if invocation.get("snapshot"):
        code: int = load_module(OFFLINE).estimate(invocation)
        return code
    session = ServerSession(invocation)
    workload = session.workload(read_workload(invocation))
    announce_turn(session)
    answer = session.client.estimate(workload["id"])
    if not session.show(answer, workload["name"]):
        show_estimate(session.console, answer)
    session.close()
    return OK
