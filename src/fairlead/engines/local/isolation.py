"""A pod's own view of the machine in shared mode: root read-only, data folder gone, /tmp and home its own.

Called in the pod's process before exec, with a plan made by the server (`IsolationPlan` of `orders.py`, as JSON).
Raises OSError with the path at which the kernel refused.
"""

import os
import stat
from typing import Any

from fairlead.engines.local import syscalls
from fairlead.engines.local.syscalls import MS_BIND, MS_NODEV, MS_NOSUID, MS_PRIVATE, MS_RDONLY, MS_REC, mount


def enter(plan: dict[str, Any]) -> None:
    """Leave the host's mounts for a private copy in which only the pod's own places can be written."""
    _make_private(plan)
    _unshare(plan)
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    # Sources are opened before anything is covered: the data folder may lie below /tmp or below the home.
    home = os.open(plan["home_source"], os.O_PATH | os.O_CLOEXEC)
    temporary = os.open(plan["tmp_source"], os.O_PATH | os.O_CLOEXEC)
    syscalls.mount_setattr("/", set_flags=syscalls.MOUNT_ATTR_RDONLY, recursive=True)
    _bind(temporary, "/tmp")  # noqa: S108 - the very place that becomes private
    _provide(plan["home"], home)
    if os.path.isdir("/dev/shm"):  # noqa: S108
        mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")  # noqa: S108
    for path in plan["hidden"]:
        if os.path.lexists(path):
            mount("tmpfs", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "mode=0,size=4k")


def _make_private(plan: dict[str, Any]) -> None:
    for path, mode in ((plan["home_source"], 0o700), (plan["tmp_source"], 0o1777)):
        os.makedirs(path, exist_ok=True)
        os.chmod(path, mode)
        if os.geteuid() == 0:
            os.chown(path, plan["uid"], plan["gid"])


def _unshare(plan: dict[str, Any]) -> None:
    if not plan["user_namespace"]:
        syscalls.unshare(syscalls.CLONE_NEWNS)
        return
    uid, gid = os.geteuid(), os.getegid()
    syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNS)
    for name, line in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)


def _bind(source: int, target: str) -> None:
    mount(f"/proc/self/fd/{source}", target, flags=MS_BIND)
    clear = syscalls.MOUNT_ATTR_RDONLY
    hardened = syscalls.MOUNT_ATTR_NOSUID | syscalls.MOUNT_ATTR_NODEV
    syscalls.mount_setattr(target, set_flags=hardened, clear_flags=clear)


def _provide(path: str, source: int) -> None:
    """Bind `source` at `path`, which need not exist: its parent is then rebuilt around it."""
    if not os.path.isdir(path):
        _rebuild(os.path.dirname(path), os.path.basename(path))
    _bind(source, path)


def _rebuild(folder: str, added: str) -> None:
    """Cover `folder` with a look-alike that has one more entry; a read-only folder takes no new one itself."""
    original = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    names = os.listdir(folder)
    mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    os.mkdir(f"{folder}/{added}", 0o755)
    for name in names:
        inside, copy = f"/proc/self/fd/{original}/{name}", f"{folder}/{name}"
        mode = os.lstat(inside).st_mode
        if stat.S_ISLNK(mode):
            os.symlink(os.readlink(inside), copy)
        elif stat.S_ISDIR(mode):
            os.mkdir(copy)
            mount(inside, copy, flags=MS_BIND | MS_REC)
    syscalls.mount_setattr(folder, set_flags=syscalls.MOUNT_ATTR_RDONLY)
