"""Facts about one thing, a line for each: its name and its value, in columns."""

from collections.abc import Sequence

from fairlead.cli.terminal.console import Console
from fairlead.cli.terminal.times import shown_time
from fairlead.client.json_object import Json


def show_facts(console: Console, facts: Sequence[tuple[str, str]]) -> None:
    shown = [(name, text) for name, text in facts if text]
    label_width = max((len(name) for name, _ in shown), default=0) + 1
    for name, text in shown:
        console.data(f"{name + ':':<{label_width}}  {text}")


def record_facts(record: Json) -> list[tuple[str, str]]:
    """The members of a record as facts, in their order: `machineUser` is shown as `Machine user`."""
    return [(_label(name), _plain_text(name, value)) for name, value in record.items() if value not in (None, [], {})]


def _label(member: str) -> str:
    label = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in member).removesuffix(" at")
    return f"{label[0].upper()}{label[1:]}"


def _plain_text(member: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return shown_time(value) if member.endswith("At") else str(value)
