"""Questions to the scheduler on a snapshot file, without a server. The same file gives the same answer to the byte.

Loaded by `why`, `plan`, `what-if` and `estimate` when they are given `--snapshot`.
"""

import json

import msgspec

from fairlead.cli.command import Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import UsageError
from fairlead.cli.scheduling.answers import read_workload, show_estimate, show_plan, show_what_if, show_why
from fairlead.cli.scheduling.schedule import load_file, refuse
from fairlead.cli.scheduling.snapshot_files import load_snapshot
from fairlead.cli.terminal.console import Console
from fairlead.cli.terminal.output import chosen_format, render
from fairlead.client.json_object import Json
from fairlead.foresight.changes import Change
from fairlead.foresight.estimate import estimate_start
from fairlead.foresight.plan import make_plan
from fairlead.foresight.runtimes import RunningTime
from fairlead.foresight.what_if import ask_what_if
from fairlead.foresight.why import explain_why
from fairlead.foresight.workloads import SnapshotWorkloads, UnknownName
from fairlead.scheduling import Snapshot, SnapshotError


def why(invocation: Invocation) -> int:
    """Answer `why NAME --snapshot FILE`."""
    try:
        snapshot = load_snapshot(invocation)
        answer = explain_why(snapshot, read_workload(invocation))
    except SnapshotError as error:
        return refuse(invocation, "snapshot", error.problems)
    except UnknownName as error:
        raise UsageError(str(error)) from None
    if not show_document(invocation, answer):
        show_why(Console(invocation), json.loads(msgspec.json.encode(answer)))
    return OK


def plan(invocation: Invocation) -> int:
    """Answer `plan NAME --snapshot FILE`."""
    try:
        snapshot = load_snapshot(invocation)
        runtimes = _read_runtimes(invocation, snapshot) if invocation.get("runtimes") else None
        answer = make_plan(snapshot, read_workload(invocation), runtimes=runtimes)
    except SnapshotError as error:
        return refuse(invocation, "snapshot", error.problems)
    except UnknownName as error:
        raise UsageError(str(error)) from None
    if not show_document(invocation, answer):
        show_plan(Console(invocation), json.loads(msgspec.json.encode(answer)))
    return OK


def estimate(invocation: Invocation) -> int:
    """Answer `estimate NAME --snapshot FILE --runtimes FILE`."""
    try:
        snapshot = load_snapshot(invocation)
        answer = estimate_start(snapshot, read_workload(invocation), _read_runtimes(invocation, snapshot))
    except SnapshotError as error:
        return refuse(invocation, "snapshot", error.problems)
    except UnknownName as error:
        raise UsageError(str(error)) from None
    if not show_document(invocation, answer):
        show_estimate(Console(invocation), json.loads(msgspec.json.encode(answer)))
    return OK


def _read_runtimes(invocation: Invocation, snapshot: Snapshot) -> dict[str, RunningTime]:
    text = load_file(invocation, "runtimes") if invocation.get("runtimes") else "{}"
    try:
        given = msgspec.json.decode(text, type=dict[str, RunningTime])
    except msgspec.DecodeError as error:
        raise UsageError(f"{invocation.get('runtimes')} has no running times by workload: {error}.") from None
    workloads = SnapshotWorkloads(snapshot)
    return {workloads.find(name): runtime for name, runtime in given.items()}


def what_if(invocation: Invocation, changes: list[Json]) -> int:
    """Answer `what-if --snapshot FILE`."""
    try:
        snapshot = load_snapshot(invocation)
        runtimes = _read_runtimes(invocation, snapshot) if invocation.get("runtimes") else None
        answer = ask_what_if(snapshot, msgspec.convert(changes, tuple[Change, ...]), runtimes=runtimes)
    except SnapshotError as error:
        return refuse(invocation, "snapshot", error.problems)
    except msgspec.ValidationError as error:
        raise UsageError(f"The changes are not valid: {error}.") from None
    except UnknownName as error:
        raise UsageError(str(error)) from None
    if not show_document(invocation, answer):
        show_what_if(Console(invocation), json.loads(msgspec.json.encode(answer)))
        if answer.estimates is None:
            Console(invocation).say("When workloads start is not estimated without --runtimes FILE.")
    return OK


def read_changes_file(text: str, path: str) -> list[Json]:
    """The list below `changes` of a YAML or JSON file."""
    try:
        content = msgspec.yaml.decode(text)
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is not valid YAML: {error}") from None
    changes = content.get("changes") if isinstance(content, dict) else None
    if not isinstance(changes, list) or not all(isinstance(each, dict) for each in changes):
        raise UsageError(f"{path} has no list of changes below `changes`.")
    return changes


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
