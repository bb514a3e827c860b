"""Whether this machine has what the local engine's workloads need, and what to do if not. `fairlead doctor` calls it.

A check is a function that returns findings; `_CHECKS` lists them. It reads and asks, and changes nothing.
"""

import os
import pwd
from collections.abc import Callable

from fairlead.engines.local.machine_checks import check_machine
from fairlead.engines.local.network.tools import find_tools
from fairlead.model.finding import Finding

_NETWORKS = "Pods' own networks"


def examine(data_dir: str, is_personal: bool = True) -> list[Finding]:
    """Findings for the server of that folder, whose user must be the caller: tools are asked for as that user."""
    owner = _owner(data_dir)
    if owner not in (None, os.geteuid()):
        name = _name(owner)
        advice = f"Run this command as the server's user: sudo -u {name} fairlead doctor"
        return [Finding("Server's user", "note", f"{data_dir} belongs to {name}", advice)]
    found = check_machine(data_dir, is_personal=is_personal)
    return found + [finding for check in _CHECKS for finding in check()]


def _check_networks() -> list[Finding]:
    tools = find_tools()
    if tools.is_admin:
        ways = "by a bridge of this machine"
    elif tools.pasta:
        ways = f"by {tools.pasta}; not for groups of pods and not in containers"
    else:
        ways = "none: pods share this machine's network, and a port that two of them use refuses the second"
    state = "ok" if tools.is_admin or tools.pasta else "note"
    # Restarted, because the server asks once when it starts.
    lacks = [
        Finding(lack.tool.capitalize(), "note", lack.problem, f"{lack.advice}, then: fairlead server restart")
        for lack in tools.lacks
    ]
    return [Finding(_NETWORKS, state, ways), *lacks]


_CHECKS: tuple[Callable[[], list[Finding]], ...] = (_check_networks,)


def _owner(folder: str) -> int | None:
    try:
        return os.stat(folder).st_uid
    except OSError:
        return None


def _name(user: int | None) -> str:
    try:
        return pwd.getpwuid(user or 0).pw_name
    except KeyError:
        return f"#{user}"
