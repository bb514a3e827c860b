"""`backup` and `restore`: write the server's database, keys and credentials to one file, and read them back.

The server may run during a backup, but not during a restore.
"""

import fcntl
from pathlib import Path

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import Flag, UsageError
from fairlead.cli.session.settings import data_folder, next_command
from fairlead.cli.terminal.console import Console
from fairlead.client import ClientError
from fairlead.client.access.local import HOLDER, load_flags, read_flag
from fairlead.model.errors import FairleadError
from fairlead.store.archive import SQLITE_MEMBER, restore_archive, write_archive

_FLAGS = (
    Flag("force", "Overwrite what exists", "boolean"),
    Flag(
        "database",
        "SQLite file or postgresql:// URL (default: that of the server of the data folder)",
        placeholder="DATABASE",
        default="$FAIRLEAD_DATABASE",
    ),
)


def commands(noun: str) -> tuple[Command, ...]:
    if noun == "backup":
        return (Command("", "Back up the server's data to a file", _backup, _FLAGS, "FILE", 1, 1),)
    return (Command("", "Restore the server's data from a backup", _restore, _FLAGS, "FILE", 1, 1),)


def find_database(invocation: Invocation) -> str:
    """The database of the data folder's server: as given here, as the server was started, or the folder's own file."""
    folder = data_folder(invocation)
    given = invocation.get("database") or invocation.environment.environ.get("FAIRLEAD_DATABASE")
    database = str(given or read_flag(load_flags(folder), "--database") or Path(folder, SQLITE_MEMBER))
    return database.removeprefix("sqlite://")


def _backup(invocation: Invocation) -> int:
    folder = Path(data_folder(invocation))
    target = Path(invocation.environment.folder, invocation.names[0])
    database = find_database(invocation)
    if target.exists() and not invocation.get("force"):
        raise UsageError(f"{target} exists already; --force overwrites it.")
    if not folder.is_dir():
        raise ClientError(f"There is no data folder {folder}. Name the server's with --data-dir.")
    try:
        last = write_archive(target, folder, database)
    except (FairleadError, OSError) as error:
        raise ClientError(f"Nothing was backed up. {error}") from error
    console = Console(invocation)
    console.data(str(target))
    console.say(f"Restored for a test: all {last.records} records can be read.")
    console.say("The backup contains password hashes and keys. Keep it where only you can read it.")
    return OK


def _restore(invocation: Invocation) -> int:
    folder = Path(data_folder(invocation))
    source = Path(invocation.environment.folder, invocation.names[0])
    database = find_database(invocation)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(folder / HOLDER, "w", encoding="utf-8") as holder:
        try:
            fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            stop = next_command(invocation, "server stop")
            raise ClientError(f"A server is using {folder}. Stop it first with `{stop}`.") from None
        if Path(database).exists() and not invocation.get("force"):
            raise UsageError(f"{folder} contains a database already; --force overwrites it.")
        try:
            restore_archive(source, folder, database)
        except FairleadError as error:
            raise ClientError(str(error)) from error
    start = next_command(invocation, "server start")
    Console(invocation).say(f"Restored into {folder}. Start the server with `{start}`.")
    return OK
