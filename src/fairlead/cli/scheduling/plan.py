"""`plan`: what a submission would do, without submitting.

The table of commands turns `plan training NAME …`, `plan run -- COMMAND` and `plan -f FILE` into the commands that
submit, with `--plan`. What is left here is a workload that waits in a snapshot file.
"""

from fairlead.cli.command import Command, Invocation
from fairlead.cli.flags import OUTPUT, Flag, UsageError
from fairlead.cli.nouns import load_module
from fairlead.cli.scheduling.answers import OFFLINE, RUNTIMES, WORKLOAD

_DETAILS = """\
Takes everything that `submit`, `run` and `apply -f` take:
  fairlead plan training bert -i pytorch -g 4 -- python train.py
  fairlead plan run --gpu 1 -- python train.py
  fairlead plan -f bert.yaml
It prints where the pods would start, or what they wait for and until when;
whom that evicts, moves or delays and by how much; and the quotas afterwards.
With --snapshot, NAME is a workload that waits in a snapshot file."""


def commands(_noun: str) -> tuple[Command, ...]:
    snapshot = Flag("snapshot", "Plan a workload that waits in this snapshot; - is standard input", placeholder="FILE")
    summary = "Show what a submission would do, without submitting"
    return (
        Command("", summary, _plan, (snapshot, WORKLOAD, RUNTIMES, *OUTPUT), "KIND|run|NAME", 0, 1, details=_DETAILS),
    )


def _plan(invocation: Invocation) -> int:
    if not invocation.get("snapshot"):
        raise UsageError("Name what to submit, as in `fairlead plan training NAME -g 1`, or a file with -f.")
    code: int = load_module(OFFLINE).plan(invocation)
    return code
