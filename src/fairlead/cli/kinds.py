"""The verbs of each kind of workload: submit, list, describe, logs, exec, port-forward, suspend, resume, delete.

The kinds and the flags of their specs come from generated tables; no kind is known by name here.
"""

from typing import Any

from fairlead.cli import submission
from fairlead.cli.asset import SUBMIT_FLAGS as ASSET_FLAGS
from fairlead.cli.command import Command, Invocation
from fairlead.cli.exec import verbs
from fairlead.cli.flags import OUTPUT, PROJECT, Flag, UsageError
from fairlead.cli.port_forward import verb as port_forward_verb
from fairlead.cli.session import Session
from fairlead.cli.spec_flags import as_flag, load_table
from fairlead.cli.update import update_command
from fairlead.cli.workload import (
    DESCRIBE_FLAGS,
    LIST_FLAGS,
    LOGS_FLAGS,
    act_on_each,
    describe_workload,
    list_workloads,
    show_logs,
)
from fairlead.client.kinds import KindEntry

SUBMIT_FLAGS = (
    PROJECT,
    Flag("file", "Creation request as JSON; flags go over it; - reads standard input", short="f", placeholder="FILE"),
    Flag("name", "Name, if it is not given as a word", placeholder="NAME"),
    Flag("name-prefix", "Begin of the name; an increasing number is added", placeholder="TEXT"),
    Flag(
        "command", "The words after -- replace the image's entry point, instead of being its arguments", "boolean", "c"
    ),
    Flag("template", "Name or id of the template to start from", placeholder="NAME"),
    *ASSET_FLAGS,
    Flag("exclude-node", "Node that it must not run on", repeatable=True, placeholder="NAME"),
    Flag("attach", "Show the output until the workload ends", "boolean"),
    Flag("pod-running-timeout", "With --attach: wait at most so long for a pod to start", "duration"),
    Flag("wait-for-submit", "How long the submission may take", "duration", default="1m"),
    Flag("dry-run", "Print what would be submitted, the template applied, and submit nothing", "boolean"),
    *OUTPUT,
)


def commands(kind: KindEntry) -> tuple[Command, ...]:
    """The verbs of one kind."""
    title = kind.noun
    made = [
        _submit(kind),
        Command(
            "list",
            f"List {title}s",
            lambda call: list_workloads(call, kind.title, kind.sets),
            LIST_FLAGS,
            aliases=("ls",),
        ),
        Command(
            "describe",
            f"Show one {title}",
            lambda call: describe_workload(call, kind.title),
            DESCRIBE_FLAGS,
            "NAME",
            1,
            1,
            completes="workload",
        ),
        Command(
            "logs",
            f"Show what a {title} prints",
            lambda call: show_logs(call, kind.title),
            LOGS_FLAGS,
            "NAME",
            0,
            1,
            completes="workload",
        ),
    ]
    if "replicas" in kind.can_change:
        made.append(
            Command(
                "scale",
                f"Change the number of replicas of a {title}",
                lambda call: _scale(call, kind),
                (PROJECT, Flag("replicas", "How many there are to be", placeholder="NUMBER")),
                "NAME",
                1,
                1,
                completes="workload",
            )
        )
    elif kind.can_change:
        made.append(update_command(kind))
    if kind.can_suspend:
        made += [_action(kind, "suspend", "Stop {}s; they can be resumed"), _action(kind, "resume", "Resume {}s")]
    return (*made, *verbs(), port_forward_verb(), _action(kind, "delete", "Delete {}s"))


def _submit(kind: KindEntry) -> Command:
    spec_flags = tuple(as_flag(entry) for entry in load_table(kind.key))
    known = {flag.name for flag in SUBMIT_FLAGS}
    roles = tuple(
        Flag(submission.as_other(name, like), f"What no flag says of the {name} is as in the {like} (true)", "boolean")
        for name, like in kind.alike
        if like
    )
    return Command(
        "submit",
        f"Submit a {kind.noun}",
        lambda call: submission.submit(call, kind),
        (*SUBMIT_FLAGS, *roles, *(flag for flag in spec_flags if flag.name not in known)),
        "[NAME]",
        most=1,
        trailing="[COMMAND] ARGUMENT...",
    )


def _scale(invocation: Invocation, kind: KindEntry) -> int:
    wanted = invocation.get("replicas")
    if wanted is None or not str(wanted).isdecimal():
        raise UsageError("Give the number of replicas: --replicas NUMBER.")

    def scale(session: Session, found: dict[str, Any]) -> None:
        session.client.kind(kind.key).update(found["id"], {"replicas": int(wanted)})

    return act_on_each(invocation, kind.title, "scale", scale)


def _action(kind: KindEntry, verb: str, summary: str) -> Command:
    def run(invocation: Invocation) -> int:
        return act_on_each(invocation, kind.title, verb, lambda session, found: _act(session, kind, verb, found))

    return Command(verb, summary.format(kind.noun), run, (PROJECT,), "NAME...", 1, None, completes="workload")


def _act(session: Session, kind: KindEntry, verb: str, found: dict[str, Any]) -> None:
    getattr(session.client.kind(kind.key), verb)(found["id"])
