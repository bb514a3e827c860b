"""Snapshots from files: our own JSON, or the archive that KAI's snapshot plugin makes.

Loaded by commands that run the scheduler, because it imports the scheduler's types.
"""

import io
import sys
import zipfile

import msgspec

from fairlead.cli.command import Invocation
from fairlead.cli.flags import UsageError
from fairlead.foresight.kai.convert import convert_archive
from fairlead.scheduling import Snapshot, SnapshotError, check, read_snapshot

#: The one file in KAI's archive, and the member that tells it from a snapshot of ours.
_MEMBER, _MARK = "snapshot.json", b'"rawObjects"'
_ZIP = b"PK\x03\x04"
#: An archive that unpacks to more than this is refused.
_MAX_BYTES = 2_000_000_000


def load_snapshot(invocation: Invocation, flag: str = "snapshot") -> Snapshot:
    """The snapshot of the file that a flag names; raises UsageError or SnapshotError."""
    path = invocation.get(flag)
    if not path:
        raise UsageError(f"No file given. Name it with --{flag}.")
    if path == "-":
        stdin = invocation.environment.stdin
        return decode_snapshot(sys.stdin.buffer.read() if stdin is sys.stdin else stdin.read().encode())
    try:
        with open(path, "rb") as file:
            return decode_snapshot(file.read())
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error}.") from None


def decode_snapshot(data: bytes) -> Snapshot:
    """Of our own form, or of KAI's; raises SnapshotError."""
    if data.startswith(_ZIP):
        data = _unpack(data)
    if _MARK not in data:
        return read_snapshot(data)
    try:
        snapshot = convert_archive(data)
    except (msgspec.DecodeError, ValueError) as error:
        raise SnapshotError([f"KAI's snapshot cannot be read: {error}."]) from error
    check(snapshot)
    return snapshot


def _unpack(data: bytes) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if archive.getinfo(_MEMBER).file_size > _MAX_BYTES:
                raise SnapshotError([f"{_MEMBER} in the archive is larger than {_MAX_BYTES} bytes."])
            return archive.read(_MEMBER)
    except (zipfile.BadZipFile, KeyError) as error:
        raise SnapshotError([f"It is not an archive of KAI's snapshot plugin: {error}."]) from error


def convert_file(invocation: Invocation, flag: str) -> Snapshot:
    """Like `load_snapshot`, for a command that does nothing else with it; raises UsageError."""
    try:
        return load_snapshot(invocation, flag)
    except SnapshotError as error:
        raise UsageError(" ".join(error.problems)) from None
