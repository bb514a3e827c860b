"""The verbs of each kind of workload: submit, list, describe, logs, exec, port-forward, suspend, resume, delete.

The kinds and the flags of their specs come from generated tables; no kind is known by name here.
"""

from fairlead.cli.command import Command, Invocation
from fairlead.cli.flags import PROJECT, Flag, UsageError
from fairlead.cli.pods.attach import verb as attach_verb
from fairlead.cli.pods.exec import verbs
from fairlead.cli.pods.port_forward import verb as port_forward_verb
from fairlead.cli.session.session import ServerSession
from fairlead.cli.workloads import submit
from fairlead.cli.workloads.actions import act_on_each, action
from fairlead.cli.workloads.logs import logs_command
from fairlead.cli.workloads.submit_flags import submit_flags
from fairlead.cli.workloads.update import update_command
from fairlead.cli.workloads.workload import (
    DESCRIBE_FLAGS,
    LIST_DETAILS,
    LIST_FLAGS,
    describe_workload,
    list_workloads,
)
from fairlead.client.json_object import Json
from fairlead.client.kinds import KindEntry
from fairlead.model.english import with_article


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
            details=LIST_DETAILS,
        ),
        Command(
            "describe",
            f"Show {title}s",
            lambda call: describe_workload(call, kind.title),
            DESCRIBE_FLAGS,
            "NAME...",
            1,
            None,
            completes="workload",
        ),
        logs_command(kind.title, f"{title}s"),
    ]
    if "replicas" in kind.can_change:
        made.append(
            Command(
                "scale",
                f"Change the number of replicas of {with_article(title)}",
                lambda call: _scale(call, kind),
                (PROJECT, Flag("replicas", "Number of replicas", placeholder="NUMBER")),
                "NAME",
                1,
                1,
                completes="workload",
            )
        )
    elif kind.can_change:
        made.append(update_command(kind))
    if kind.can_suspend:
        made += [action("suspend", kind.title, f"{title}s"), action("resume", kind.title, f"{title}s")]
    return (*made, *verbs(), attach_verb(), port_forward_verb(), action("delete", kind.title, f"{title}s"))


def _submit(kind: KindEntry) -> Command:
    return Command(
        "submit",
        f"Submit {with_article(kind.noun)}",
        lambda call: submit.submit(call, kind),
        submit_flags(kind),
        "[NAME]",
        max_names=1,
        trailing="[COMMAND] ARGUMENT...",
    )


def _scale(invocation: Invocation, kind: KindEntry) -> int:
    wanted = invocation.get("replicas")
    if wanted is None or not str(wanted).isdecimal():
        raise UsageError("No number of replicas given. Use --replicas NUMBER.")

    def scale(session: ServerSession, workload: Json) -> None:
        session.client.kind(kind.key).update(workload["id"], {"replicas": int(wanted)})

    return act_on_each(invocation, kind.title, "scale", scale)
