"""System calls around mounts that Python lacks: detached copies, restricted path lookup, reserved space.

Loaded by the fork server, beside `syscalls.py`; each raises OSError as Python does, with the path in question.
"""

import ctypes
import os
from collections.abc import Mapping

from fairlead.engines.local.linux.syscalls import checked

_libc = ctypes.CDLL(None, use_errno=True)

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MS_SLAVE = 0x80000
MOUNT_ATTR_RDONLY = 0x1
MOUNT_ATTR_NOSUID = 0x2
MOUNT_ATTR_NODEV = 0x4
RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04
RESOLVE_BENEATH = 0x08

_MNT_DETACH = 2
_AT_FDCWD = -100
_AT_EMPTY_PATH = 0x1000
_AT_RECURSIVE = 0x8000
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_BOTH_EMPTY = 0x04 | 0x40
_FALLOC_KEEP_SIZE = 1
_CLOSE_ON_EXEC = 1
_SET_FLAG, _SET_STRING, _CREATE = 0, 1, 6
# The same numbers on every architecture.
_SYS_OPEN_TREE = 428
_SYS_MOVE_MOUNT = 429
_SYS_FSOPEN = 430
_SYS_FSCONFIG = 431
_SYS_FSMOUNT = 432
_SYS_OPENAT2 = 437
_SYS_MOUNT_SETATTR = 442


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns", ctypes.c_uint64),
    )


def _call(number: int, what: str, *arguments: object) -> int:
    return checked(_libc.syscall(ctypes.c_long(number), *arguments), what)


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    arguments = (source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags))
    checked(_libc.mount(*arguments, options.encode() or None), target)


def unmount(target: str) -> None:
    """Take the mount out of sight now; it goes when its last user does."""
    checked(_libc.umount2(target.encode(), _MNT_DETACH), target)


def pivot_root(new: str, old: str) -> None:
    checked(_libc.pivot_root(new.encode(), old.encode()), new)


def make_read_only(target: str, *, recursive: bool = False) -> None:
    """The mount at a path, and where asked those below it."""
    attributes = _MountAttributes(MOUNT_ATTR_RDONLY, 0, 0, 0)
    _set_attributes(_AT_FDCWD, target, _AT_RECURSIVE if recursive else 0, target, attributes)


def _set_attributes(folder: int, path: str, how: int, what: str, attributes: _MountAttributes) -> None:
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    _call(_SYS_MOUNT_SETATTR, what, folder, path.encode(), ctypes.c_uint(how), ctypes.byref(attributes), size)


def change_mount(mount: int, what: str, set_flags: int = 0, clear: int = 0) -> None:
    """Change attributes (`MOUNT_ATTR_…`) of what a descriptor shows, with everything below it."""
    _set_attributes(mount, "", _AT_EMPTY_PATH | _AT_RECURSIVE, what, _MountAttributes(set_flags, clear, 0, 0))


def make_mount(kind: str, options: Mapping[str, str | None], attributes: int, what: str) -> int:
    """A new mount of a file system, not mounted yet; an option without a value is a flag."""
    context = _call(_SYS_FSOPEN, what, kind.encode(), ctypes.c_uint(_CLOSE_ON_EXEC))
    try:
        for key, value in options.items():
            verb, text = (_SET_FLAG, None) if value is None else (_SET_STRING, value.encode())
            _call(_SYS_FSCONFIG, what, context, ctypes.c_uint(verb), key.encode(), text, 0)
        _call(_SYS_FSCONFIG, what, context, ctypes.c_uint(_CREATE), None, None, 0)
        return _call(_SYS_FSMOUNT, what, context, ctypes.c_uint(_CLOSE_ON_EXEC), ctypes.c_uint(attributes))
    finally:
        os.close(context)


def clone_mount(source: int, what: str, *, recursive: bool = False) -> int:
    """A copy of what a descriptor shows, not mounted yet; it ends with its last descriptor."""
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_EMPTY_PATH | (_AT_RECURSIVE if recursive else 0)
    return _call(_SYS_OPEN_TREE, what, source, b"", ctypes.c_uint(flags))


def move_mount(source: int, target: int, what: str) -> None:
    """Put a mount from `clone_mount` where another descriptor points."""
    _call(_SYS_MOVE_MOUNT, what, source, b"", target, b"", ctypes.c_uint(_MOVE_MOUNT_BOTH_EMPTY))


def open_within(folder: int, path: str, flags: int, resolve: int) -> int:
    """Open a path below a folder under rules for the way there (`RESOLVE_…`)."""
    how = _OpenHow(flags | os.O_CLOEXEC, 0, resolve)
    size = ctypes.c_size_t(ctypes.sizeof(how))
    return _call(_SYS_OPENAT2, path, folder, path.encode(), ctypes.byref(how), size)


def reserve(descriptor: int, size: int) -> None:
    """Set disk space aside for a file without making it longer."""
    checked(_libc.fallocate(descriptor, _FALLOC_KEEP_SIZE, ctypes.c_long(0), ctypes.c_long(size)), "fallocate")
