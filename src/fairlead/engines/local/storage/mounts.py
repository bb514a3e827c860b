"""Puts a pod's volumes where its spec wants them, in the mount namespace that its process has entered.

Called by `supervisor/isolation.py` in the pod's process, as root or as root of a user namespace. Everything here
lives in that namespace only, so nothing of it is left when the pod's last process ends, however it ends. Paths are
walked without following a link that lies inside a volume: others control its content.
"""

import errno
import os
import stat
from collections.abc import Sequence

from fairlead.engines.local.launch_order import IsolationPlan, MountPlan, Volume
from fairlead.engines.local.linux import mount_syscalls
from fairlead.engines.local.storage import sources
from fairlead.engines.local.storage.sources import OpenedVolume

#: Open loop devices, by the place of their volume.
Devices = dict[str, int]
#: More entries than this beside a new mount point, and the folder is not rebuilt around it.
MAX_NEIGHBOURS = 4096
_STRAIGHT = mount_syscalls.RESOLVE_NO_SYMLINKS | mount_syscalls.RESOLVE_NO_MAGICLINKS
_HARDENED = mount_syscalls.MOUNT_ATTR_NOSUID | mount_syscalls.MOUNT_ATTR_NODEV


class MountFailed(Exception):
    """A volume could not be provided; `field` names it as the spec does."""

    def __init__(self, field: str, subject: str, error: OSError) -> None:
        super().__init__(field)
        self.field = field
        self.subject = subject
        self.error = error


def open_devices(plan: MountPlan) -> Devices:
    """Open what must be opened before the host's mounts are left; raises MountFailed."""
    devices: Devices = {}
    for volume in plan.volumes:
        try:
            if volume.kind == "image":
                devices[volume.at] = sources.open_device(volume)
        except OSError as error:
            raise MountFailed(volume.field, str(error.filename or volume.at), error) from error
    return devices


def assemble(plan: IsolationPlan, devices: Devices) -> None:
    """Make the pod's view out of a private copy of the host's mounts."""
    volumes = sorted(plan.mounts.volumes, key=lambda volume: volume.at)
    follows = any(volume.follows for volume in volumes)
    mount_syscalls.mount(
        "none", "/", flags=mount_syscalls.MS_REC | (mount_syscalls.MS_SLAVE if follows else mount_syscalls.MS_PRIVATE)
    )
    # Sources are opened before anything is covered: the data folder may lie below /tmp or below a home.
    opened = [(volume, open_volume(volume, plan.mounts, devices)) for volume in volumes]
    if follows:
        mount_syscalls.mount("none", "/", flags=mount_syscalls.MS_REC | mount_syscalls.MS_PRIVATE)
    if plan.read_only_root:
        mount_syscalls.make_read_only("/", recursive=True)
    tree = MountTree()
    for volume, source in opened:
        try:
            # Checked only now: an outer volume may have it, or hide what the machine has there.
            if not (volume.only_if_missing and os.path.lexists(volume.at)):
                tree.attach(volume.at, source.file)
        except OSError as error:
            raise MountFailed(volume.field, volume.at, error) from error
        finally:
            os.close(source.file)
    tree.close()
    hide([*plan.hidden, *(path for _, source in opened for path in source.hides)])


def open_volume(volume: Volume, plan: MountPlan, devices: Devices) -> OpenedVolume:
    """A volume as a detached mount; raises MountFailed with its field."""
    try:
        return sources.open_volume(volume, plan, devices.get(volume.at, -1))
    except OSError as error:
        raise MountFailed(volume.field, str(error.filename or volume.at), error) from error


def hide(paths: Sequence[str]) -> None:
    """Cover what no pod may see."""
    flags = mount_syscalls.MS_RDONLY | mount_syscalls.MS_NOSUID | mount_syscalls.MS_NODEV
    for path in paths:
        if os.path.lexists(path):
            mount_syscalls.mount("tmpfs", path, "tmpfs", flags, "mode=0,size=4k")


