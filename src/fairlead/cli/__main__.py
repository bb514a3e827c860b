"""The `fairlead` command: finds the module of a command in one explicit table, loads only that, and runs it.

Every command starts here, so this imports nothing that a command may not need.
"""

import gc
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from fairlead.cli.command import Command, CommandEnvironment, Invocation
from fairlead.cli.exit_codes import INTERRUPTED, OK, USAGE
from fairlead.cli.flags import GLOBAL, PROJECT, Flag, Parsed, UsageError, parse
from fairlead.cli.suggest import suggest
from fairlead.client.kinds import KindEntry, load_kinds


class Noun(NamedTuple):
    module: str
    summary: str
    group: str


_WORK, _PLACES, _SCHEDULING = "Work", "Places", "Scheduling"
_SERVER, _YOU = "Server", "You and this command"
_OBJECTS, _PEOPLE = "What workloads use", "People"

#: Every noun that is no kind of workload. A module's `commands(noun)` gives its verbs.
NOUNS: dict[str, Noun] = {
    "run": Noun("workloads.run", "Run a command on this machine and see its output", _WORK),
    "workload": Noun("workloads.workload", "Workloads of every kind", _WORK),
    "list": Noun("workloads.workload", "List the workloads of the project", _WORK),
    "describe": Noun("workloads.workload", "Show one workload: state, compute, pods, events", _WORK),
    "logs": Noun("workloads.workload", "Show what a workload prints", _WORK),
    "exec": Noun("workloads.exec", "Run a command beside a pod's own", _WORK),
    "bash": Noun("workloads.exec", "Open a shell beside a pod's own command", _WORK),
    "attach": Noun("workloads.exec", "Be at the input and output of a pod's own command", _WORK),
    "port-forward": Noun("workloads.port_forward", "Reach a port of a pod by a port of this machine", _WORK),
    "url": Noun("workloads.url", "Links that open a workload's URLs in a browser", _WORK),
    "wait": Noun("workloads.wait", "Wait until a workload reaches a phase", _WORK),
    "apply": Noun("files.apply", "Submit, suspend or resume what files of workload YAML describe", _WORK),
    "diff": Noun("files.apply", "Compare files of workload YAML with what the server has", _WORK),
    "delete": Noun("files.apply", "Delete the workloads that files describe", _WORK),
    "explain": Noun("files.explain", "Explain a field of a workload", _WORK),
    "convert": Noun("files.convert", "Turn a workload from one dialect into another", _WORK),
    "why": Noun("workloads.why", "Why a workload waits: the blocker, who holds what, what would change it", _WORK),
    "secret": Noun("assets.secret", "Secrets of the project", _OBJECTS),
    "configmap": Noun("assets.secret", "Config maps of the project", _OBJECTS),
    "pvc": Noun("assets.secret", "Claims of the project", _OBJECTS),
    "credential": Noun("assets.secret", "Your own credentials, which only your workloads can use", _OBJECTS),
    "environment": Noun("assets.asset", "Environments to submit workloads from", _OBJECTS),
    "compute": Noun("assets.asset", "Compute resources to submit workloads from", _OBJECTS),
    "datasource": Noun("assets.asset", "Data sources for workloads to mount", _OBJECTS),
    "template": Noun("assets.template", "Templates to submit workloads from", _OBJECTS),
    "user": Noun("organization.user", "Users and what they may do", _PEOPLE),
    "service-account": Noun("organization.user", "Service accounts and what they may do", _PEOPLE),
    "project": Noun("organization.owners", "Projects and their quotas", _PLACES),
    "department": Noun("organization.owners", "Departments and their quotas", _PLACES),
    "cluster": Noun("organization.lists", "Clusters", _PLACES),
    "node": Noun("organization.owners", "Nodes", _PLACES),
    "nodepool": Noun("organization.owners", "Node pools", _PLACES),
    "workload-type": Noun("organization.lists", "The types of workloads", _PLACES),
    "schedule": Noun("scheduling.schedule", "Decide on a snapshot of a cluster and print the decisions", _SCHEDULING),
    "fairshare": Noun("scheduling.schedule", "Divide a cluster among queues and print their shares", _SCHEDULING),
    "snapshot": Noun("scheduling.schedule", "Print what the server's scheduler sees now", _SCHEDULING),
    "test": Noun("scheduling.cases", "Run scheduling cases from files", _SCHEDULING),
    "demo": Noun("server.demo", "Two teams share eight GPUs, in under a minute, and leave nothing behind", _SCHEDULING),
    "serve": Noun("server.serve", "Run a server in the foreground", _SERVER),
    "server": Noun("server.server", "Start, stop or look at this machine's server", _SERVER),
    "doctor": Noun("server.doctor", "Look whether a cluster has what workloads need", _SERVER),
    "kubernetes": Noun("server.kubernetes", "Run the server itself in a cluster", _SERVER),
    "backup": Noun("server.backup", "Copy the server's data into a file", _SERVER),
    "restore": Noun("server.backup", "Bring the server's data back from such a file", _SERVER),
    "login": Noun("server.login", "Log in", _YOU),
    "logout": Noun("server.login", "Forget the login", _YOU),
    "whoami": Noun("server.login", "Show who is logged in, and where", _YOU),
    "config": Noun("server.config", "Show and change the configuration of this command", _YOU),
    "completion": Noun("completion", "Completion for bash, zsh or fish", _YOU),
    "version": Noun("server.version", "Show the versions of this command and of the server", _YOU),
    "help": Noun("help", "Help on a command, or on `exit-codes`", _YOU),
    "__complete": Noun("completion", "", ""),
}
#: Modules that cost more to load than a command should, by the name under which commands ask for them.
LAZY = {
    "server": "fairlead.app",
    "assets": "fairlead.admission.assets",
    "yaml": "yaml",
    "yaml_text": "fairlead.formats.yaml.text",
    "traceback": "traceback",
    "sqlite": "fairlead.store.sqlite",
    "convert": "fairlead.formats.convert.dialects",
    "converted": "fairlead.formats.intermediate",
    "convert_detect": "fairlead.formats.convert.convert_detect",
    "convert_from_rest": "fairlead.formats.convert.from_rest",
    "convert_from_texts": "fairlead.formats.convert.from_texts",
    "convert_from_yaml": "fairlead.formats.convert.from_yaml",
    "convert_to_flags": "fairlead.formats.convert.to_flags",
    "convert_to_rest": "fairlead.formats.convert.to_rest",
    "convert_to_yaml": "fairlead.formats.convert.to_yaml",
    "convert_command": "fairlead.cli.files.convert_command",
    "convert_live": "fairlead.cli.files.convert_live",
    "convert_losses": "fairlead.formats.losses",
    "spec_flags": "fairlead.cli.workloads.spec_flags",
    "kubernetes": "fairlead.engines.kubernetes.render.workload",
    "doctor": "fairlead.engines.kubernetes.install.doctor",
    "installing": "fairlead.engines.kubernetes.install.preflight",
    "scheduling": "fairlead.scheduling",
    "cases": "fairlead.scheduling.cases",
    "commands": "fairlead.cli.__main__",
}
#: Further words for the same nouns.
ALIASES = {
    "ls": "list",
    "ps": "list",
    "workloads": "workload",
    "secrets": "secret",
    "configmaps": "configmap",
    "config-map": "configmap",
    "pvcs": "pvc",
    "credentials": "credential",
    "my-credential": "credential",
    "environments": "environment",
    "datasources": "datasource",
    "workload-types": "workload-type",
    "templates": "template",
    "users": "user",
    "service-accounts": "service-account",
    "projects": "project",
    "departments": "department",
    "clusters": "cluster",
    "nodes": "node",
    "node-pool": "nodepool",
    "nodepools": "nodepool",
}
#: Nouns of the runai command line without a counterpart, and what to do instead.
ELSEWHERE = {
    "auth": "log in with `fairlead login`; who may do what is `fairlead user` and `fairlead service-account`",
    "diagnostics": "`fairlead server status` names the server's log; `--debug` shows the requests of a command",
    "kubeconfig": "commands talk to the server; see `fairlead login` and `fairlead config`",
    "report": "the server's figures are at its path /metrics",
    "upgrade": "install the newer version as you installed this one, then `fairlead server restart`",
}
#: The sub-type that a kind of one word has when none is named, as in `training standard submit`.
STANDARD = "standard"


