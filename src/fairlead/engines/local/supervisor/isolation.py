"""A pod's own view of the machine: its volumes where it wants them and, in shared mode, nothing else to write to.

Called in the pod's process before exec, with a plan of the server (`plan/render.py`). In shared mode the root is
read-only, the data folder hidden, /tmp and home are its own; in personal mode only the volumes are. Raises OSError with
the path at which the kernel refused, or MountFailed with the volume.
"""

import os

from fairlead.engines.local.launch_order import IsolationPlan
from fairlead.engines.local.linux import syscalls
from fairlead.engines.local.storage import mounts


def enter(plan: IsolationPlan) -> None:
    """Leave the host's mounts for a private copy with the pod's volumes in it."""
    devices = mounts.open_devices(plan.mounts)
    _unshare(plan)
    mounts.assemble(plan, devices)


def _unshare(plan: IsolationPlan) -> None:
    if not plan.user_namespace:
        syscalls.unshare(syscalls.CLONE_NEWNS)
        return
    uid, gid = os.geteuid(), os.getegid()
    syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNS)
    for name, line in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)
