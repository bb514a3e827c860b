"""The `fairlead` command: matches the command line to a command, reads its flags and runs it.

Every command starts here, so this imports nothing that a command may not need.
"""

import gc
import importlib
import os
import sys
from collections.abc import Sequence

from fairlead.cli.command import Command, CommandEnvironment, Invocation
from fairlead.cli.exit_codes import INTERRUPTED, OK, USAGE
from fairlead.cli.flags import GLOBAL, PROJECT, Flag, Parsed, UsageError, parse
from fairlead.cli.help import render_command, render_noun, render_overview
from fairlead.cli.nouns import NOUNS, MatchedCommand, find_command
from fairlead.client.kinds import load_kinds

#: Formats errors; imported only when a command fails, because it brings the HTTP client along.
_REPORT = "fairlead.cli.session.report"


def main(argv: Sequence[str] | None = None, environment: CommandEnvironment | None = None) -> int:
    """Run one command line and return its exit code."""
    process = environment or CommandEnvironment(os.environ, _folder(), sys.stdin, sys.stdout, sys.stderr)
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _dispatch(arguments, process)
        process.stdout.flush()
        if environment is None:
            # The process ends here; collecting garbage once more would take a tenth of the time of a short command.
            gc.freeze()
        return code
    except KeyboardInterrupt:
        process.stderr.write("\n")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has closed our output (`| head`). The interpreter must not complain about it at exit either.
        if environment is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def _folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "/"


def _dispatch(arguments: list[str], environment: CommandEnvironment) -> int:
    matched: MatchedCommand | None = None
    try:
        arguments = _move_flags_after_noun(arguments)
        if not arguments or arguments[0].startswith("-"):
            return _run_without_noun(arguments, environment)
        matched = find_command(arguments)
        if matched.command is None:
            return _run_without_verb(matched, environment)
        command = matched.command
        if command.is_raw:
            return _run(command, Invocation(Parsed({}, matched.rest, None), environment, matched.words))
        parsed = _parse(command, matched.rest)
        if parsed.values.get("help"):
            environment.stdout.write(render_command(matched.words, command))
            return OK
        _check_names(command, parsed, matched.words)
        invocation = Invocation(parsed, environment, matched.words)
    except UsageError as error:
        help_command = f"fairlead {' '.join(matched.words)} --help" if matched else "fairlead --help"
        environment.stderr.write(f"fairlead: {error}\nSee `{help_command}`.\n")
        return USAGE
    return _run(command, invocation)


def _run(command: Command, invocation: Invocation) -> int:
    try:
        return command.run(invocation)
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as error:
        code: int = importlib.import_module(_REPORT).report(error, invocation)
        return code


def _move_flags_after_noun(arguments: list[str]) -> list[str]:
    """Move flags that stand before the noun behind it; they mean the same there."""
    takes_value = {
        spelled: flag.type != "boolean"
        for flag in (*GLOBAL, PROJECT)
        for spelled in (f"--{flag.name}", f"-{flag.short}")
    }
    position = 0
    while position < len(arguments) and arguments[position].startswith("-") and arguments[position] != "--":
        position += 2 if takes_value.get(arguments[position]) else 1
    moved = arguments[:position]
    rest = arguments[position:]
    if not moved or not rest:
        return arguments
    cut = rest.index("--") if "--" in rest else len(rest)
    return rest[:cut] + moved + rest[cut:]


def _parse(command: Command, rest: list[str]) -> Parsed:
    """Parse the arguments; the flags of a command to run are unknown here if the -- before it is missing."""
    try:
        return parse(rest, (*command.flags, *GLOBAL))
    except UsageError as error:
        first = rest[: (command.max_names or 0) + 1]
        is_bare = "--" not in rest and (_takes_flags(command) or not any(word.startswith("-") for word in first))
        if command.trailing and is_bare:
            raise UsageError(f"{error}{_advise_dashes(command)}") from error
        raise


def _takes_flags(command: Command) -> bool:
    return command.trailing.startswith("SERVE-FLAG")


def _advise_dashes(command: Command) -> str:
    """What to say if the arguments after -- are not set apart."""
    return f" Put -- before {'the flags of the server' if _takes_flags(command) else 'the command to run'}."


def _check_names(command: Command, parsed: Parsed, words: tuple[str, ...]) -> None:
    """Check that there are as many arguments as the command takes."""
    called = " ".join(words)
    if len(parsed.names) < command.min_names:
        raise UsageError(f"`{called}` needs {command.usage or 'another argument'}.")
    if command.max_names is not None and len(parsed.names) > command.max_names:
        surplus = parsed.names[command.max_names]
        hint = _advise_dashes(command) if command.trailing else ""
        raise UsageError(f"`{called}` got an unexpected argument '{surplus}'.{hint}")
    if parsed.trailing and not command.trailing:
        raise UsageError(f"`{called}` takes no arguments after --.")


def _run_without_noun(arguments: list[str], environment: CommandEnvironment) -> int:
    parsed = parse(arguments, (*GLOBAL, Flag("version", "Show the version", "boolean", "v")))
    if parsed.values.get("version"):
        [version] = find_command(["version"]).commands
        return _run(version, Invocation(parsed, environment))
    environment.stdout.write(render_overview(NOUNS, load_kinds()))
    return OK if not arguments or parsed.values.get("help") else USAGE


def _run_without_verb(matched: MatchedCommand, environment: CommandEnvironment) -> int:
    parsed = parse(matched.rest, GLOBAL)
    if parsed.values.get("help") or not matched.rest:
        environment.stdout.write(render_noun(matched.words, matched.commands))
        return OK if parsed.values.get("help") else USAGE
    raise UsageError(f"`{' '.join(matched.words)}` needs a verb.")


if __name__ == "__main__":
    sys.exit(main())
