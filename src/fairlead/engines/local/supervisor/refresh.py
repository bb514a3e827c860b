"""Updates the files of config maps and secrets in a running pod when the objects change.

Called by the supervisor. A fork enters the pod's mounts, where the files lie in memory, read-only to the pod. It clones
the mount with write access; the clone is gone when the fork ends.
"""

import os
import signal
import sys

from fairlead.engines.local.launch_order import Files, LaunchOrder, MountPlan
from fairlead.engines.local.linux import mount_syscalls, syscalls
from fairlead.engines.local.storage import sources

#: The namespaces that have to be entered for it, in this order.
_NAMESPACES = ("user", "mnt")


def refresh(order: LaunchOrder, main: int, files: dict[str, Files]) -> int:
    """Show other files in the volumes at these places; the pid of the process that does it."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        mounted = order.container or order.isolation
        _join(main)
        if mounted is not None:
            _show_all(files, mounted.mounts)
        code = 0
    except BaseException:  # this process ends here: say why in the fork server's log
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def _show_all(files: dict[str, Files], plan: MountPlan) -> None:
    for volume in plan.volumes:
        if volume.kind == "memory" and volume.files is not None and volume.at in files:
            _show(volume.place or volume.at, files[volume.at], plan)


def _join(main: int) -> None:
    """Enter the view of the pod's process."""
    opened = [os.open(f"/proc/{main}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in _NAMESPACES]
    own = [os.stat(f"/proc/self/ns/{name}").st_ino for name in _NAMESPACES]
    for namespace, inode in zip(opened, own, strict=True):
        if os.fstat(namespace).st_ino != inode:
            syscalls.setns(namespace, 0)


def _show(place: str, files: Files, plan: MountPlan) -> None:
    root = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    # The way there may lead through a volume that the pod writes to: no link of its making is followed.
    straight = mount_syscalls.RESOLVE_NO_SYMLINKS | mount_syscalls.RESOLVE_NO_MAGICLINKS
    shown = mount_syscalls.open_within(root, os.path.realpath(place), os.O_PATH | os.O_DIRECTORY, straight)
    if not os.fstatvfs(shown).f_flag & os.ST_RDONLY:
        return  # not the mount that was made there: the pod has moved it out of the way
    writable = mount_syscalls.clone_mount(shown, place)
    mount_syscalls.change_mount(writable, place, clear=mount_syscalls.MOUNT_ATTR_RDONLY)
    sources.show_files(writable, files, plan)
