"""Questions to the scheduler on a snapshot file, without a server. The same file gives the same answer to the byte.

Loaded by `why`, `plan`, `what-if` and `estimate` when they are given `--snapshot`.
"""

import json

import msgspec

from fairlead.cli.command import Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import UsageError
from fairlead.cli.scheduling.answers import show_plan, show_why
from fairlead.cli.scheduling.schedule import load_file, refuse
from fairlead.cli.terminal.console import Console
from fairlead.cli.terminal.output import chosen_format, render
from fairlead.foresight.plan import make_plan
from fairlead.foresight.why import explain_why
from fairlead.foresight.workloads import UnknownName
from fairlead.scheduling import SnapshotError, read_snapshot


def why(invocation: Invocation) -> int:
    """Answer `why NAME --snapshot FILE`."""
    try:
        snapshot = read_snapshot(load_file(invocation, "snapshot"))
        answer = explain_why(snapshot, invocation.names[0])
    except SnapshotError as error:
        return refuse(invocation, error.problems)
    except UnknownName as error:
        raise UsageError(str(error)) from None
    if not show_document(invocation, answer):
        show_why(Console(invocation), json.loads(msgspec.json.encode(answer)))
    return OK


def plan(invocation: Invocation) -> int:
    """Answer `plan NAME --snapshot FILE`."""
    try:
        snapshot = read_snapshot(load_file(invocation, "snapshot"))
        answer = make_plan(snapshot, invocation.names[0])
    except SnapshotError as error:
        return refuse(invocation, error.problems)
    except UnknownName as error:
        raise UsageError(str(error)) from None
    if not show_document(invocation, answer):
        show_plan(Console(invocation), json.loads(msgspec.json.encode(answer)))
    return OK


def show_document(invocation: Invocation, answer: msgspec.Struct) -> bool:
    """Print an answer as JSON or YAML if that was asked for; members are in the order of their declaration."""
    form = chosen_format(invocation, {})
    text = msgspec.json.format(msgspec.json.encode(answer), indent=2).decode()
    if form == "json":
        invocation.environment.stdout.write(text + "\n")
    elif form == "yaml":
        console = Console(invocation)
        console.data(render(console, form, json.loads(text)))
    return form in ("json", "yaml")
