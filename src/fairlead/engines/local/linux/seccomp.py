"""The default filter on system calls: what container runtimes deny to a process that was given no capability for it.

`render` computes a small program for the kernel's filter machine; `apply` installs it in the pod's process before exec.
If the machine's architecture is not in the table there is no filter, and the field is refused. Loaded by the fork
server too, so it imports little. Made without libseccomp: it need not be installed on the machine, and its Python
binding cannot be imported there, because the fork server runs without site packages.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterable

from fairlead.engines.local.linux import syscalls

#: (column of the tables below, the kernel's word for the architecture)
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32_BIT = 0x40000000

#: Denied whatever the capabilities: (number on x86_64, on aarch64), -1 where there is no such call.
_ALWAYS = {
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "nfsservctl": (180, 42),
    "uselib": (134, -1),
    "ustat": (136, -1),
    "sysfs": (139, -1),
    "_sysctl": (156, -1),
    "create_module": (174, -1),
    "get_kernel_syms": (177, -1),
    "query_module": (178, -1),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "pivot_root": (155, 41),
}
#: Denied unless the capability was added.
_BY_CAPABILITY = {
    "SYS_ADMIN": {
        "mount": (165, 40),
        "umount2": (166, 39),
        "setns": (308, 268),
        "unshare": (272, 97),
        "bpf": (321, 280),
        "perf_event_open": (298, 241),
        "quotactl": (179, 60),
        "quotactl_fd": (443, 443),
        "fanotify_init": (300, 262),
        "lookup_dcookie": (212, 18),
        "sethostname": (170, 161),
        "setdomainname": (171, 162),
        "open_tree": (428, 428),
        "move_mount": (429, 429),
        "fsopen": (430, 430),
        "fsconfig": (431, 431),
        "fsmount": (432, 432),
        "fspick": (433, 433),
        "mount_setattr": (442, 442),
    },
    "SYS_BOOT": {"reboot": (169, 142), "kexec_load": (246, 104), "kexec_file_load": (320, 294)},
    "SYS_MODULE": {"init_module": (175, 105), "delete_module": (176, 106), "finit_module": (313, 273)},
    "SYS_PACCT": {"acct": (163, 89)},
    "SYS_RAWIO": {"iopl": (172, -1), "ioperm": (173, -1)},
    "SYS_TIME": {"settimeofday": (164, 170), "clock_settime": (227, 112)},
    "SYS_TTY_CONFIG": {"vhangup": (153, 58)},
    "SYSLOG": {"syslog": (103, 116)},
    "DAC_READ_SEARCH": {"open_by_handle_at": (304, 265)},
}
_CLONE = (56, 220)
#: Its flags lie in memory that a filter cannot read; without it, libraries fall back to clone.
_CLONE3 = (435, 435)
#: Every namespace that clone can make.
_NAMESPACES = 0x7E020000

_LOAD, _JUMP_EQUAL, _JUMP_BITS, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW = 0x7FFF0000
_DENY = 0x00050000 | errno.EPERM
_ABSENT = 0x00050000 | errno.ENOSYS

Instruction = tuple[int, int, int, int]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def is_available(machine: str = "") -> bool:
    return (machine or os.uname().machine) in ARCHITECTURES and os.path.exists("/proc/sys/kernel/seccomp")


def denied(machine: str, added: Iterable[str]) -> list[int]:
    """The numbers of the calls that a process without further capabilities than `added` is denied."""
    column = ARCHITECTURES[machine][0]
    calls = dict(_ALWAYS)
    for capability, guarded in _BY_CAPABILITY.items():
        if capability not in added:
            calls |= guarded
    return sorted(numbers[column] for numbers in calls.values() if numbers[column] >= 0)


def render(machine: str, added: Iterable[str] = ()) -> bytes:
    """The filter as the kernel reads it."""
    given = frozenset(added)
    column, word = ARCHITECTURES[machine]
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        # Calls of another architecture have other numbers: none of them exists here.
        (_JUMP_EQUAL, 1, 0, word),
        (_RETURN, 0, 0, _ABSENT),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _ABSENT),
    ]
    for number in denied(machine, given):
        program += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _DENY)]
    if "SYS_ADMIN" not in given:
        program += [
            (_JUMP_EQUAL, 0, 1, _CLONE3[column]),
            (_RETURN, 0, 0, _ABSENT),
            (_JUMP_EQUAL, 0, 3, _CLONE[column]),
            (_LOAD, 0, 0, _FIRST_ARGUMENT),
            (_JUMP_BITS, 0, 1, _NAMESPACES),
            (_RETURN, 0, 0, _DENY),
        ]
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def apply(added: Iterable[str]) -> None:
    """Filter this process from now on; it must have no new privileges ahead, or the right to go without."""
    instructions = render(os.uname().machine, added)
    program = _Program(len(instructions) // 8, instructions)
    syscalls.filter_calls(program)
