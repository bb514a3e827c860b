"""Whether pods with their own networks reach the outside, and what to do if they do not.

Asked once when the server starts, and by `doctor`. It reads files and the firewall's rules; it changes nothing.
"""

import contextlib
import os
import re
import subprocess

from fairlead.engines.local.linux import small_files
from fairlead.engines.local.network import hosts, router
from fairlead.engines.local.network.tools import Lack, NetworkTools

RESOLV, UPSTREAM_RESOLV = "/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"
_NFT_SECONDS = 5.0
_TABLE = re.compile(r"^table (?P<name>\S+ \S+) \{\n(?P<body>.*?)^\}", re.MULTILINE | re.DOTALL)
_CHAIN = re.compile(r"chain (\S+) \{\s+type filter hook forward [^;]*; policy drop;")


def find_obstacles(tools: NetworkTools) -> list[Lack]:
    """What keeps pods from the outside although they have networks."""
    obstacles = []
    if find_resolver() is None:
        obstacles.append(_NO_NAMES)
    if tools.is_admin and tools.nft:
        obstacles += [_describe_firewall(chain) for chain in find_dropping_chains(_list_rules(tools.nft))]
    return obstacles


def find_resolver() -> str | None:
    """The file of name servers that pods use: this machine's own, or the one behind a resolver at its loopback.

    None if there is only the loopback, which no pod reaches.
    """
    if not hosts.has_local_resolver(small_files.read(RESOLV)):
        return RESOLV
    return UPSTREAM_RESOLV if os.path.exists(UPSTREAM_RESOLV) else None


def _list_rules(nft: str) -> str:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        listed = subprocess.run([nft, "list", "ruleset"], capture_output=True, text=True, timeout=_NFT_SECONDS)
        return listed.stdout
    return ""


def find_dropping_chains(rules: str) -> list[str]:
    """Chains that drop what is forwarded, of tables without a rule for pods, from what `nft list ruleset` prints.

    As `nft` names them: family, table, chain.
    """
    return [
        f"{table['name']} {chain}"
        for table in _TABLE.finditer(rules)
        if f'"{router.DEVICES}' not in table["body"]
        for chain in _CHAIN.findall(table["body"])
    ]


_NO_NAMES = Lack(
    "name lookups",
    f"{RESOLV} names a server at this machine's loopback, which pods cannot reach, so they cannot resolve names",
    f"name a server in {RESOLV} that other machines reach too",
)


def _describe_firewall(chain: str) -> Lack:
    pods = f'"{router.DEVICES}*"'
    rules = (f"iifname {pods} accept", f"oifname {pods} ct state established,related accept")
    commands = "; ".join(f"nft 'insert rule {chain} {rule}'" for rule in rules)
    problem = f"this machine's firewall (chain {chain}) drops forwarded packets, so pods cannot reach the outside"
    return Lack("firewall", problem, f"run as root: {commands}")
