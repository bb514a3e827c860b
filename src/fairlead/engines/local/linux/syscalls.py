"""System calls about processes that Python lacks; those about mounts are in `mount_syscalls.py`.

Loaded by the fork server; each raises OSError as Python does.
"""

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2

_TIME_ERROR, _TIMEX_BYTES = 5, 256
_IN_MODIFY, _IN_MOVED_TO = 0x2, 0x80

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
CLONE_NEWPID = 0x20000000
CLONE_NEWIPC = 0x08000000


def checked(result: int, what: str) -> int:
    """The result of a call of the C library; raises OSError if the call failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


def prctl(option: int, value: int, further: int = 0) -> None:
    nothing = ctypes.c_ulong(0)
    arguments = (ctypes.c_ulong(value), ctypes.c_ulong(further), nothing, nothing)
    checked(_libc.prctl(option, *arguments), f"prctl {option}")


def ask(option: int, value: int) -> int:
    """A prctl whose result is its answer."""
    nothing = ctypes.c_ulong(0)
    return checked(_libc.prctl(option, ctypes.c_ulong(value), nothing, nothing, nothing), f"prctl {option}")


def filter_calls(program: ctypes.Structure) -> None:
    """Put a filter over every further system call of this process and its children."""
    nothing = ctypes.c_ulong(0)
    arguments = (ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.byref(program), nothing, nothing)
    checked(_libc.prctl(_PR_SET_SECCOMP, *arguments), "seccomp")


def capset(header: "ctypes.Array[ctypes.c_uint32]", data: "ctypes.Array[ctypes.c_uint32]") -> None:
    checked(_libc.capset(ctypes.byref(header), ctypes.byref(data)), "capset")


def unshare(flags: int) -> None:
    checked(_libc.unshare(flags), "unshare")


def setns(namespace: int, kind: int) -> None:
    """Enter a namespace; with kind 0, a namespace of any kind."""
    checked(_libc.setns(namespace, kind), "setns")


def is_clock_synchronized() -> bool:
    """Whether a time service keeps this machine's clock, as far as the kernel knows."""
    # A struct timex in which nothing is asked to change; the state of the clock is the result.
    return checked(_libc.adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES)), "adjtimex") != _TIME_ERROR


def watch_folder(path: str) -> int:
    """An open file that can be read as soon as something is written to a file in a folder, or moved there."""
    watch = checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify")
    checked(_libc.inotify_add_watch(watch, os.fsencode(path), ctypes.c_uint32(_IN_MODIFY | _IN_MOVED_TO)), path)
    return watch
