"""The commands in the tables of pages for people who come from elsewhere exist, with the flags that are shown."""

import re
import shlex
from pathlib import Path

import pytest

from fairlead.cli.flags import GLOBAL
from fairlead.cli.nouns import find_command

DOCS = Path(__file__).parents[3] / "docs"
PAGES = ("from-runai.md", "from-slurm.md", "one-to-many.md")


def commands_of(page: str) -> list[str]:
    """Commands in backquotes and in blocks; `…` stands for more."""
    text = (DOCS / page).read_text()
    lines = [line.strip() for block in re.findall(r"```\w*\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    found = [line for line in (*lines, *spans) if line.startswith("fairlead ")]
    return list(dict.fromkeys(re.split(r" [>|] | #|;", line)[0] for line in found))


@pytest.mark.parametrize(("page", "line"), [(page, line) for page in PAGES for line in commands_of(page)])
def test_a_command_exists_with_its_flags(page: str, line: str) -> None:
    arguments = shlex.split(line.removeprefix("fairlead ").replace("…", ""))
    before = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if before[0] == "--url":
        before = before[2:]
    found = find_command(before)
    # A noun alone names all of its verbs.
    assert found.command is not None or len(before) == 1, line
    flags = (
        [flag for command in found.commands for flag in command.flags] if found.command is None else found.command.flags
    )
    known = {name for flag in (*flags, *GLOBAL) for name in (f"--{flag.name}", *(f"--{also}" for also in flag.aliases))}
    known |= {f"-{flag.short}" for flag in (*flags, *GLOBAL) if flag.short}
    given = [word.partition("=")[0] for word in found.rest if re.match(r"--?[a-zA-Z]", word)]
    # Switches of one letter may be joined, as in -it.
    spelled = [f"-{letter}" for word in given if re.fullmatch(r"-[a-z]{2,}", word) for letter in word[1:]]
    spelled += [word for word in given if not re.fullmatch(r"-[a-z]{2,}", word)]
    assert not [word for word in spelled if word not in known], line


def test_there_are_many() -> None:
    assert sum(len(commands_of(page)) for page in PAGES) > 40