class MatchedCommand(NamedTuple):
    """A command, the words that led to it and the words after them; `command` is None when the verb is missing."""

    words: tuple[str, ...]
    commands: tuple[Command, ...]
    command: Command | None
    rest: list[str]


def main(argv: Sequence[str] | None = None, surroundings: CommandEnvironment | None = None) -> int:
    """Run one command line; the answer is the exit code."""
    around = surroundings or CommandEnvironment(os.environ, _folder(), sys.stdin, sys.stdout, sys.stderr, load_lazily)
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _dispatch(words, around)
        around.stdout.flush()
        if surroundings is None:
            # The process ends here; to look for garbage in all that it has loaded would be a tenth of a short command.
            gc.freeze()
        return code
    except KeyboardInterrupt:
        around.stderr.write("\n")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has enough of it (`| head`). The interpreter must not complain at its end either.
        if surroundings is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def _folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "/"


def _dispatch(words: list[str], around: CommandEnvironment) -> int:
    found: MatchedCommand | None = None
    try:
        words = _move_flags_after_noun(words)
        if not words or words[0].startswith("-"):
            return _without_noun(words, around)
        found = find_command(words)
        if found.command is None:
            return _without_verb(found, around)
        command = found.command
        if command.is_raw:
            return _run(command, Invocation(Parsed({}, found.rest, None), around, found.words))
        parsed = parse(found.rest, (*command.flags, *GLOBAL))
        if parsed.values.get("help"):
            return _show_help(around, found)
        _check(command, parsed, found.words)
        invocation = Invocation(parsed, around, found.words)
    except UsageError as error:
        hint = f"`fairlead {' '.join(found.words)} --help`" if found else "`fairlead --help`"
        around.stderr.write(f"fairlead: {error}\nSee {hint}.\n")
        return USAGE
    return _run(command, invocation)


