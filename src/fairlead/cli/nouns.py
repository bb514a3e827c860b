"""The table of commands: every noun, the module that has its verbs, and how typed words are matched to a command.

Called by `__main__`, `help` and `completion`. A noun's module is imported when the noun is used, so that `fairlead`
starts in milliseconds; the modules themselves import all that they need at the top.
"""

import gc
import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import NamedTuple

from fairlead.cli.command import Command
from fairlead.cli.flags import UsageError
from fairlead.client.kinds import KindEntry, load_kinds
from fairlead.client.suggest import suggest


class Noun(NamedTuple):
    #: Below `fairlead.cli`; its `commands(noun)` gives the verbs.
    module: str
    summary: str
    #: The heading below which the overview shows it; empty for a hidden command.
    group: str


_WORKLOADS, _FILES, _ASSETS, _ORGANIZATION = "Workloads", "Workload files", "Assets", "Organization"
_SCHEDULER, _SERVER, _CLIENT = "Scheduler", "Server", "Account and settings"

#: Every noun that is not a kind of workload.
NOUNS: dict[str, Noun] = {
    "run": Noun("workloads.run", "Run a command on this machine and show its output", _WORKLOADS),
    "workload": Noun("workloads.workload", "Manage workloads of every kind", _WORKLOADS),
    "list": Noun("workloads.workload", "List the workloads of a project", _WORKLOADS),
    "describe": Noun("workloads.workload", "Show a workload's state, pods and events", _WORKLOADS),
    "logs": Noun("workloads.logs", "Show the output of workloads", _WORKLOADS),
    "suspend": Noun("workloads.actions", "Stop workloads; they can be resumed", _WORKLOADS),
    "resume": Noun("workloads.actions", "Resume suspended workloads", _WORKLOADS),
    "why": Noun("workloads.why", "Explain why a workload is pending", _WORKLOADS),
    "estimate": Noun("scheduling.estimate", "Estimate when a pending workload starts", _WORKLOADS),
    "plan": Noun("scheduling.plan", "Show what a submission would do, without submitting", _WORKLOADS),
    "queue": Noun("workloads.queue", "Show who waits, in which order, why and since when", _WORKLOADS),
    "top": Noun("workloads.queue", "Show how full the nodes are, and who uses them", _WORKLOADS),
    "wait": Noun("workloads.wait", "Wait until a workload reaches a phase", _WORKLOADS),
    "delete": Noun("files.apply", "Delete workloads by name, by labels or in files", _WORKLOADS),
    "exec": Noun("pods.exec", "Run a command in a pod", _WORKLOADS),
    "bash": Noun("pods.exec", "Open a shell in a pod", _WORKLOADS),
    "attach": Noun("pods.attach", "Attach to a pod's main process", _WORKLOADS),
    "cp": Noun("pods.cp", "Copy files and folders to or from a pod", _WORKLOADS),
    "port-forward": Noun("pods.port_forward", "Forward a local port to a pod", _WORKLOADS),
    "url": Noun("pods.url", "Print links that open a workload's URLs", _WORKLOADS),
    "apply": Noun("files.apply", "Submit, change or suspend the workloads in files", _FILES),
    "diff": Noun("files.apply", "Compare the workloads in files with the server", _FILES),
    "convert": Noun("files.convert", "Convert a workload from one format to another", _FILES),
    "explain": Noun("files.explain", "Explain a field of a workload", _FILES),
    "lint": Noun("files.lint", "Find contradictions and pitfalls in files or on the server", _FILES),
    "environment": Noun("assets.asset", "Manage environments: image, command, variables", _ASSETS),
    "compute": Noun("assets.asset", "Manage compute resources: GPUs, CPU, memory", _ASSETS),
    "datasource": Noun("assets.asset", "Manage data sources: the volumes of workloads", _ASSETS),
    "template": Noun("assets.template", "Manage workload templates", _ASSETS),
    "secret": Noun("assets.secret", "Manage a project's secrets", _ASSETS),
    "configmap": Noun("assets.secret", "Manage a project's config maps", _ASSETS),
    "pvc": Noun("assets.secret", "Manage a project's persistent volume claims", _ASSETS),
    "credential": Noun("assets.secret", "Manage your personal credentials", _ASSETS),
    "project": Noun("organization.owners", "Manage projects and their quotas", _ORGANIZATION),
    "department": Noun("organization.owners", "Manage departments and their quotas", _ORGANIZATION),
    "policy": Noun("files.policy", "Manage policies: defaults and rules for workloads", _ORGANIZATION),
    "report": Noun("scheduling.report", "Report who used, borrowed, lent and waited for what", _ORGANIZATION),
    "audit": Noun("organization.audit", "Show who did what, from where, with which result", _ORGANIZATION),
    "notification": Noun("organization.notification", "Get notified about workloads", _ORGANIZATION),
    "user": Noun("organization.user", "Manage users and their roles", _ORGANIZATION),
    "service-account": Noun("organization.user", "Manage service accounts and their roles", _ORGANIZATION),
    "group": Noun("organization.user", "Grant roles to groups of users", _ORGANIZATION),
    "role": Noun("organization.roles", "List roles and what they allow, and make your own", _ORGANIZATION),
    "nodepool": Noun("organization.owners", "Manage node pools", _ORGANIZATION),
    "node": Noun("organization.owners", "List, describe, cordon and drain nodes", _ORGANIZATION),
    "cluster": Noun("organization.clusters", "List, add and remove clusters", _ORGANIZATION),
    "workload-type": Noun("organization.lists", "List the types of workloads", _ORGANIZATION),
    "schedule": Noun("scheduling.schedule", "Run the scheduler on a snapshot file", _SCHEDULER),
    "fairshare": Noun("scheduling.schedule", "Compute the fair shares of queues in a file", _SCHEDULER),
    "replay": Noun("scheduling.past", "Repeat recorded scheduling decisions and list what differs", _SCHEDULER),
    "snapshot": Noun("scheduling.snapshot", "Print the snapshot that the server's scheduler sees", _SCHEDULER),
    "what-if": Noun("scheduling.what_if", "Show what changes would do to all workloads", _SCHEDULER),
    "test": Noun("scheduling.cases", "Run scheduling test cases from files", _SCHEDULER),
    "demo": Noun("server.demo", "Watch two teams share eight GPUs, in under a minute", _SCHEDULER),
    "mcp": Noun("agents.mcp", "Serve tools for coding agents", _SERVER),
    "serve": Noun("server.serve", "Run a server in the foreground", _SERVER),
    "server": Noun("server.server", "Start, stop or check the server on this machine", _SERVER),
    "move": Noun("server.transfer", "Move everything from this server to another", _SERVER),
    "export": Noun("server.transfer", "Export everything that `move` would move to a file", _SERVER),
    "import": Noun("server.transfer", "Import everything from Run:ai or from a file", _SERVER),
    "doctor": Noun("server.doctor", "Check that a cluster or this machine has what workloads need", _SERVER),
    "kubernetes": Noun("server.kubernetes", "Install Fairlead in a cluster, and adopt workloads there", _SERVER),
    "backup": Noun("server.backup", "Back up the server's data to a file", _SERVER),
    "restore": Noun("server.restore", "Restore the server's data from a backup or a cluster", _SERVER),
    "upgrade": Noun("server.upgrade", "Install another version, and restart the server with it", _SERVER),
    "ui": Noun("server.ui", "Open the web page in a browser, signed in", _CLIENT),
    "login": Noun("server.login", "Log in", _CLIENT),
    "logout": Noun("server.login", "Log out", _CLIENT),
    "whoami": Noun("server.login", "Show the logged-in user and the server", _CLIENT),
    "config": Noun("server.config", "Show and change settings of the command line", _CLIENT),
    "completion": Noun("completion", "Print a completion script for bash, zsh or fish", _CLIENT),
    "version": Noun("server.version", "Show the versions of client and server", _CLIENT),
    "help": Noun("help", "Show help for a command, or `help exit-codes`", _CLIENT),
    "__complete": Noun("completion", "", ""),
}
#: Other spellings of the same nouns.
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
#: Commands of the runai command line and of other tools that do not exist here, and what to use instead.
_REPLACED = {
    "auth": "log in with `fairlead login`, set permissions with `fairlead user`, `service-account`, `group` and `role`",
    "diagnostics": "`fairlead server status` names the server's log, `--debug` shows the requests of a command",
    "kubeconfig": "commands talk to the server, see `fairlead login` and `fairlead config`",
    "cancel": "`fairlead suspend NAME` stops a workload and keeps it, `fairlead delete NAME` removes it",
    "get": "`fairlead list` shows the workloads, `fairlead describe NAME` one of them",
    "jobs": "`fairlead list` shows the workloads, `fairlead queue` those that wait",
    "kill": "`fairlead suspend NAME` stops a workload and keeps it, `fairlead delete NAME` removes it",
    "salloc": "`fairlead run -it -- bash` opens a terminal in a job",
    "sacct": "`fairlead list` shows the workloads, `fairlead describe NAME` one of them",
    "sbatch": "`fairlead run --detach -- bash FILE` runs a script, `fairlead convert FILE` reads its #SBATCH lines",
    "scancel": "`fairlead delete NAME` removes a workload, `fairlead suspend NAME` stops it and keeps it",
    "scontrol": "`fairlead describe NAME` shows a workload, `fairlead suspend` and `resume` stop and start it",
    "sinfo": "`fairlead node list` shows the nodes, `fairlead top` how full they are",
    "squeue": "`fairlead list` shows the workloads, `fairlead queue` those that wait",
    "srun": "`fairlead run -- COMMAND` runs a command",
    "rm": "`fairlead delete NAME` removes a workload",
    "start": "`fairlead resume NAME` starts a suspended workload, `fairlead server start` the server",
    "status": "`fairlead list` shows the workloads, `fairlead server status` the server",
    "stop": "`fairlead suspend NAME` stops a workload, `fairlead server stop` the server",
    "submit": "`fairlead run -- COMMAND` runs a command, `fairlead training submit NAME` submits a training",
}
#: The sub-type of a kind whose command has one word, as in `training standard submit`.
_STANDARD = "standard"
#: The noun, and the flag of the commands that submit.
_PLAN = "plan"


