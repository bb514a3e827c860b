"""The few system calls that Python has no words for. Loaded by the fork server; each raises OSError as Python does."""

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
CLONE_NEWPID = 0x20000000
CLONE_NEWIPC = 0x08000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MS_SLAVE = 0x80000

AT_FDCWD = -100
AT_RECURSIVE = 0x8000
MOUNT_ATTR_RDONLY = 0x1
MOUNT_ATTR_NOSUID = 0x2
MOUNT_ATTR_NODEV = 0x4
_SYS_MOUNT_SETATTR = 442  # the same number on every architecture


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns", ctypes.c_uint64),
    )


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def prctl(option: int, value: int, further: int = 0) -> None:
    nothing = ctypes.c_ulong(0)
    arguments = (ctypes.c_ulong(value), ctypes.c_ulong(further), nothing, nothing)
    _check(_libc.prctl(option, *arguments), f"prctl {option}")


def ask(option: int, value: int) -> int:
    """A prctl whose result is its answer."""
    nothing = ctypes.c_ulong(0)
    answer: int = _libc.prctl(option, ctypes.c_ulong(value), nothing, nothing, nothing)
    if answer < 0:
        _check(answer, f"prctl {option}")
    return answer


def filter_calls(program: ctypes.Structure) -> None:
    """Put a filter over every further system call of this process and its children."""
    nothing = ctypes.c_ulong(0)
    arguments = (ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.byref(program), nothing, nothing)
    _check(_libc.prctl(_PR_SET_SECCOMP, *arguments), "seccomp")


def capset(header: "ctypes.Array[ctypes.c_uint32]", data: "ctypes.Array[ctypes.c_uint32]") -> None:
    _check(_libc.capset(ctypes.byref(header), ctypes.byref(data)), "capset")


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def setns(namespace: int, kind: int) -> None:
    """Enter a namespace; 0 as its kind takes it as it is."""
    _check(_libc.setns(namespace, kind), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    arguments = (source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags))
    _check(_libc.mount(*arguments, options.encode() or None), target)


def mount_setattr(target: str, *, set_flags: int = 0, clear_flags: int = 0, recursive: bool = False) -> None:
    attributes = _MountAttributes(set_flags, clear_flags, 0, 0)
    flags = AT_RECURSIVE if recursive else 0
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    arguments = (AT_FDCWD, target.encode(), flags, ctypes.byref(attributes), size)
    _check(_libc.syscall(ctypes.c_long(_SYS_MOUNT_SETATTR), *arguments), target)
