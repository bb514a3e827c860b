"""Whether this machine has what the local engine's workloads need, and what to do if not. `fairlead doctor` calls it.

It reads and asks, and changes nothing.
"""

import os
import pwd
from collections.abc import Sequence

from fairlead.engines.local.machine_checks import check_machine
from fairlead.engines.local.network.egress import find_obstacles
from fairlead.engines.local.network.tools import Lack, NetworkTools, find_tools
from fairlead.model.finding import Finding

_NETWORKS = "Pods' own networks"
_EGRESS = "Connections from pods to the outside"


def examine(data_dir: str, is_personal: bool = True) -> list[Finding]:
    """Findings for the server of that folder, whose user must be the caller: tools are asked for as that user."""
    owner = _owner(data_dir)
    if owner not in (None, os.geteuid()):
        name = _name(owner)
        advice = f"Run this command as the server's user: sudo -u {name} fairlead doctor"
        return [Finding("Server's user", "note", f"{data_dir} belongs to {name}", advice)]
    findings = check_machine(data_dir, is_personal=is_personal)
    tools = find_tools()
    return [*findings, *describe_networks(tools, is_shared=not is_personal), *describe_egress(find_obstacles(tools))]


def describe_networks(tools: NetworkTools, *, is_shared: bool) -> list[Finding]:
    """A shared server needs them for every pod, a personal one only for pods that serve."""
    can_isolate = tools.is_admin and bool(tools.nft)
    if can_isolate:
        ways = "a namespace each, with rules for who reaches whom"
    elif tools.helper:
        ways = f"a namespace each, by {tools.helper}; not for groups of pods and not in containers"
    elif is_shared:
        ways = "none: the server refuses all pods, unless it was started with --allow shared-network"
    elif tools.is_admin:
        ways = "a namespace each, which reaches this machine only; a shared server would refuse all pods"
    else:
        ways = "none: pods share this machine's network, and a second pod that uses the same port is refused"
    short = "missing" if is_shared else "note"
    state = "ok" if can_isolate or tools.helper else short
    # Restarted, because the server asks once when it starts.
    lacks = [
        Finding(lack.tool.capitalize(), short, lack.problem, f"{lack.advice}, then: fairlead server restart")
        for lack in tools.lacks
    ]
    return [Finding(_NETWORKS, state, ways), *lacks]


def describe_egress(obstacles: Sequence[Lack]) -> list[Finding]:
    """What keeps pods with networks of their own from the outside."""
    if not obstacles:
        return [Finding(_EGRESS, "ok", "as this machine does")]
    return [Finding(_EGRESS, "missing", lack.problem, lack.advice) for lack in obstacles]


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