class MountTree:
    """The folders of the view, to which volumes are added one by one, outer ones first."""

    def __init__(self) -> None:
        self._root = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        #: From where the spec wants a volume to where it really is.
        self._places: dict[str, str] = {}
        #: Folders that were replaced by look-alikes with room for more entries.
        self._rebuilt: list[str] = []

    def attach(self, at: str, source: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(source).st_mode)
        real_path = self._real(at)
        target = self._target(real_path, is_folder)
        try:
            mount_syscalls.move_mount(source, target, at)
        finally:
            os.close(target)
        self._places[at] = real_path

    def close(self) -> None:
        """New entries are for mount points only."""
        for folder in self._rebuilt:
            mount_syscalls.make_read_only(folder)
        os.close(self._root)

    def _real(self, at: str) -> str:
        """The path without the host's own links; a path inside a volume is used as it is written."""
        volume = self._around(at)
        return self._places[volume] + at[len(volume) :] if volume else os.path.realpath(at)

    def _around(self, at: str) -> str:
        """The innermost volume in which a path lies; empty for none."""
        containing = (place for place in self._places if at.startswith(f"{place}/"))
        return max(containing, key=len, default="")

    def _open(self, path: str) -> int:
        return mount_syscalls.open_within(self._root, path, os.O_PATH, _STRAIGHT)

    def _target(self, real_path: str, is_folder: bool) -> int:
        try:
            target = self._open(real_path)
        except FileNotFoundError:
            self._make(real_path, is_folder)
            target = self._open(real_path)
        if stat.S_ISDIR(os.fstat(target).st_mode) is not is_folder:
            os.close(target)
            number = errno.ENOTDIR if is_folder else errno.EISDIR
            raise OSError(number, os.strerror(number), real_path)
        return target

    def _make(self, path: str, is_folder: bool) -> None:
        """Make a mount point, in a volume or in a rebuilt folder, never on the host."""
        parent = os.path.dirname(path)
        while not self._exists(parent):
            parent = os.path.dirname(parent)
        inside = (*self._places.values(), *self._rebuilt)
        if not any(parent == own or parent.startswith(f"{own.rstrip('/')}/") for own in inside) or (
            parent not in inside and self._is_of_host(parent)
        ):
            self._rebuild(parent)
        names = path[len(parent) :].strip("/").split("/")
        current = self._open(parent)
        for number, name in enumerate(names):
            if number == len(names) - 1 and not is_folder:
                os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=current))
                break
            os.mkdir(name, 0o755, dir_fd=current)
            child = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
            os.close(current)
            current = child
        os.close(current)

    def _is_of_host(self, folder: str) -> bool:
        """Whether a folder is the host's own, seen through a rebuilt one."""
        own = max((place for place in self._places.values() if folder.startswith(f"{place}/")), key=len, default="")
        rebuilt = max((one for one in self._rebuilt if folder.startswith(f"{one.rstrip('/')}/")), key=len, default="")
        return len(rebuilt) > len(own)

    def _exists(self, path: str) -> bool:
        try:
            os.close(self._open(path))
        except FileNotFoundError:
            return False
        return True

    def _rebuild(self, folder: str) -> None:
        """Cover a folder with a look-alike that takes new entries; the host's own must not get any."""
        original = self._open(folder)
        reading = os.open(f"/proc/self/fd/{original}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        names = os.listdir(reading)
        os.close(reading)
        if len(names) > MAX_NEIGHBOURS:
            raise OSError(errno.E2BIG, os.strerror(errno.E2BIG), folder)
        entries = [(name, *_copy(original, name)) for name in names]
        cover = mount_syscalls.make_mount("tmpfs", {"mode": "755"}, _HARDENED, folder)
        if folder == "/":
            self._enter_new_root(cover, entries)
        else:
            mount_syscalls.move_mount(cover, original, folder)
            _fill(cover, entries)
        os.close(cover)
        os.close(original)
        self._rebuilt.append(folder)

    def _enter_new_root(self, cover: int, entries: list[tuple[str, int, str, int]]) -> None:
        """The root itself is rebuilt below another folder, which is then turned to."""
        stage = next(f"/{name}" for name, mode, _, _ in entries if stat.S_ISDIR(mode) and name != "proc")
        target = self._open(stage)
        mount_syscalls.move_mount(cover, target, stage)
        os.close(target)
        _fill(cover, entries)
        os.fchdir(cover)
        mount_syscalls.pivot_root(".", ".")
        mount_syscalls.unmount(".")
        os.chdir("/")
        os.close(self._root)
        self._root = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def _copy(folder: int, name: str) -> tuple[int, str, int]:
    """An entry as (mode, where a link points, a copy of the mount)."""
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        return mode, os.readlink(name, dir_fd=folder), -1
    entry = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        return mode, "", mount_syscalls.clone_mount(entry, name, recursive=True)
    finally:
        os.close(entry)


def _fill(folder: int, entries: list[tuple[str, int, str, int]]) -> None:
    for name, mode, link, source in entries:
        if source < 0:
            os.symlink(link, name, dir_fd=folder)
            continue
        if stat.S_ISDIR(mode):
            os.mkdir(name, 0o755, dir_fd=folder)
        else:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=folder))
        target = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        mount_syscalls.move_mount(source, target, name)
        os.close(target)
        os.close(source)
