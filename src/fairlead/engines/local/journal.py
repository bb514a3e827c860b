"""An attempt's file: a line when it is claimed, one when it runs, one when it has ended; the last whole line counts.

One file and appended lines instead of a file per state: on a start it is the only new file. Creating it is exclusive,
so an attempt has one supervisor; a line that a crash cut short has no end and does not count.
Loaded by the fork server too, so it imports little.
"""

import contextlib
import json
import os
from typing import Any

from fairlead.engines.local.linux import mount_syscalls

#: Room for every line of an attempt.
RESERVED_BYTES = 16 * 1024

Record = dict[str, Any]


def claim(path: str, record: Record) -> int:
    """Make the journal with its first line and return its descriptor; FileExistsError when the attempt has one."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):
        # A disk that fills up later still takes the lines to come; some file systems cannot set space aside.
        mount_syscalls.reserve(descriptor, RESERVED_BYTES)
    append(descriptor, record)
    return descriptor


def append(descriptor: int, record: Record, *, durable: bool = False) -> None:
    os.write(descriptor, json.dumps(record, separators=(",", ":")).encode() + b"\n")
    if durable:
        os.fsync(descriptor)


def add(path: str, record: Record) -> None:
    """Append to the journal of an attempt that has no supervisor any more."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            os.write(descriptor, b"\n")
        append(descriptor, record, durable=True)
    finally:
        os.close(descriptor)


def load(path: str) -> Record | None:
    """What the last whole line says; None when there is none, or no journal."""
    try:
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")[:-1]
    except FileNotFoundError:
        return None
    for line in reversed(lines):
        try:
            record: Record = json.loads(line)
            return record
        except ValueError:  # cut short by a crash, then continued on a line of its own
            continue
    return None
