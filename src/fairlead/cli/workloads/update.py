"""`update`: changes a running workload, with the flags of the members that its kind allows to change.

Every kind that declares such members has this verb; no kind and no field is known by name here.
"""

from fairlead.cli.command import Command, Invocation
from fairlead.cli.flags import PROJECT, Flag, UsageError
from fairlead.cli.session.session import ServerSession
from fairlead.cli.workloads.actions import act_on_each
from fairlead.cli.workloads.spec_flags import apply_flags, as_flag, load_table
from fairlead.cli.workloads.submit_flags import apply_arguments, flags_in_errors
from fairlead.client.json_object import Json
from fairlead.client.kinds import KindEntry
from fairlead.formats.flags.entry import FlagEntry
from fairlead.model.english import with_article

_WORDS = Flag("command", "Use the arguments after -- as the command, replacing the image's entrypoint", "boolean", "c")


def update_command(kind: KindEntry) -> Command:
    table = [entry for entry in load_table(kind.key) if entry["path"].partition(".")[0] in kind.can_change]
    flags = tuple(as_flag(entry) for entry in table)
    return Command(
        "update",
        f"Change {with_article(kind.noun)} while it runs; the old revision serves until the new one is ready",
        lambda call: _update(call, kind, table),
        (PROJECT, _WORDS, *(flag for flag in flags if flag.name != _WORDS.name)),
        "NAME",
        1,
        1,
        trailing="[COMMAND] ARGUMENT...",
        details="Environment variables and other named items that are not given stay unchanged.",
        completes="workload",
    )


def _update(invocation: Invocation, kind: KindEntry, table: list[FlagEntry]) -> int:
    wanted: Json = {}
    given = {name: value for name, value in invocation.parsed.values.items() if name != _WORDS.name}
    apply_flags(table, given, wanted)
    if invocation.parsed.trailing is not None:
        apply_arguments(invocation.parsed.trailing, bool(invocation.get(_WORDS.name)), wanted)
    if not wanted:
        raise UsageError("Nothing to change. Use a flag, or put arguments after --.")

    def update(session: ServerSession, workload: Json) -> None:
        client = session.client.kind(kind.key)
        before = client.get(workload["id"])["spec"] or {}
        with flags_in_errors(kind.key, invocation):
            client.update(workload["id"], {name: _kept(before.get(name), value) for name, value in wanted.items()})

    return act_on_each(invocation, kind.title, "update", update)


def _kept(before: object, wanted: object) -> object:
    """Merge a list of named items with the present items; replace anything else."""
    if not isinstance(wanted, list) or not isinstance(before, list):
        return wanted
    if not all(isinstance(each, dict) and "name" in each for each in wanted):
        return wanted
    names = {each["name"] for each in wanted}
    return [*(each for each in before if each and each.get("name") not in names), *wanted]
