"""What is behind each kind of volume, as a mount that is not mounted anywhere yet. Called by `mounts.py`.

Runs in the pod's process after it has its own mount namespace and before anything of the host is covered.
"""

import contextlib
import errno
import os
import stat
import time
from typing import Any

from fairlead.engines.local.linux import loop_devices, mount_syscalls

Volume = dict[str, Any]

_HARDENED = mount_syscalls.MOUNT_ATTR_NOSUID | mount_syscalls.MOUNT_ATTR_NODEV
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READABLE = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: The link to the files that are shown now.
_CURRENT = "..data"


def prepare(volume: Volume) -> None:
    """What must be opened before the host's mounts are left."""
    if volume["kind"] == "image":
        volume["device"] = loop_devices.open_image(
            volume["source"], volume["size"], durable=volume.get("durable", False)
        )


def take(volume: Volume, plan: dict[str, Any]) -> int:
    """The volume as a detached mount; raises OSError with what is wrong where."""
    source = _KINDS[volume["kind"]](volume, plan)
    attributes = _HARDENED | (mount_syscalls.MOUNT_ATTR_RDONLY if volume.get("read_only") else 0)
    mount_syscalls.change_mount(source, volume["at"], attributes)
    return source


def _folder(volume: Volume, plan: dict[str, Any]) -> int:
    """A folder below the data folder, made when it is not there."""
    path, entry = volume["source"], volume.get("entry")
    make_folder(volume, plan)
    folder = os.open(path, _FOLDER)
    try:
        for name, (text, mode) in (volume.get("files") or {}).items():
            _write(folder, name, text, mode, plan)
        if entry is None:
            return mount_syscalls.clone_mount(folder, path)
        single = os.open(entry, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            return mount_syscalls.clone_mount(single, path)
        finally:
            os.close(single)
    finally:
        os.close(folder)


def make_folder(volume: Volume, plan: dict[str, Any]) -> None:
    """What is behind a volume of that kind, with its owner."""
    _make(volume["source"], volume.get("mode", 0o700))
    if os.geteuid() == 0 and volume.get("owned"):
        os.chown(volume["source"], plan["uid"], plan["gid"])


def _make(path: str, mode: int) -> None:
    """A folder with that mode, if there is none; in one step, so that no crash leaves one with another."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    before = os.umask(0)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, mode)
    finally:
        os.umask(before)


def _memory(volume: Volume, plan: dict[str, Any]) -> int:
    """A file system in memory, with files in it or for the pod to write to."""
    options: dict[str, str | None] = {"mode": format(volume["mode"], "o")}
    if volume.get("size") is not None:
        options["size"] = str(volume["size"])
    mounted = mount_syscalls.make_mount("tmpfs", options, 0, volume["at"])
    if volume.get("files") is not None:
        show_files(mounted, volume["files"], plan)
    if volume.get("owned") and os.geteuid() == 0:
        os.chown(".", plan["uid"], plan["gid"], dir_fd=mounted)
    return mounted


def show_files(folder: int, files: dict[str, tuple[str, int]], plan: dict[str, Any]) -> None:
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


def _write(folder: int, name: str, text: str, mode: int, plan: dict[str, Any]) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(name, flags, 0o600, dir_fd=folder)
    try:
        data = text.encode()
        while data:
            data = data[os.write(file, data) :]
        if os.geteuid() == 0:
            os.fchown(file, plan["uid"], plan["gid"])
        os.fchmod(file, mode)
    finally:
        os.close(file)


def _image(volume: Volume, plan: dict[str, Any]) -> int:
    """A file system of its own size in a file; equal images are one file system, however many pods mount them."""
    return loop_devices.mount_device(volume["device"], volume["source"], volume["mode"])


def _host(volume: Volume, plan: dict[str, Any]) -> int:
    """A path of this machine, from an allowed folder on without a way out of it."""
    path = volume["source"]
    if volume.get("within"):
        folder = os.open(volume["within"], os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        rest = os.path.relpath(path, volume["within"])
        rules = mount_syscalls.RESOLVE_BENEATH | mount_syscalls.RESOLVE_NO_MAGICLINKS
        try:
            opened = mount_syscalls.open_within(folder, rest, os.O_PATH, rules)
        except OSError as error:
            # The kernel calls it a link across devices, which it need not be.
            words = f"a link in it leads out of {volume['within']}, the folder that is allowed"
            raise OSError(error.errno, words if error.errno == errno.EXDEV else error.strerror, path) from error
        finally:
            os.close(folder)
    else:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        _keep_data_out(volume, os.readlink(f"/proc/self/fd/{opened}"), plan["data"])
        is_folder = stat.S_ISDIR(os.fstat(opened).st_mode)
        return mount_syscalls.clone_mount(opened, path, recursive=is_folder)
    finally:
        os.close(opened)


def _keep_data_out(volume: Volume, real: str, data: str) -> None:
    """The server's own folder stays out of sight even where an allowed folder contains it."""
    if f"{real}/".startswith(f"{data}/"):
        raise OSError(errno.EACCES, "the server's own data folder is mounted nowhere", real)
    inside = real.rstrip("/") + "/"
    if data.startswith(inside):
        volume["hides"] = [f"{volume['at']}/{data.removeprefix(inside)}"]


def _nfs(volume: Volume, plan: dict[str, Any]) -> int:
    """An export of another machine; the kernel's client does the rest. Gives up where a hard mount would hang."""
    options: dict[str, str | None] = {
        "source": volume["source"],
        "addr": volume["address"],
        "vers": "4.2",
        "soft": None,
        "timeo": "100",
        "retrans": "2",
    }
    return mount_syscalls.make_mount("nfs4", options, 0, volume["source"])


_KINDS = {"folder": _folder, "memory": _memory, "image": _image, "host": _host, "nfs": _nfs}