def _run(command: Command, invocation: Invocation) -> int:
    # Errors are told in words by a module that only a failing command loads.
    try:
        return command.run(invocation)
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as error:
        code: int = _load("session.report").report(error, invocation)
        return code


def find_command(words: Sequence[str]) -> MatchedCommand:
    """The command that the words begin with; raises UsageError for words that are none."""
    kinds = load_kinds()
    kind = _find_kind(words, kinds)
    if kind is not None:
        used = len(kind.command)
        if words[used : used + 1] == [STANDARD]:
            used += 1
        commands: tuple[Command, ...] = _load("workloads.kinds").commands(kind)
    else:
        noun = ALIASES.get(words[0], words[0])
        if noun not in NOUNS:
            if noun in ELSEWHERE:
                raise UsageError(f"There is no `{noun}` here: {ELSEWHERE[noun]}.")
            known = [*NOUNS, *dict.fromkeys(entry.command[0] for entry in kinds.values())]
            raise UsageError(f"Unknown command '{noun}'.{suggest(noun, known)}")
        used, commands = 1, _load(NOUNS[noun].module).commands(noun)
    return _find_verb(tuple(words[:used]), commands, list(words[used:]))


def _find_verb(words: tuple[str, ...], commands: tuple[Command, ...], rest: list[str]) -> MatchedCommand:
    if len(commands) == 1 and not commands[0].verb:
        return MatchedCommand(words, commands, commands[0], rest)
    bare = next((command for command in commands if not command.verb), None)
    if not rest or rest[0].startswith("-"):
        return MatchedCommand(words, commands, bare, rest)
    verb = rest[0]
    for command in commands:
        if verb and verb in (command.verb, *command.aliases):
            return MatchedCommand((*words, command.verb), commands, command, rest[1:])
    known = [command.verb for command in commands if command.verb]
    raise UsageError(f"Unknown command '{' '.join(words)} {verb}'.{suggest(verb, known)}")


def _find_kind(words: Sequence[str], kinds: dict[str, KindEntry]) -> KindEntry | None:
    every = [command for entry in kinds.values() for command in (entry, *entry.subtypes)]
    matching = [entry for entry in every if tuple(words[: len(entry.command)]) == entry.command]
    return max(matching, key=lambda entry: len(entry.command), default=None)


def _move_flags_after_noun(words: list[str]) -> list[str]:
    """Move flags that stand before the noun behind it; they mean the same there."""
    takes_value = {
        spelled: flag.type != "boolean"
        for flag in (*GLOBAL, PROJECT)
        for spelled in (f"--{flag.name}", f"-{flag.short}")
    }
    position = 0
    while position < len(words) and words[position].startswith("-") and words[position] != "--":
        position += 2 if takes_value.get(words[position]) else 1
    moved = words[:position]
    rest = words[position:]
    if not moved or not rest:
        return words
    cut = rest.index("--") if "--" in rest else len(rest)
    return rest[:cut] + moved + rest[cut:]


def _check(command: Command, parsed: Parsed, words: tuple[str, ...]) -> None:
    """Whether names and trailing words are as many as the command takes."""
    called = " ".join(words)
    if len(parsed.names) < command.fewest:
        raise UsageError(f"`{called}` needs {command.usage or 'more words'}.")
    if command.most is not None and len(parsed.names) > command.most:
        surplus = parsed.names[command.most]
        hint = " Put -- before the command to run." if command.trailing else ""
        raise UsageError(f"`{called}` does not know what to do with '{surplus}'.{hint}")
    if parsed.trailing and not command.trailing:
        raise UsageError(f"`{called}` takes no words after --.")


def _without_noun(words: list[str], around: CommandEnvironment) -> int:
    parsed = parse(words, (*GLOBAL, Flag("version", "Show the version", "boolean", "v")))
    if parsed.values.get("version"):
        return _run(_load("server.version").commands("version")[0], Invocation(parsed, around))
    around.stdout.write(_load("help").render_overview(NOUNS, load_kinds()))
    return OK if not words or parsed.values.get("help") else USAGE


def _without_verb(found: MatchedCommand, around: CommandEnvironment) -> int:
    parsed = parse(found.rest, GLOBAL)
    text: str = _load("help").render_noun(found.words, found.commands)
    if parsed.values.get("help") or not found.rest:
        around.stdout.write(text)
        return OK if parsed.values.get("help") else USAGE
    raise UsageError(f"`{' '.join(found.words)}` needs a verb.")


def _show_help(around: CommandEnvironment, found: MatchedCommand) -> int:
    around.stdout.write(_load("help").render_command(found.words, found.command))
    return OK


def load_lazily(name: str) -> Any:
    return importlib.import_module(LAZY[name])


def _load(module: str) -> Any:
    return importlib.import_module(f"fairlead.cli.{module}")


if __name__ == "__main__":
    sys.exit(main())