class MatchedCommand(NamedTuple):
    """The command that a command line starts with; `command` is None if the verb is missing."""

    words: tuple[str, ...]
    commands: tuple[Command, ...]
    command: Command | None
    #: The words after the command.
    rest: list[str]


def find_command(arguments: Sequence[str]) -> MatchedCommand:
    """Match the first words of a command line to a command; raises UsageError if there is none."""
    kinds = load_kinds()
    if arguments[0] == _PLAN and (planned := _find_planned(arguments[1:], kinds)):
        arguments = planned
    kind = _find_kind(arguments, kinds)
    if kind is not None:
        used = len(kind.command)
        if list(arguments[used : used + 1]) == [_STANDARD]:
            used += 1
        commands: tuple[Command, ...] = load_module("workloads.kinds").commands(kind)
    else:
        used, commands = 1, _commands_of(arguments[0], kinds)
    return _find_verb(tuple(arguments[:used]), commands, list(arguments[used:]))


def _find_planned(arguments: Sequence[str], kinds: dict[str, KindEntry]) -> list[str] | None:
    """The command that submits what `plan` is asked about, with the flag that only plans; None if it is not one."""
    flag = f"--{_PLAN}"
    if not arguments:
        return None
    if arguments[0] == "run":
        return ["run", flag, *arguments[1:]]
    if arguments[0].split("=")[0] in ("-f", "--filename"):
        return ["apply", flag, *arguments]
    kind = _find_kind(arguments, kinds)
    if kind is None:
        return None
    rest = arguments[len(kind.command) :]
    return [*kind.command, "submit", flag, *(rest[1:] if rest[:1] == ["submit"] else rest)]


