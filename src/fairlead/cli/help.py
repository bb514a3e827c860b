"""Help as text, made from the declarations of commands and flags."""

import textwrap
from collections.abc import Mapping, Sequence

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import EXIT_CODES, OK, RUN_NOTE
from fairlead.cli.flags import GLOBAL, Flag
from fairlead.cli.nouns import NOUNS, Noun, find_command
from fairlead.client.kinds import KindEntry, load_kinds

_WIDTH = 100
_PLACEHOLDERS = {"integer": "N", "number": "X", "duration": "TIME", "string": "TEXT"}


def render_overview(nouns: Mapping[str, Noun], kinds: Mapping[str, KindEntry]) -> str:
    """What `fairlead --help` shows."""
    lines = [
        "Fairlead runs and schedules workloads on this machine or on a cluster.",
        "",
        "Usage: fairlead COMMAND [VERB] [NAME] [flags]",
        "",
        "First steps:",
        "  fairlead run -- python3 -c \"print('hello')\"",
        "  fairlead list",
    ]
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, noun in nouns.items():
        if noun.group:
            groups.setdefault(noun.group, []).append((name, noun.summary))
    first = next(iter(groups.values()))
    first[1:1] = [
        (" ".join(kind.command), f"{kind.noun.capitalize()}s: submit, list, follow, delete") for kind in kinds.values()
    ]
    for group, rows in groups.items():
        lines += ["", f"{group}:", *_rows(rows)]
    lines += ["", "Flags of every command:", *_flag_rows(GLOBAL), "", "`fairlead COMMAND --help` says more."]
    return "\n".join(lines) + "\n"


def render_noun(words: Sequence[str], commands: Sequence[Command]) -> str:
    """The verbs of a noun."""
    rows = [(command.verb, command.summary) for command in commands if command.verb]
    usage = f"Usage: fairlead {' '.join(words)} VERB [NAME] [flags]"
    return (
        "\n".join([usage, "", "Verbs:", *_rows(rows), "", f"`fairlead {' '.join(words)} VERB --help` says more."])
        + "\n"
    )


def render_command(words: Sequence[str], command: Command) -> str:
    """One command with its flags."""
    usage = ["Usage: fairlead", *words, command.usage, "[flags]", command.trailing and f"-- {command.trailing}"]
    lines = [command.summary + ".", "", " ".join(word for word in usage if word)]
    if command.flags:
        lines += ["", "Flags:", *_flag_rows(command.flags)]
    lines += ["", "Flags of every command:", *_flag_rows(GLOBAL)]
    if command.details:
        lines += ["", command.details]
    return "\n".join(lines) + "\n"


def _flag_rows(flags: Sequence[Flag]) -> list[str]:
    rows = []
    for flag in flags:
        value = flag.placeholder or _PLACEHOLDERS.get(flag.type, "")
        spelled = (f"-{flag.short}, " if flag.short else "    ") + f"--{flag.name}{' ' + value if value else ''}"
        rows.append((spelled, flag.help + _remarks(flag)))
    return _rows(rows)


def _remarks(flag: Flag) -> str:
    remarks = []
    if flag.choices:
        remarks.append("one of " + ", ".join(flag.choices))
    if flag.default:
        remarks.append(f"default {flag.default}")
    if flag.repeatable:
        remarks.append("may be repeated")
    if flag.aliases:
        remarks.append("also " + ", ".join(f"--{alias}" for alias in flag.aliases))
    return f" ({'; '.join(remarks)})" if remarks else ""


def _rows(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Two columns; a long left cell has its text on the next line."""
    left = min(max((len(name) for name, _ in rows), default=0), 34)
    lines: list[str] = []
    for name, text in rows:
        wrapped = textwrap.wrap(text, _WIDTH - left - 4) or [""]
        if len(name) > left:
            lines.append(f"  {name}")
        else:
            lines.append(f"  {name:<{left}}  {wrapped.pop(0)}".rstrip())
        lines += [" " * (left + 4) + part for part in wrapped]
    return lines


def render_exit_codes() -> str:
    lines = ["Exit codes:", *_rows([(str(code), meaning) for code, meaning in EXIT_CODES]), "", RUN_NOTE]
    return "\n".join(lines) + "\n"


def commands(_noun: str) -> tuple[Command, ...]:
    return (Command("", "Help on a command, or on `exit-codes`", _run, usage="[COMMAND...]", max_names=None),)


def _run(invocation: Invocation) -> int:
    """Help by name: of the command that the words are, of a noun, or of the exit codes."""
    names = invocation.names
    if not names:
        text = render_overview(NOUNS, load_kinds())
    elif names == ["exit-codes"]:
        text = render_exit_codes()
    else:
        found = find_command(names)
        text = render_command(found.words, found.command) if found.command else render_noun(found.words, found.commands)
    invocation.environment.stdout.write(text)
    return OK
