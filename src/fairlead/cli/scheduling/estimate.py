"""`estimate NAME`: when a pending workload starts, and what that rests on."""

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT, PROJECT, Flag
from fairlead.cli.nouns import load_module
from fairlead.cli.scheduling.answers import OFFLINE, SNAPSHOT, show_estimate
from fairlead.cli.session.session import ServerSession

_RUNTIMES = Flag(
    "runtimes", "With --snapshot: JSON with declared times or similar runs by workload", placeholder="FILE"
)


def commands(_noun: str) -> tuple[Command, ...]:
    summary = "Estimate when a pending workload starts"
    return (
        Command("", summary, _estimate, (PROJECT, SNAPSHOT, _RUNTIMES, *OUTPUT), "NAME", 1, 1, completes="workload"),
    )


def _estimate(invocation: Invocation) -> int:
    if invocation.get("snapshot"):
        code: int = load_module(OFFLINE).estimate(invocation)
        return code
    session = ServerSession(invocation)
    workload = session.workload(invocation.names[0])
    answer = session.client.estimate(workload["id"])
    if not session.show(answer, workload["name"]):
        show_estimate(session.console, answer)
    session.close()
    return OK
