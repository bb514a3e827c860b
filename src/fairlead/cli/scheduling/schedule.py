"""`schedule` and `fairshare`: the scheduler as a function of files, for tests and tools. They need no server.

The same input gives the same output to the byte.
"""

import msgspec

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.flags import Flag, UsageError
from fairlead.cli.scheduling.snapshot_files import load_snapshot
from fairlead.scheduling import (
    Decisions,
    QueueShare,
    SnapshotError,
    decide,
    divide_queues,
    read_shares,
    simulate,
)

_STANDARD_INPUT = "-"
_ACTIONS = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")
_SCHEDULE_FLAGS = (
    Flag("snapshot", "Snapshot as JSON, or KAI's snapshot archive; - is standard input", short="f", placeholder="FILE"),
    Flag("actions", f"Run only these actions, in this order: {', '.join(_ACTIONS)}", placeholder="A,B"),
    Flag("cycles", "Simulate this many cycles: bound pods run in the next one, evicted pods are pending", "integer"),
    Flag("seconds", "Seconds between two cycles", "number", default="1"),
)
_SHARE_FLAGS = (Flag("queues", "Totals and queues as JSON; - is standard input", short="f", placeholder="FILE"),)


def commands(noun: str) -> tuple[Command, ...]:
    return {
        "schedule": (
            Command(
                "",
                "Run the scheduler on a snapshot of a cluster and print its decisions",
                _schedule,
                _SCHEDULE_FLAGS,
                details="Prints one object; with --cycles, a list with one object per cycle.",
            ),
        ),
        "fairshare": (Command("", "Compute the fair shares of queues and print them", _fairshare, _SHARE_FLAGS),),
    }[noun]


def load_file(invocation: Invocation, flag: str) -> str:
    """The text of the file that a flag names; raises UsageError."""
    path = invocation.get(flag)
    if not path:
        raise UsageError(f"No file given. Name it with --{flag}.")
    if path == _STANDARD_INPUT:
        return invocation.environment.stdin.read()
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from None


def refuse(invocation: Invocation, flag: str, problems: tuple[str, ...]) -> int:
    """Print everything that is wrong with the file that a flag names."""
    path = invocation.get(flag)
    name = "Standard input" if path == _STANDARD_INPUT else path
    invocation.environment.stderr.write(f"fairlead: {name} is not valid:\n")
    for problem in problems:
        invocation.environment.stderr.write(f"  {problem}\n")
    return FAILED


def _print(invocation: Invocation, value: Decisions | list[Decisions] | tuple[QueueShare, ...]) -> None:
    """Print JSON with the members in the order in which they are declared."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    invocation.environment.stdout.write(text + "\n")


def _schedule(invocation: Invocation) -> int:
    cycles = invocation.get("cycles")
    if cycles is not None and cycles < 1:
        raise UsageError("--cycles must be at least 1.")
    try:
        snapshot = load_snapshot(invocation)
    except SnapshotError as error:
        return refuse(invocation, "snapshot", error.problems)
    actions = _actions(invocation)
    if actions is not None:
        settings = msgspec.structs.replace(snapshot.settings, actions=actions)
        snapshot = msgspec.structs.replace(snapshot, settings=settings)
    if cycles is None:
        _print(invocation, decide(snapshot))
    else:
        played = simulate(snapshot, cycles, invocation.get("seconds", 1.0))
        _print(invocation, [decisions for _, decisions in played])
    return OK


def _actions(invocation: Invocation) -> tuple[str, ...] | None:
    text = invocation.get("actions")
    if text is None:
        return None
    actions = tuple(word for word in text.split(",") if word)
    unknown = [word for word in actions if word not in _ACTIONS]
    if unknown:
        raise UsageError(f"'{unknown[0]}' is not an action; the actions are {', '.join(_ACTIONS)}.")
    return actions


def _fairshare(invocation: Invocation) -> int:
    try:
        request = read_shares(load_file(invocation, "queues"))
    except SnapshotError as error:
        return refuse(invocation, "queues", error.problems)
    _print(invocation, divide_queues(request))
    return OK
