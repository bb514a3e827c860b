"""Shell completion: scripts for bash, zsh and fish, and the hidden command that they call.

Commands and flags come from their declarations; names of workloads, projects and nodes come from the server. If the
completion fails, it prints nothing: a message in the middle of typing would be in the way.
"""

from collections.abc import Callable, Iterable, Sequence

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import GLOBAL, Flag, Parsed, UsageError
from fairlead.cli.nouns import NOUNS, find_command
from fairlead.cli.session.session import ServerSession
from fairlead.cli.session.settings import KEYS
from fairlead.cli.terminal.phases import PHASES
from fairlead.client import Client, ClientError
from fairlead.client.kinds import load_kinds

_SHELLS = ("bash", "zsh", "fish")
_SCRIPTS = {
    "bash": """# fairlead completion for bash; add to ~/.bashrc: eval "$(fairlead completion bash)"
_fairlead() {
    local IFS=$'\\n'
    COMPREPLY=($(fairlead __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _fairlead fairlead
""",
    "zsh": """#compdef fairlead
# fairlead completion for zsh; add to ~/.zshrc: eval "$(fairlead completion zsh)"
_fairlead() {
    local -a found
    found=("${(@f)$(fairlead __complete "${(@)words[2,$CURRENT]}" 2>/dev/null)}")
    [[ -n "$found" ]] && compadd -a found || _files
}
compdef _fairlead fairlead
""",
    "fish": """# fairlead completion for fish; add to ~/.config/fish/completions/fairlead.fish
complete -c fairlead -f -a '(fairlead __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
""",
}
_PLACES: dict[str, Callable[[Client], list[dict[str, object]]]] = {
    "project": lambda client: client.projects(),
    "department": lambda client: client.departments(),
    "cluster": lambda client: client.clusters(),
    "node": lambda client: client.nodes(),
    "nodepool": lambda client: client.node_pools(),
}


#: Objects that `submit` takes by name, and where their lists are.
_ASSETS = {
    "environment": "asset/environment",
    "compute": "asset/compute",
    "datasource": "asset/datasource",
    "template": "workload-templates",
}


def commands(noun: str) -> tuple[Command, ...]:
    if noun == "completion":
        return (
            Command(
                "", "Print a completion script for a shell", _print, usage="bash|zsh|fish", min_names=1, max_names=1
            ),
        )
    return (Command("", "", _complete, is_raw=True, max_names=None),)


def _print(invocation: Invocation) -> int:
    shell = invocation.names[0]
    if shell not in _SHELLS:
        raise UsageError(f"Completion is available for {', '.join(_SHELLS)}, not for '{shell}'.")
    invocation.environment.stdout.write(_SCRIPTS[shell])
    return OK


def _complete(invocation: Invocation) -> int:
    *before, typed = invocation.names or [""]
    try:
        completions = list(candidates(invocation, before, typed))
    except (UsageError, ClientError):
        return OK
    for word in sorted({word for word in completions if word.startswith(typed)}):
        invocation.environment.stdout.write(word + "\n")
    return OK


def candidates(invocation: Invocation, before: Sequence[str], typed: str) -> Iterable[str]:
    """The words that can follow `before`; `typed` is the beginning of the next word."""
    kinds = _words_of_kinds(before)
    if not before:
        return [*(noun for noun, entry in NOUNS.items() if entry.group), *kinds]
    matched = find_command(list(before))
    command: Command | None = matched.command
    if command is None:
        return [*(one.verb for one in matched.commands if one.verb), *kinds]
    flags = (*command.flags, *GLOBAL)
    if typed.startswith("-"):
        return [f"--{name}" for flag in flags for name in (flag.name, *flag.aliases)]
    awaiting = _flag_of(before[-1], flags)
    if awaiting is not None and awaiting.type != "boolean":
        return awaiting.choices or _values(invocation, awaiting.name)
    verbs = [one.verb for one in matched.commands if one.verb] if not command.verb else []
    return [*verbs, *(_names(invocation, command.completes) if command.completes else ())]


def _values(invocation: Invocation, flag: str) -> Sequence[str]:
    """The values of a flag that the server or the tables know."""
    if flag == "type":
        return [kind.title for kind in load_kinds().values()]
    if flag in ("status", "for"):
        return PHASES
    what = {"node-pools": "nodepool", "exclude-node": "node"}.get(flag, flag)
    return _names(invocation, what) if what in (*_PLACES, *_ASSETS, "workload") else ()


def _words_of_kinds(before: Sequence[str]) -> list[str]:
    """The words of the commands of kinds and their sub-types that come next after these."""
    every = [entry.command for kind in load_kinds().values() for entry in (kind, *kind.subtypes)]
    used = len(before)
    return [command[used] for command in every if len(command) > used and command[:used] == tuple(before)]


def _flag_of(word: str, flags: Iterable[Flag]) -> Flag | None:
    for flag in flags:
        if word in (f"--{flag.name}", f"-{flag.short}", *(f"--{alias}" for alias in flag.aliases)):
            return flag
    return None


def _names(invocation: Invocation, what: str) -> list[str]:
    if what == "key":
        return list(KEYS)
    session = ServerSession(Invocation(Parsed({"quiet": True}, [], None), invocation.environment))
    if what in _ASSETS:
        rows = session.client.request("GET", f"/api/v1/{_ASSETS[what]}")
        entries = next(iter(rows.values())) if isinstance(rows, dict) else rows
        return [str(row["meta"]["name"]) for row in entries]
    if what in _PLACES:
        return [str(row["name"]) for row in _PLACES[what](session.client)]
    filters = [f"projectId=={session.project()['id']}"]
    rows = session.client.workloads(filterBy=filters, limit=500)["workloads"]
    return [str(row["name"]) for row in rows if not row.get("deletedAt")]
