"""This machine's part of pods' networks: the gateway address, forwarding, and the rules for who reaches whom.

Each process that needs it holds it: every supervisor of such a pod, and a shared server as long as it runs. The first
one makes it and the last one removes it, always under one lock of the machine. The kernel drops the hold of a killed
process, and the next server of this machine removes what nobody holds.
"""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator

from fairlead.engines.local.launch_order import RouterPlan
from fairlead.engines.local.linux import small_files
from fairlead.engines.local.linux.netlink import Links

#: The names of all servers' tables, and of all devices to pods, begin with these.
TABLES, DEVICES = "fl_", "fv"
FOLDER = "/run/fairlead"
_FORWARDING = "/proc/sys/net/ipv4/ip_forward"
#: Exists while Fairlead is the one that made this machine forward packets.
_OURS = f"{FOLDER}/forwarding"
#: The loopback device has this number in every network namespace; the gateway address belongs to it.
LOOPBACK, _LOOPBACK_NAME = 1, "lo"
#: Groups of workloads are numbers of so many bits.
GROUP_BITS = 16


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """One at a time on this machine."""
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
    _make_folder()
    return os.open(f"{FOLDER}/{name}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _make_folder() -> None:
    """The folder of this machine's servers; the socket at which people sign in may be in it, so others may enter it."""
    os.makedirs(FOLDER, exist_ok=True)
    if not os.stat(FOLDER).st_mode & 0o001:
        os.chmod(FOLDER, 0o755)  # noqa: S103 - what belongs to root alone in it has a mode of its own


def hold(links: Links, plan: RouterPlan) -> int:
    """Make the router unless it exists; an open file by which this process holds it. Called under the lock."""
    claim = _open(plan.table)
    try:
        fcntl.flock(claim, fcntl.LOCK_SH)
        if not is_made(plan):
            _make(links, plan)
    except BaseException:
        os.close(claim)
        raise
    return claim


def is_made(plan: RouterPlan) -> bool:
    """The gateway address is the last part that is made and the first that is removed."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as trial:
        try:
            trial.bind((plan.gateway, 0))
        except OSError:
            return False
    return True


def _make(links: Links, plan: RouterPlan) -> None:
    # Written first: whoever removes it later must know what there may be.
    small_files.write(f"{FOLDER}/{plan.table}", f"{plan.gateway}\n{plan.nft}\n")
    if plan.nft:
        _forward()
        _set_rules(plan)
    links.add_address(LOOPBACK, _LOOPBACK_NAME, plan.gateway)


def _set_rules(plan: RouterPlan) -> None:
    if not run(plan.nft, render_rules(plan, closed=os.path.exists(_OURS))):
        raise OSError(1, "nft refused the rules for pods' networks", plan.table)


def repair(plan: RouterPlan) -> bool:
    """Set the rules again if they are missing; whether they were. Called under the lock, by who holds the router."""
    if run(plan.nft, f"list table ip {plan.table}\n"):
        return False
    _set_rules(plan)
    return True


def release(links: Links, claim: int) -> None:
    """Let go, and remove what nobody holds any more. Called under the lock."""
    fcntl.flock(claim, fcntl.LOCK_UN)
    os.close(claim)
    remove_unused(links)


def find_unused() -> list[str]:
    """Tables of all servers that nobody holds. Under the lock, nobody is about to hold one."""
    with contextlib.suppress(FileNotFoundError):
        return [name for name in os.listdir(FOLDER) if name.startswith(TABLES) and not _is_held(name)]
    return []


def _is_held(table: str) -> bool:
    descriptor = _open(table)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def remove_unused(links: Links) -> None:
    """Remove every router that nobody holds, of all servers."""
    for table in find_unused():
        gateway, nft, *_ = [*small_files.read(f"{FOLDER}/{table}").splitlines(), "", ""]
        if gateway:
            links.remove_address(LOOPBACK, _LOOPBACK_NAME, gateway)
        if nft and os.path.exists(nft):
            run(nft, f"delete table ip {table}\n")
        os.unlink(f"{FOLDER}/{table}")
    if os.path.exists(_OURS) and not any(name.startswith(TABLES) for name in os.listdir(FOLDER)):
        small_files.write(_FORWARDING, "0")
        os.unlink(_OURS)


def render_rules(plan: RouterPlan, *, closed: bool) -> str:
    """Pods go out under this machine's address. New connections reach a pod only from its own workload and from root.

    Root is the server, whose proxy and ports check who may connect. `closed`: the machine forwards nothing else.
    """
    pods = f'"{plan.devices}*"'
    shut = f'iifname != "{DEVICES}*" oifname != "{DEVICES}*" drop' if closed else ""
    return f"""
add table ip {plan.table}
delete table ip {plan.table}
table ip {plan.table} {{
  chain outward {{
    type nat hook postrouting priority 100; policy accept;
    ip saddr {plan.subnet} oifname != {pods} masquerade
  }}
  chain same_workload {{
{_render_comparison()}
    accept
  }}
  chain through {{
    type filter hook forward priority 0; policy accept;
    oifname {pods} ct state established,related accept
    iifname {pods} oifname {pods} jump same_workload
    oifname {pods} drop
    {shut}
  }}
  chain from_machine {{
    type filter hook output priority 0; policy accept;
    oifname {pods} ct state new meta skuid != 0 drop
  }}
}}
"""


def _render_comparison() -> str:
    """Whether both devices have one group, bit by bit: a rule cannot compare two properties of a packet.

    So no rule depends on the pods that there are, and a pod starts without a change of the rules.
    """
    bits = [f"{1 << bit:#x}" for bit in range(GROUP_BITS)]
    return "\n".join(
        f"    meta iifgroup & {bit} {one} 0 meta oifgroup & {bit} {other} 0 drop"
        for bit in bits
        for one, other in (("==", "!="), ("!=", "=="))
    )


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
    if small_files.read(_FORWARDING).strip() == "0":
        small_files.write(_OURS, "")
        small_files.write(_FORWARDING, "1")
