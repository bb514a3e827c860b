"""Help texts, made from the declarations of commands and flags, and the command `help`."""

import textwrap
from collections.abc import Mapping, Sequence

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import EXIT_CODES, OK, RUN_NOTE
from fairlead.cli.flags import GLOBAL, Flag
from fairlead.cli.nouns import NOUNS, Noun, find_command
from fairlead.client.kinds import KindEntry, load_kinds

_WIDTH = 80
#: The widest left column of a table of flags; a longer cell has its text on the next line.
_MAX_LEFT = 34
_PLACEHOLDERS = {"integer": "N", "number": "X", "duration": "TIME", "string": "TEXT"}
_FIRST_STEPS = (
    ("fairlead run -- echo hello", "Run a command as a workload"),
    ("fairlead list", "List your workloads"),
    ("fairlead demo", "See fair sharing and preemption at work"),
)


def render_overview(nouns: Mapping[str, Noun], kinds: Mapping[str, KindEntry]) -> str:
    """What `fairlead --help` shows."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, noun in nouns.items():
        if noun.group:
            groups.setdefault(noun.group, []).append((name, noun.summary))
    first = next(iter(groups.values()))
    first[1:1] = [(" ".join(kind.command), f"Submit and manage {kind.noun}s") for kind in kinds.values()]
    name_width = max(len(name) for rows in groups.values() for name, _ in rows)
    lines = [
        "Fairlead runs and schedules AI workloads on this machine or on a cluster.",
        "",
        "Usage: fairlead COMMAND [VERB] [NAME] [flags]",
        "",
        "First steps:",
        *_rows(_FIRST_STEPS),
    ]
    for group, rows in groups.items():
        lines += ["", f"{group}:", *_rows(rows, name_width)]
    lines += ["", "Global flags:", *_flag_rows(GLOBAL), "", "Run `fairlead COMMAND --help` for details of a command."]
    return "\n".join(lines) + "\n"


def render_noun(words: Sequence[str], commands: Sequence[Command]) -> str:
    """The verbs of a noun."""
    noun = " ".join(words)
    rows = [(command.verb, command.summary) for command in commands if command.verb]
    lines = [f"Usage: fairlead {noun} VERB [NAME] [flags]", "", "Verbs:", *_rows(rows)]
    lines += ["", f"Run `fairlead {noun} VERB --help` for details of a verb."]
    return "\n".join(lines) + "\n"


def render_command(words: Sequence[str], command: Command) -> str:
    """One command with its flags."""
    usage = ["Usage: fairlead", *words, command.usage, "[flags]", command.trailing and f"-- {command.trailing}"]
    lines = [*textwrap.wrap(command.summary + ".", _WIDTH), "", " ".join(word for word in usage if word)]
    if command.flags:
        lines += ["", "Flags:", *_flag_rows(command.flags)]
    lines += ["", "Global flags:", *_flag_rows(GLOBAL)]
    if command.details:
        lines += ["", *(part for line in command.details.splitlines() for part in _wrap(line))]
    return "\n".join(lines) + "\n"


def _wrap(line: str) -> list[str]:
    """Wrap a line of prose; examples are indented and stay as they are."""
    return [line] if not line or line.startswith(" ") else textwrap.wrap(line, _WIDTH)


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


def _rows(rows: Sequence[tuple[str, str]], name_width: int = 0) -> list[str]:
    """Two columns; `left` is the width of the first, if it is not that of its longest cell."""
    name_width = name_width or min(max((len(name) for name, _ in rows), default=0), _MAX_LEFT)
    lines: list[str] = []
    for name, text in rows:
        wrapped = textwrap.wrap(text, _WIDTH - name_width - 4) or [""]
        if len(name) > name_width:
            lines += _break_at_commas(f"  {name}")
        else:
            lines.append(f"  {name:<{name_width}}  {wrapped.pop(0)}".rstrip())
        lines += [" " * (name_width + 4) + part for part in wrapped]
    return lines


def _break_at_commas(line: str) -> list[str]:
    """Wrap the parts of a long value, such as `name=,path=,size=`; further lines are indented."""
    lines: list[str] = []
    while len(line) > _WIDTH and "," in line[:_WIDTH].lstrip():
        cut = line.rindex(",", 0, _WIDTH) + 1
        lines.append(line[:cut])
        line = " " * 10 + line[cut:]
    return [*lines, line]


def render_exit_codes() -> str:
    lines = ["Exit codes:", *_rows([(str(code), meaning) for code, meaning in EXIT_CODES]), "", RUN_NOTE]
    return "\n".join(lines) + "\n"


def commands(_noun: str) -> tuple[Command, ...]:
    return (Command("", "Show help for a command, or `help exit-codes`", _run, usage="[COMMAND...]", max_names=None),)


def _run(invocation: Invocation) -> int:
    """Print the help of the named command or noun, or the exit codes."""
    names = invocation.names
    if not names:
        text = render_overview(NOUNS, load_kinds())
    elif names == ["exit-codes"]:
        text = render_exit_codes()
    else:
        matched = find_command(names)
        text = (
            render_command(matched.words, matched.command)
            if matched.command
            else render_noun(matched.words, matched.commands)
        )
    invocation.environment.stdout.write(text)
    return OK
