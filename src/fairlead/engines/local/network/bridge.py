"""The bridge between pods' networks and the outside: made by the first pod that needs it, removed after the last.

Used by supervisors and, to clean up after killed ones, by the server; always under one lock of the machine. The bridge
has rules (by `nft`) that let pods out under this machine's address and keep others from reaching in.
"""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator

from fairlead.engines.local.launch_order import NetworkPlan
from fairlead.engines.local.linux import small_files
from fairlead.engines.local.linux.netlink import Links

#: The names of all servers' bridges begin with this.
PREFIX = "fl-"
FOLDER = "/run/fairlead"
_FORWARDING = "/proc/sys/net/ipv4/ip_forward"
#: Exists while Fairlead is the one that made this machine forward packets.
_OURS = f"{FOLDER}/forwarding"


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """One at a time on this machine: the first pod makes the bridge and the last one removes it."""
    descriptor = _open("network.lock")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def open_claims() -> int:
    """A file that the servers of this machine share; each locks the byte with the number of its range."""
    return _open("ranges.lock")


def _open(name: str) -> int:
    os.makedirs(FOLDER, mode=0o700, exist_ok=True)
    return os.open(f"{FOLDER}/{name}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def make(links: Links, plan: NetworkPlan) -> None:
    """Make the bridge of a plan with its rules, unless it exists."""
    name = plan.bridge
    if has_device(name):
        return
    links.add_bridge(name)
    index = socket.if_nametoindex(name)
    links.add_address(index, name, plan.gateway, plan.prefix)
    links.set_up(index, name)
    if plan.nft:
        _forward()
        small_files.write(_rules(name), plan.nft)
        if not run(plan.nft, render_rules(plan, closed=os.path.exists(_OURS))):
            raise OSError(1, "nft refused the rules for outbound connections", name)


def unused() -> list[str]:
    """Fairlead's bridges that nothing is attached to, or of which only the rules are left, of all servers.

    Under the lock none is about to be used: a supervisor attaches its cable before it releases the lock.
    """
    known = {name for name in os.listdir("/sys/class/net") if name.startswith(PREFIX)}
    with contextlib.suppress(FileNotFoundError):
        known |= {name for name in os.listdir(FOLDER) if name.startswith(PREFIX)}
    return [name for name in known if not has_ports(name)]


def remove_unused(links: Links) -> None:
    """Remove every bridge that is not used, with its rules, of all servers."""
    for name in unused():
        links.remove(name)
        _remove_rules(name)
    if os.path.exists(_OURS) and not any(device.startswith(PREFIX) for device in os.listdir("/sys/class/net")):
        small_files.write(_FORWARDING, "0")
        os.unlink(_OURS)


def _remove_rules(name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        with open(_rules(name)) as file:
            program = file.read()
        if program and os.path.exists(program):
            run(program, f"delete table ip {table(name)}\n")
        os.unlink(_rules(name))


def has_device(name: str) -> bool:
    return os.path.exists(f"/sys/class/net/{name}")


def has_ports(bridge: str) -> bool:
    try:
        return bool(os.listdir(f"/sys/class/net/{bridge}/brif"))
    except FileNotFoundError:
        return False


def table(bridge: str) -> str:
    return bridge.replace("-", "_")


def render_rules(plan: NetworkPlan, *, closed: bool) -> str:
    """Pods go out under this machine's address; only answers come in. `closed`: the machine forwards nothing else."""
    bridge = plan.bridge
    shut = f'iifname != "{PREFIX}*" oifname != "{PREFIX}*" drop' if closed else ""
    return f"""
add table ip {table(bridge)}
delete table ip {table(bridge)}
table ip {table(bridge)} {{
  chain outward {{
    type nat hook postrouting priority 100; policy accept;
    ip saddr {plan.subnet} oifname != "{bridge}" masquerade
  }}
  chain through {{
    type filter hook forward priority 0; policy accept;
    oifname "{bridge}" ct state established,related accept
    oifname "{bridge}" iifname != "{bridge}" drop
    {shut}
  }}
}}
"""


def run(program: str, script: str) -> bool:
    """Run a script with `nft`; whether it succeeded."""
    source, sink = os.pipe2(os.O_CLOEXEC)
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    actions = [(os.POSIX_SPAWN_DUP2, source, 0), (os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)]
    pid = os.posix_spawn(program, [program, "-f", "-"], {"PATH": os.defpath}, file_actions=actions)
    os.close(source)
    os.close(null)
    with os.fdopen(sink, "w") as file, contextlib.suppress(BrokenPipeError):
        file.write(script)
    return os.waitpid(pid, 0)[1] == 0


def _forward() -> None:
    with open(_FORWARDING) as file:
        if file.read().strip() != "0":
            return
    small_files.write(_OURS, "")
    small_files.write(_FORWARDING, "1")


def _rules(bridge: str) -> str:
    """A file that is there as long as the rules may be; it names the program that removes them."""
    return f"{FOLDER}/{bridge}"
