"""One file with everything that a server needs to start again: database, keys, credentials and settings.

Written and read by `fairlead backup` and `restore`; the server calls the first for scheduled backups. What a backup of
the database is, and how it is restored, is in `backup.py`.
"""

import os
import tarfile
import tempfile
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from fairlead.model.errors import Refused, Unavailable
from fairlead.store.backup import backup, restore, verify
from fairlead.store.last_backup import LastBackup, record_last_backup
from fairlead.store.sqlite import whole_file

#: The names of a database in an archive, by what it is a backup of.
SQLITE_MEMBER, POSTGRES_MEMBER = "fairlead.db", "fairlead.postgresql"
SETTINGS = "settings.json"
_FILES, _KEYS = ("credentials.json", SETTINGS), "keys"


def write_archive(target: Path, folder: Path, database: str) -> LastBackup:
    """Back up the data folder and its database (a path or a postgresql:// URL). The file is complete or not there.

    It is restored in a scratch folder before it gets its name.
    """
    with whole_file(target) as partial, tempfile.TemporaryDirectory(dir=folder) as scratch:
        member = _member(database)
        copied = Path(scratch, member)
        backup(database, copied)
        with open(partial, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            archive.add(copied, member)
            for path in _secrets(folder):
                archive.add(path, str(path.relative_to(folder)), recursive=False)
        copied.unlink()
        records = verify_archive(partial, database, Path(scratch))
    last = LastBackup(int(time.time()), str(target), records)
    record_last_backup(folder, last)
    return last


def verify_archive(source: Path, database: str, scratch: Path) -> int:
    """Unpack the archive into the scratch folder, and restore its database there, or beside the real PostgreSQL."""
    _unpack(source, scratch, _member(database))
    return verify(database, scratch / _member(database))


def restore_archive(source: Path, folder: Path, database: str) -> None:
    """Replace the database, the keys, the credentials and the settings. No server may use them."""
    member = _member(database)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        unpacked = _unpack(source, Path(scratch), member)
        restore(database, Path(scratch, member))
        if SETTINGS not in unpacked:
            # An older backup does not say whether its server was shared; the next start must not assume anything.
            (folder / SETTINGS).unlink(missing_ok=True)
        (folder / _KEYS).mkdir(mode=0o700, exist_ok=True)
        for name in unpacked:
            if name != member:
                os.replace(Path(scratch, name), folder / name)


def _member(database: str) -> str:
    return POSTGRES_MEMBER if database.startswith(("postgres://", "postgresql://")) else SQLITE_MEMBER


def _secrets(folder: Path) -> Iterator[Path]:
    yield from (folder / name for name in _FILES if (folder / name).exists())
    yield from sorted(path for path in (folder / _KEYS).glob("*") if path.is_file())


def _unpack(source: Path, folder: Path, member: str) -> list[str]:
    """Extract only the files that a backup has, whatever else is in the archive. Returns their names."""
    try:
        with tarfile.open(source, "r:gz") as archive:
            members = {one.name: one for one in archive.getmembers() if one.isfile() and _is_ours(one.name)}
            _check_members(source, members.keys(), member)
            for name, entry in members.items():
                content = archive.extractfile(entry)
                if content is not None:
                    (folder / name).parent.mkdir(mode=0o700, exist_ok=True)
                    with whole_file(folder / name) as partial:
                        partial.write_bytes(content.read())
            return list(members)
    except (OSError, EOFError, tarfile.TarError) as error:
        raise Unavailable(f"{source} cannot be read: {error}.") from error


def _check_members(source: Path, names: Collection[str], member: str) -> None:
    if member in names:
        return
    if POSTGRES_MEMBER in names:
        raise Refused(f"{source} is a backup of PostgreSQL: name the database to restore it to with --database.")
    if SQLITE_MEMBER in names:
        raise Refused(f"{source} is a backup of SQLite, which cannot be restored to PostgreSQL.")
    raise Refused(f"{source} is not a Fairlead backup: it contains no database.")


def _is_ours(name: str) -> bool:
    parent, _, last = name.rpartition("/")
    return name in (SQLITE_MEMBER, POSTGRES_MEMBER, *_FILES) or (parent == _KEYS and last not in ("", ".", ".."))
