"""`backup`: writes the server's database, keys and credentials to one file. `restore.py` reads it back.

The server may run meanwhile.
"""

from pathlib import Path

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import Flag, UsageError
from fairlead.cli.session.settings import data_folder
from fairlead.cli.terminal.console import Console
from fairlead.cli.terminal.progress import Progress
from fairlead.client import ClientError
from fairlead.client.access.local import load_flags, read_flag
from fairlead.model.errors import FairleadError
from fairlead.store.archive import SQLITE_MEMBER, write_archive

FLAGS = (
    Flag("force", "Overwrite what exists", "boolean"),
    Flag(
        "database",
        "SQLite file or postgresql:// URL (default: that of the server of the data folder)",
        placeholder="DATABASE",
        default="$FAIRLEAD_DATABASE",
    ),
)


def commands(_noun: str) -> tuple[Command, ...]:
    return (Command("", "Back up the server's data to a file", _backup, FLAGS, "FILE", 1, 1),)


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
    console = Console(invocation)
    try:
        with Progress(console, f"Backing up {folder} and testing the backup"):
            last = write_archive(target, folder, database)
    except (FairleadError, OSError) as error:
        raise ClientError(f"Nothing was backed up. {error}") from error
    console.data(str(target))
    console.say(f"Verified by a test restore: all {last.records} records can be read.")
    console.say("The backup contains password hashes and keys. Keep it where only you can read it.")
    return OK
