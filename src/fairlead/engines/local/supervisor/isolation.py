"""A pod's own view of the machine: its volumes where it wants them and, in shared mode, nothing else to write to.

Called in the pod's process before exec, with a plan made by the server (`orders.py`, as JSON). In shared mode the root
is read-only, the data folder gone, /tmp and home its own; in personal mode only the volumes are. Raises OSError with
the path at which the kernel refused, or MountFailed with the volume.
"""

import os
from typing import Any

from fairlead.engines.local.linux import syscalls
from fairlead.engines.local.storage import mounts


def enter(plan: dict[str, Any]) -> None:
    """Leave the host's mounts for a private copy with the pod's volumes in it."""
    mounts.prepare(plan)
    _unshare(plan)
    mounts.assemble(plan)


def _unshare(plan: dict[str, Any]) -> None:
    if not plan["user_namespace"]:
        syscalls.unshare(syscalls.CLONE_NEWNS)
        return
    uid, gid = os.geteuid(), os.getegid()
    syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNS)
    for name, line in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)
