"""`backup` and `restore`: write the server's database, keys and credentials to one file, and read them back.

The server may run during a backup, but not during a restore. PostgreSQL databases have their own tools.
"""

import fcntl
import os
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import Flag, UsageError
from fairlead.cli.session.settings import data_folder, next_command
from fairlead.cli.terminal.console import Console
from fairlead.client import ClientError
from fairlead.client.access.local import HOLDER, RECORD
from fairlead.store.sqlite import copy

_DATABASE = "fairlead.db"
_CREDENTIALS = "credentials.json"
_KEYS = "keys"


def commands(noun: str) -> tuple[Command, ...]:
    force = Flag("force", "Overwrite what exists", "boolean")
    if noun == "backup":
        return (Command("", "Back up the server's data to a file", _backup, (force,), "FILE", 1, 1),)
    return (Command("", "Restore the server's data from a backup", _restore, (force,), "FILE", 1, 1),)


def _backup(invocation: Invocation) -> int:
    folder = Path(data_folder(invocation))
    target = Path(invocation.environment.folder, invocation.names[0])
    database = folder / _DATABASE
    if not database.exists():
        raise ClientError(
            f"There is no database {database}. Back up a PostgreSQL database with PostgreSQL's own tools, "
            f"and copy {_KEYS}/ and {_CREDENTIALS} from {folder}."
        )
    if target.exists() and not invocation.get("force"):
        raise UsageError(f"{target} exists already; --force overwrites it.")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        copied = Path(scratch, _DATABASE)
        copy(database, copied)
        _write_archive(target, copied, folder)
    console = Console(invocation)
    console.data(str(target))
    console.say("The backup contains password hashes and keys. Keep it where only you can read it.")
    return OK


def _write_archive(target: Path, database: Path, folder: Path) -> None:
    """Write the file completely or not at all, readable only by its owner."""
    partial = target.with_name(target.name + ".partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        with tarfile.open(fileobj=file, mode="w:gz") as archive:
            archive.add(database, _DATABASE)
            for path in _secrets(folder):
                archive.add(path, str(path.relative_to(folder)), recursive=False)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, target)


def _secrets(folder: Path) -> Iterator[Path]:
    for name in (_CREDENTIALS, RECORD):
        if (folder / name).exists():
            yield folder / name
    yield from sorted(path for path in (folder / _KEYS).glob("*") if path.is_file())


def _restore(invocation: Invocation) -> int:
    folder = Path(data_folder(invocation))
    source = Path(invocation.environment.folder, invocation.names[0])
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(folder / HOLDER, "w", encoding="utf-8") as holder:
        try:
            fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            stop = next_command(invocation, "server stop")
            raise ClientError(f"A server is using {folder}. Stop it first with `{stop}`.") from None
        if (folder / _DATABASE).exists() and not invocation.get("force"):
            raise UsageError(f"{folder} contains a database already; --force overwrites it.")
        _unpack(source, folder)
    start = next_command(invocation, "server start")
    Console(invocation).say(f"Restored into {folder}. Start the server with `{start}`.")
    return OK


def _unpack(source: Path, folder: Path) -> None:
    """Extract only the files that a backup has, whatever else is in the archive."""
    try:
        with tarfile.open(source, "r:gz") as archive:
            members = {member.name: member for member in archive.getmembers() if member.isfile()}
            if _DATABASE not in members:
                raise ClientError(f"{source} is not a Fairlead backup: it contains no {_DATABASE}.")
            for name, member in members.items():
                content = archive.extractfile(member)
                if content is not None and _is_ours(name):
                    _write(folder / name, content.read())
    except (OSError, tarfile.TarError) as error:
        raise ClientError(f"{source} cannot be read: {error}.") from error
    if RECORD not in members:
        # An older backup does not say whether its server was shared; the next start must not assume what it replaced.
        (folder / RECORD).unlink(missing_ok=True)
    for leftover in (f"{_DATABASE}-wal", f"{_DATABASE}-shm"):
        # They belong to the previous database and would corrupt the restored one.
        (folder / leftover).unlink(missing_ok=True)


def _is_ours(name: str) -> bool:
    parent, _, last = name.rpartition("/")
    return name in (_DATABASE, _CREDENTIALS, RECORD) or (parent == _KEYS and last not in ("", ".", ".."))


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
