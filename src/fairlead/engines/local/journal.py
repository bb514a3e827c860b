"""An attempt's file: a line when it is claimed, one when it runs, one when it has ended; the last whole line counts.

Before them may be a line with what was launched, for a server that has lost its own records. One file and appended
lines instead of a file per state: on a start it is the only new file. Creating it is exclusive, so an attempt has one
supervisor; a line that a crash cut short has no end and does not count.
Loaded by the fork server too, so it imports little.
"""

import contextlib
import json
import os
from typing import Any

from fairlead.engines.local.linux import mount_syscalls

#: Room for every line of an attempt after the launch record.
RESERVED_BYTES = 16 * 1024

#: What the line of the launch record begins with, so that it is never taken for a state.
_LAUNCHED = b"#"

Record = dict[str, Any]


def claim(path: str, record: Record, launched: str = "") -> int:
    """Make the journal with its first lines and return its descriptor; FileExistsError when the attempt has one.

    `launched`: what the server wants to know again of the pod, as one line.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):
        # A disk that fills up later still takes the lines to come; some file systems cannot set space aside.
        mount_syscalls.reserve(descriptor, RESERVED_BYTES + len(launched))
    os.write(descriptor, (_LAUNCHED + launched.encode() + b"\n" if launched else b"") + _line(record))
    return descriptor


def append(descriptor: int, record: Record, *, durable: bool = False) -> None:
    os.write(descriptor, _line(record))
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


def load_launched(path: str) -> bytes:
    """The launch record; empty when there is none, or no journal."""
    try:
        with open(path, "rb") as file:
            first = file.readline()
    except FileNotFoundError:
        return b""
    return first[1:-1] if first.startswith(_LAUNCHED) and first.endswith(b"\n") else b""


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


def _line(record: Record) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"
