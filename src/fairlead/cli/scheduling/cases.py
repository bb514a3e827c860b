"""`test FILE...`: runs scheduling cases from files, each a small cluster and the decisions that are expected.

The project's own tests use the same files and the same comparison. It needs no server.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

import yaml

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.flags import OUTPUT, UsageError
from fairlead.cli.terminal.console import Console
from fairlead.cli.terminal.output import chosen_format, render
from fairlead.scheduling.cases import judge

_ENDINGS = (".yaml", ".yml", ".json")


class CaseResult(NamedTuple):
    file: str
    name: str
    #: Where the decisions differ from what the case expects.
    differences: list[str]


def commands(_noun: str) -> tuple[Command, ...]:
    return (
        Command(
            "",
            "Run scheduling test cases from files",
            _test,
            OUTPUT,
            "FILE|FOLDER...",
            1,
            None,
            details="A file contains a list of cases, in YAML or JSON; see the reference page on snapshots.",
        ),
    )


def _test(invocation: Invocation) -> int:
    console = Console(invocation)
    judged = [judged_case for path in _files(invocation) for judged_case in _judge_file(invocation, path)]
    failed = [case for case in judged if case.differences]
    form = chosen_format(invocation, {})
    if form in ("json", "yaml"):
        console.data(render(console, form, [case._asdict() for case in judged]))
    else:
        for case in judged:
            if case.differences or console.is_verbose:
                word = console.paint("FAILED", "red") if case.differences else console.paint("ok", "green")
                console.data(f"{word}  {case.file}: {case.name}")
                for difference in case.differences:
                    console.data(f"        {difference}")
        console.data(f"{len(judged)} cases, {len(failed)} failed.")
    return FAILED if failed or not judged else OK


def _files(invocation: Invocation) -> Iterator[str]:
    """The named files, and the files in the named folders, sorted by name."""
    for name in invocation.names:
        path = os.path.join(invocation.environment.folder, name)
        if os.path.isdir(path):
            yield from (os.path.join(path, each) for each in sorted(os.listdir(path)) if each.endswith(_ENDINGS))
        else:
            yield path


def _judge_file(invocation: Invocation, path: str) -> Iterator[CaseResult]:
    try:
        with open(path, encoding="utf-8") as file:
            content = yaml.safe_load(file)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not valid YAML: {error}") from None
    if not isinstance(content, list) or not all(isinstance(case, dict) for case in content):
        raise UsageError(f"{path} does not contain a list of cases.")
    shown = os.path.relpath(path, invocation.environment.folder)
    for number, case in enumerate(content, start=1):
        yield CaseResult(shown, str(case.get("name", f"case {number}")), _judge(case))


def _judge(case: dict[str, object]) -> list[str]:
    try:
        return judge(case)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        # The case describes no cluster: a member has the wrong type, or a name refers to nothing.
        return [f"The case is not valid: {type(error).__name__}: {error}"]
