"""`delete`, `suspend` and `resume` of any kind, and how the workloads to act on are chosen: by names, labels or all."""

from collections.abc import Callable

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import PROJECT, Flag, UsageError
from fairlead.cli.session.report import exit_code, render_error
from fairlead.cli.session.session import ServerSession
from fairlead.cli.terminal.phases import PHASES, read_phase
from fairlead.client import ClientError, NameNotFound
from fairlead.client.json_object import Json
from fairlead.client.kinds import load_kinds
from fairlead.client.phases import ENDED

#: How the workloads of an action are chosen.
CHOICE_FLAGS = (
    PROJECT,
    Flag("all", "Choose all workloads of the project", "boolean", "A"),
    Flag("selector", "Choose workloads by labels, as in team=vision,tier!=dev", short="l", placeholder="LABELS"),
    Flag("status", "With --all or --selector: only workloads in this phase", placeholder="PHASE"),
    Flag("yes", "Do not ask", "boolean", "y"),
)
#: Verbs and the phases in which the server accepts them without effect.
_WITHOUT_EFFECT = {
    "suspend": (*ENDED, "Stopped", "Stopping", "Deleting"),
    "resume": tuple(phase for phase in PHASES if phase not in ("Stopped", "Stopping")),
}
_SUMMARIES = {
    "delete": "Delete workloads",
    "suspend": "Stop workloads; they can be resumed",
    "resume": "Resume suspended workloads",
}
_SHOWN = 10
Act = Callable[[ServerSession, Json], None]


def commands(noun: str) -> tuple[Command, ...]:
    return (action(noun)._replace(verb=""),)


def action(verb: str, title: str | None = None, nouns: str = "workloads") -> Command:
    """One of the verbs, for workloads of one type or of any."""

    def run(invocation: Invocation) -> int:
        return act_on_each(invocation, title, verb, lambda session, workload: _act(session, verb, workload))

    summary = _SUMMARIES[verb].replace("workloads", nouns)
    return Command(verb, summary, run, CHOICE_FLAGS, "[NAME...]", 0, None, completes="workload")


def _act(session: ServerSession, verb: str, workload: Json) -> None:
    for key, entry in load_kinds().items():
        if entry.title == workload["type"]:
            if verb != "delete" and not entry.can_suspend:
                raise ClientError(f"A {entry.noun} cannot be suspended or resumed.")
            getattr(session.client.kind(key), verb)(workload["id"])
            return
    raise ClientError(f"This version of `fairlead` does not know workloads of type {workload['type']}.")


def act_on_each(invocation: Invocation, title: str | None, verb: str, act: Act) -> int:
    """Act on every chosen workload, even if one fails; returns the exit code of the first failure.

    The server also accepts actions that have no effect; the message says so.
    """
    session = ServerSession(invocation)
    code = OK
    chosen = _choose(session, title, verb)
    for name in chosen or invocation.names:
        try:
            workload = chosen[name] if chosen else session.workload(name, title)
            if invocation.get("dry-run"):
                session.console.data(f"{name}: would be {verb}d")
                continue
            act(session, workload)
            has_effect = workload["phase"] not in _WITHOUT_EFFECT.get(verb, ())
            outcome = f"{verb} requested" if has_effect else f"is {workload['phase']}, so {verb} has no effect"
            session.console.say(f"{name}: {outcome}.")
        except ClientError as error:
            text = render_error(error)
            session.console.complain(f"fairlead: {text}" if name in text else f"fairlead: {name}: {text}")
            code = code or exit_code(error)
    session.close()
    return code


def _choose(session: ServerSession, title: str | None, verb: str) -> dict[str, Json]:
    """The workloads that --all or --selector mean, by name, if the user agrees; empty if names are given."""
    invocation = session.invocation
    matches = read_selector(invocation.get("selector", ""))
    if not invocation.get("all") and not invocation.get("selector"):
        if not invocation.names:
            raise UsageError("No workloads given. Pass names, --selector or --all.")
        return {}
    if invocation.names:
        raise UsageError("Give names, or --all or --selector, not both.")
    filters = [f"projectId=={session.project()['id']}", *([f"type=={title}"] if title else [])]
    if invocation.get("status"):
        filters.append(f"phase=={read_phase(invocation.get('status'))}")
    rows = session.client.all_workloads(filterBy=filters)
    chosen = {
        row["name"]: row
        for row in rows
        if matches(row.get("labels") or {}) and row["phase"] not in _WITHOUT_EFFECT.get(verb, ())
    }
    if not chosen:
        raise NameNotFound(f"There is no workload to {verb} in project {session.project()['name']}.")
    if not invocation.get("yes") and not invocation.get("dry-run"):
        _confirm(session, verb, list(chosen))
    return chosen


def _confirm(session: ServerSession, verb: str, names: list[str]) -> None:
    environment = session.invocation.environment
    count = "1 workload" if len(names) == 1 else f"{len(names)} workloads"
    if not environment.stdin.isatty():
        raise UsageError(f"This would {verb} {count}. Add --yes.")
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    environment.stderr.write(f"{verb.capitalize()} {count} ({shown})? [y/N] ")
    environment.stderr.flush()
    if environment.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ClientError("Nothing was done.")


def read_selector(text: str) -> Callable[[dict[str, str]], bool]:
    """Whether labels match all parts of a selector: `key=value`, `key!=value`, `key` or `!key`."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return lambda labels: all(_matches(part, labels) for part in parts)


def _matches(part: str, labels: dict[str, str]) -> bool:
    if "!=" in part:
        key, _, value = part.partition("!=")
        return labels.get(key.strip()) != value.strip()
    key, equals, value = part.replace("==", "=").partition("=")
    if equals:
        return labels.get(key.strip()) == value.strip()
    return part.removeprefix("!").strip() in labels if not part.startswith("!") else part[1:].strip() not in labels