def _commands_of(word: str, kinds: dict[str, KindEntry]) -> tuple[Command, ...]:
    noun = ALIASES.get(word, word)
    if noun in _REPLACED:
        raise UsageError(f"Fairlead has no command '{noun}': {_REPLACED[noun]}.")
    if noun not in NOUNS:
        known = [*NOUNS, *dict.fromkeys(entry.command[0] for entry in kinds.values())]
        raise UsageError(f"Unknown command '{noun}'.{suggest(noun, known)}")
    commands: tuple[Command, ...] = load_module(NOUNS[noun].module).commands(noun)
    return commands


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
    hint = suggest(verb, known) or f" The verbs of {words[-1]} are {', '.join(known)}."
    raise UsageError(f"Unknown command '{' '.join(words)} {verb}'.{hint}")


def _find_kind(arguments: Sequence[str], kinds: dict[str, KindEntry]) -> KindEntry | None:
    """The kind whose command has the most of the first words."""
    every = [command for entry in kinds.values() for command in (entry, *entry.subtypes)]
    matching = [entry for entry in every if tuple(arguments[: len(entry.command)]) == entry.command]
    return max(matching, key=lambda entry: len(entry.command), default=None)


def load_module(module: str) -> ModuleType:
    """A module of the command line, imported when it is needed."""
    # Collecting garbage while modules load finds nothing, and takes a tenth of the time of a short command.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(f"fairlead.cli.{module}")
    finally:
        if was_enabled:
            gc.enable()
