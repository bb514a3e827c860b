"""What is behind each kind of volume, as a mount that is not mounted anywhere yet. Called by `mounts.py`.

Runs in the pod's process after it has its own mount namespace and before anything of the host is covered.
"""

import contextlib
import errno
import os
import stat
import time
from typing import NamedTuple

from fairlead.engines.local.launch_order import Files, MountPlan, Volume
from fairlead.engines.local.linux import loop_devices, mount_syscalls

_HARDENED = mount_syscalls.MOUNT_ATTR_NOSUID | mount_syscalls.MOUNT_ATTR_NODEV
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READABLE = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: The link to the files that are shown now.
_CURRENT = "..data"


class OpenedVolume(NamedTuple):
    """A volume as a detached mount, and what of it no pod may see."""

    file: int
    hides: tuple[str, ...] = ()


def open_device(volume: Volume) -> int:
    """The device behind an image, which is opened before the host's mounts are left."""
    return loop_devices.open_image(volume.source, volume.size or 0, durable=volume.durable)


def open_volume(volume: Volume, plan: MountPlan, device: int) -> OpenedVolume:
    """The volume as a detached mount; raises OSError with what is wrong and where."""
    opened = _open(volume, plan, device)
    attributes = _HARDENED | (mount_syscalls.MOUNT_ATTR_RDONLY if volume.read_only else 0)
    mount_syscalls.change_mount(opened.file, volume.at, attributes)
    return opened


def _open(volume: Volume, plan: MountPlan, device: int) -> OpenedVolume:
    if volume.kind == "folder":
        return OpenedVolume(_folder(volume, plan))
    if volume.kind == "memory":
        return OpenedVolume(_memory(volume, plan))
    if volume.kind == "image":
        # Equal images are one file system, however many pods mount them.
        return OpenedVolume(loop_devices.mount_device(device, volume.source, volume.mode))
    if volume.kind == "host":
        return _host(volume, plan)
    return OpenedVolume(_nfs(volume))


def _folder(volume: Volume, plan: MountPlan) -> int:
    """A folder below the data folder, made when it is not there."""
    path, entry = volume.source, volume.entry
    make_folder(volume, plan)
    folder = os.open(path, _FOLDER)
    try:
        for name, (text, mode) in (volume.files or {}).items():
            _write(folder, name, text, mode, plan)
        if not entry:
            return mount_syscalls.clone_mount(folder, path)
        single = os.open(entry, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            return mount_syscalls.clone_mount(single, path)
        finally:
            os.close(single)
    finally:
        os.close(folder)


def make_folder(volume: Volume, plan: MountPlan) -> None:
    """What is behind a volume of that kind, with its owner."""
    _make(volume.source, volume.mode)
    if os.geteuid() == 0 and volume.owned:
        os.chown(volume.source, plan.uid, plan.gid)


def _make(path: str, mode: int) -> None:
    """A folder with that mode, if there is none; in one step, so that no crash leaves one with another."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    before = os.umask(0)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, mode)
    finally:
        os.umask(before)


def _memory(volume: Volume, plan: MountPlan) -> int:
    """A file system in memory, with files in it or for the pod to write to."""
    options: dict[str, str | None] = {"mode": format(volume.mode, "o")}
    if volume.size is not None:
        options["size"] = str(volume.size)
    mounted = mount_syscalls.make_mount("tmpfs", options, 0, volume.at)
    if volume.files is not None:
        show_files(mounted, volume.files, plan)
    if volume.owned and os.geteuid() == 0:
        os.chown(".", plan.uid, plan.gid, dir_fd=mounted)
    return mounted


def show_files(folder: int, files: Files, plan: MountPlan) -> None:
    """Show these files in a folder and no others, all at once, in the way that programs know from Kubernetes.

    The files of one generation lie in a folder of its own; `..data` leads to it, and each name leads through `..data`.
    """
    # A new mount is a place that nothing can be read from; the folder in it is.
    folder = os.open(".", _READABLE, dir_fd=folder)
    fresh = f"..{time.time_ns()}"
    os.mkdir(fresh, 0o755, dir_fd=folder)
    inside = os.open(fresh, _READABLE, dir_fd=folder)
    try:
        os.fchmod(inside, 0o755)
        for name, (text, mode) in files.items():
            _write(inside, name, text, mode, plan)
    finally:
        os.close(inside)
    before = os.listdir(folder)
    os.symlink(fresh, f"{_CURRENT}.new", dir_fd=folder)
    os.rename(f"{_CURRENT}.new", _CURRENT, src_dir_fd=folder, dst_dir_fd=folder)
    for name in files.keys() - set(before):
        os.symlink(f"{_CURRENT}/{name}", name, dir_fd=folder)
    for name in before:
        if name.startswith("..") and name not in (fresh, _CURRENT):
            _remove(folder, name)
        elif not name.startswith("..") and name not in files:
            os.unlink(name, dir_fd=folder)
    os.close(folder)


def _remove(folder: int, generation: str) -> None:
    inside = os.open(generation, _READABLE, dir_fd=folder)
    try:
        for name in os.listdir(inside):
            os.unlink(name, dir_fd=inside)
    finally:
        os.close(inside)
    os.rmdir(generation, dir_fd=folder)


def _write(folder: int, name: str, text: str, mode: int, plan: MountPlan) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(name, flags, 0o600, dir_fd=folder)
    try:
        data = text.encode()
        while data:
            data = data[os.write(file, data) :]
        if os.geteuid() == 0:
            os.fchown(file, plan.uid, plan.gid)
        os.fchmod(file, mode)
    finally:
        os.close(file)


def _host(volume: Volume, plan: MountPlan) -> OpenedVolume:
    """A path of this machine, from an allowed folder on without a way out of it."""
    path = volume.source
    if volume.within:
        folder = os.open(volume.within, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        rest = os.path.relpath(path, volume.within)
        rules = mount_syscalls.RESOLVE_BENEATH | mount_syscalls.RESOLVE_NO_MAGICLINKS
        try:
            opened = mount_syscalls.open_within(folder, rest, os.O_PATH, rules)
        except OSError as error:
            # The kernel calls it a link across devices, which it need not be.
            message = f"a link in it leads outside {volume.within}, the allowed folder"
            raise OSError(error.errno, message if error.errno == errno.EXDEV else error.strerror, path) from error
        finally:
            os.close(folder)
    else:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        hides = _hide_data(volume, os.readlink(f"/proc/self/fd/{opened}"), plan.data)
        is_folder = stat.S_ISDIR(os.fstat(opened).st_mode)
        return OpenedVolume(mount_syscalls.clone_mount(opened, path, recursive=is_folder), hides)
    finally:
        os.close(opened)


def _hide_data(volume: Volume, real: str, data: str) -> tuple[str, ...]:
    """The server's own folder, if the volume contains it; raises OSError if the volume lies in it."""
    if f"{real}/".startswith(f"{data}/"):
        raise OSError(errno.EACCES, "the server's own data folder cannot be mounted", real)
    inside = real.rstrip("/") + "/"
    return (f"{volume.at}/{data.removeprefix(inside)}",) if data.startswith(inside) else ()


def _nfs(volume: Volume) -> int:
    """An export of another machine; the kernel's client does the rest. Gives up where a hard mount would hang."""
    options: dict[str, str | None] = {
        "source": volume.source,
        "addr": volume.address,
        "vers": "4.2",
        "soft": None,
        "timeo": "100",
        "retrans": "2",
    }
    return mount_syscalls.make_mount("nfs4", options, 0, volume.source)
