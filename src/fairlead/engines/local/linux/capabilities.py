"""The capabilities of a pod's process: numbers by name, and the calls that lower, keep and grant them.

The calls run in the pod's process before exec, around its change of user; `plan/identity.py` decides which it
gets. Loaded by the fork server too, so it imports little.
"""

import ctypes
from collections.abc import Iterable, Sequence

from fairlead.engines.local.linux import syscalls

#: In the kernel's order, from 0 on.
_NAMES = """
CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN
SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE
MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE
"""
NUMBERS = {name: number for number, name in enumerate(_NAMES.split())}
_DEFAULT = """
CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SETPCAP NET_BIND_SERVICE NET_RAW SYS_CHROOT MKNOD AUDIT_WRITE
SETFCAP
"""
#: What container runtimes leave to root in a container; everything else must be asked for.
RUNTIME_DEFAULT = frozenset(_DEFAULT.split())

_PR_SET_KEEPCAPS = 8
_PR_CAPBSET_READ = 23
_PR_CAPBSET_DROP = 24
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = 2
_VERSION_3 = 0x20080522


def numbers(names: Iterable[str]) -> list[int]:
    return sorted(NUMBERS[name] for name in names)


def limit(bounding: Sequence[int]) -> None:
    """Give up for good whatever is not named, before the change of user; raises OSError where that is not ours."""
    for number in range(64):
        if number not in bounding:
            try:
                if not syscalls.ask(_PR_CAPBSET_READ, number):
                    continue
            except OSError:
                break  # the kernel has no further ones
            syscalls.prctl(_PR_CAPBSET_DROP, number)


def keep_over_change_of_user() -> None:
    syscalls.prctl(_PR_SET_KEEPCAPS, 1)


def grant(ambient: Sequence[int]) -> None:
    """Hold exactly these, in every set, so that exec keeps them for a user who is not root."""
    mask = sum(1 << number for number in ambient)
    header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    # Twice (effective, permitted, inheritable): the lower and the upper half.
    data = (ctypes.c_uint32 * 6)(low, low, low, high, high, high)
    syscalls.capset(header, data)
    for number in ambient:
        syscalls.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, number)
