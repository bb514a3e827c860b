"""Restores the rules for pods' networks when somebody removes them, as a restart of the machine's firewall does.

Run by a shared server as long as it lives. The kernel reports every change of the rules, so nothing is polled.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable

#: Protocol, level, option and group of the kernel's messages about nftables.
_NETFILTER, _SOL_NETLINK, _ADD_MEMBERSHIP, _NFTABLES = 12, 270, 1, 7
#: After a change: a restart of a firewall makes many at once.
QUIET_SECONDS = 0.2

log = logging.getLogger(__name__)


async def keep_rules(repair: Callable[[], bool]) -> None:
    """Call `repair`, which says whether rules were missing, after every change of this machine's rules."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETFILTER) as changes:
        changes.bind((0, 0))
        changes.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, _NFTABLES)
        changes.setblocking(False)
        while True:
            await _wait_for_change(changes)
            if await asyncio.to_thread(repair):
                log.warning("The rules for pods' networks were removed; they have been restored")


async def _wait_for_change(changes: socket.socket) -> None:
    """Returns when rules have changed and nothing more comes for a moment."""
    # Messages are not read: more of them than fit are as good as one.
    with contextlib.suppress(OSError):
        await asyncio.get_running_loop().sock_recv(changes, 65_536)
    await asyncio.sleep(QUIET_SECONDS)
    with contextlib.suppress(OSError):
        while changes.recv(65_536):
            pass
