"""When the newest backup of a data folder was made. Written with every backup; read by the server and by `doctor`."""

from pathlib import Path

import msgspec

from fairlead.store.sqlite import whole_file

_NAME = "last-backup.json"


class LastBackup(msgspec.Struct, frozen=True):
    """A backup that was verified by a test restore."""

    #: Seconds since 1970.
    time: int
    file: str
    records: int


def load_last_backup(folder: Path) -> LastBackup | None:
    try:
        return msgspec.json.decode((folder / _NAME).read_bytes(), type=LastBackup)
    except (OSError, msgspec.MsgspecError):
        return None


def record_last_backup(folder: Path, last: LastBackup) -> None:
    with whole_file(folder / _NAME) as partial:
        partial.write_bytes(msgspec.json.encode(last))
