"""Volumes prepared for a container's runtime: mounted at places of the attempt's folder, in a view that only it sees.

Called in the process that becomes the runtime's command, as root. The view ends with the runtime's last process, and
everything in it: the volumes, and the files with variables and credentials, which lie in memory only.
"""

import os
import stat

from fairlead.engines.local.launch_order import ContainerRun, Volume
from fairlead.engines.local.linux import mount_syscalls, syscalls
from fairlead.engines.local.storage import mounts
from fairlead.engines.local.storage.sources import OpenedVolume


def enter(container: ContainerRun) -> None:
    """Leave the host's mounts for a copy in which the container's volumes are; raises OSError or MountFailed."""
    plan = container.mounts
    devices = mounts.open_devices(plan)
    os.makedirs(container.folder, mode=0o700, exist_ok=True)
    syscalls.unshare(syscalls.CLONE_NEWNS)
    # What the host mounts later is still seen; what is mounted here stays here.
    mount_syscalls.mount("none", "/", flags=mount_syscalls.MS_REC | mount_syscalls.MS_SLAVE)
    opened = [(volume, mounts.open_volume(volume, plan, devices)) for volume in plan.volumes]
    mount_syscalls.mount(
        "tmpfs", container.folder, "tmpfs", mount_syscalls.MS_NOSUID | mount_syscalls.MS_NODEV, "mode=711"
    )
    write_files(container)
    for volume, source in opened:
        _attach(volume, source)


def write_files(container: ContainerRun) -> None:
    """Write the files for the runtime, which only their owner reads."""
    for name, text in container.files.items():
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        with os.fdopen(os.open(f"{container.folder}/{name}", flags, 0o600), "w") as file:
            file.write(text)


def _attach(volume: Volume, source: OpenedVolume) -> None:
    if stat.S_ISDIR(os.fstat(source.file).st_mode):
        os.mkdir(volume.place)
    else:
        os.close(os.open(volume.place, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    target = os.open(volume.place, os.O_PATH | os.O_CLOEXEC)
    try:
        mount_syscalls.move_mount(source.file, target, volume.place)
    finally:
        os.close(target)
        os.close(source.file)
    mounts.hide([volume.place + path.removeprefix(volume.at) for path in source.hides])
