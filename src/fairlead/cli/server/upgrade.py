"""`upgrade`: shows a plan, backs up, installs another version and restarts the server with it; or rolls that back.

Everything after the installation is done by the version that was installed, in a process of its own. Workloads keep
running. If the new version does not start, the previous one is brought back.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from fairlead import __version__
from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.flags import Flag, UsageError
from fairlead.cli.server.backup import find_database
from fairlead.cli.server.fetch_wheel import fetch_wheel
from fairlead.cli.server.installation import (
    InstalledTool,
    find_installation,
    install,
    is_checkout,
    keep_present_version,
    version_of_wheel,
)
from fairlead.cli.session.background import is_healthy
from fairlead.cli.session.settings import data_folder, next_command
from fairlead.cli.terminal.console import Console, is_terminal
from fairlead.cli.terminal.progress import Progress
from fairlead.client import ClientError
from fairlead.client.access.local import LocalServer, is_in_background, load_local
from fairlead.client.access.tokens import write_private
from fairlead.model.errors import FairleadError
from fairlead.store.archive import write_archive
from fairlead.store.backup import Layout, load_layout

#: In the data folder: the last upgrade, and the wheels of versions that can come back.
_RECORD, _VERSIONS = "last-upgrade.json", "versions"
_FLAGS = (
    Flag("index", "Package index to take VERSION from, such as your company's", placeholder="URL"),
    Flag("rollback", "Bring back the version before the last upgrade", "boolean"),
    Flag("dry-run", "Only show the plan", "boolean"),
    Flag("yes", "Do not ask", "boolean", "y"),
)


class LastUpgrade(NamedTuple):
    before: str
    after: str
    #: The wheel of the version before.
    wheel: str
    #: The backup from before, empty if there was no database; and the layout of that database.
    backup: str
    layout: int


def commands(_noun: str) -> tuple[Command, ...]:
    details = (
        "WHEEL is a file or an https:// address. The package is not on PyPI, so there is no default index.\n"
        "The server is restarted if it runs in the background; workloads keep running."
    )
    summary = "Install another version, and restart the server with it"
    return (Command("", summary, _upgrade, _FLAGS, "WHEEL|VERSION", 0, 1, details=details),)


def _upgrade(invocation: Invocation) -> int:
    return _Upgrade(invocation).roll_back() if invocation.get("rollback") else _Upgrade(invocation).upgrade()


class _Upgrade:
    """One call of the command."""

    def __init__(self, invocation: Invocation) -> None:
        self.invocation = invocation
        self.console = Console(invocation)
        self.folder = Path(data_folder(invocation))
        self.database = find_database(invocation)
        self.installation: InstalledTool = find_installation(Path(sys.prefix), is_checkout=is_checkout())
        self.server: LocalServer | None = load_local(str(self.folder))
        self.can_restart = self.server is not None and is_in_background(self.server.pid)

    def upgrade(self) -> int:
        if not self.invocation.names:
            raise UsageError("Name the wheel of the new version; or bring back the previous one with --rollback.")
        with Progress(self.console, f"Fetching {self.invocation.names[0]}"):
            wheel = fetch_wheel(self.invocation, self.folder / _VERSIONS)
        version = version_of_wheel(wheel)
        if version == __version__:
            self.console.say(f"Version {version} is installed already.")
            return OK
        layout = _layout_of(self.database).number
        steps = [f"back up {self.database} into {self.folder / 'backups'}"] if layout else []
        steps += [f"install {wheel} into {self.installation.folder} ({self.installation.kind})", *self._restart_step()]
        if not self._is_agreed(f"Upgrade from {__version__} to {version}:", steps):
            return OK
        last = LastUpgrade(__version__, version, str(self._keep()), self._back_up(version) if layout else "", layout)
        write_private(str(self.folder / _RECORD), json.dumps(last._asdict()))
        self._install(wheel)
        if self.can_restart and not self._restarts(version):
            self.console.complain(f"Version {version} does not start; bringing {__version__} back.")
            self._bring_back(last)
            return FAILED
        self.console.data(version)
        back = next_command(self.invocation, "upgrade --rollback")
        self.console.say(f"Upgraded from {__version__} to {version}. Bring {__version__} back with `{back}`.")
        self._remind()
        return OK

    def roll_back(self) -> int:
        last = _load_record(self.folder)
        if last is None:
            raise ClientError(f"There is no upgrade of the data folder {self.folder} to roll back.")
        needs_restore = self._needs_restore(last)
        if needs_restore and self.server is not None and not self.can_restart:
            raise ClientError(f"Stop the server first (process {self.server.pid}): its database must be restored.")
        steps = [f"install {last.wheel} into {self.installation.folder} ({self.installation.kind})"]
        if needs_restore:
            steps += [
                "back up the current database, which the earlier version cannot read",
                f"restore {last.backup}; workloads that were submitted since then are lost, unless they run",
            ]
        if not self._is_agreed(f"Roll back from {__version__} to {last.before}:", [*steps, *self._restart_step()]):
            return OK
        if needs_restore:
            self._back_up(last.before)
        self._bring_back(last)
        (self.folder / _RECORD).unlink(missing_ok=True)
        self.console.data(last.before)
        self.console.say(f"Rolled back from {__version__} to {last.before}.")
        if not needs_restore:
            self._remind()
        return OK

    def _bring_back(self, last: LastUpgrade) -> None:
        """Install the earlier version, with its database if that has a layout now which the version cannot use."""
        needs_restore = self._needs_restore(last)
        if needs_restore and self.can_restart:
            self._run("server", "stop")
        self._install(Path(last.wheel))
        if needs_restore:
            # Not as an argument, because everybody on the machine can read those, and a URL may have a password.
            self._run("restore", last.backup, "--force", FAIRLEAD_DATABASE=self.database)
        if self.can_restart and not (self._runs(last.before) or self._restarts(last.before)):
            raise ClientError(f"Version {last.before} was installed, but its server does not start.")

    def _needs_restore(self, last: LastUpgrade) -> bool:
        return bool(last.backup) and _layout_of(self.database).oldest_reader > last.layout

    def _is_agreed(self, title: str, steps: list[str]) -> bool:
        self.console.say("\n".join([title, *(f"  {number}. {step}" for number, step in enumerate(steps, 1))]))
        if self.invocation.get("dry-run"):
            return False
        if self.invocation.get("yes"):
            return True
        if not is_terminal(self.invocation.environment.stdin):
            raise UsageError("Nothing was changed. Use --yes to continue without confirmation.")
        self.console.complain("Continue? [y/N]")
        return self.invocation.environment.stdin.readline().strip().lower() in ("y", "yes")

    def _restart_step(self) -> list[str]:
        if self.server is None:
            return []
        if self.can_restart:
            return [f"restart the server at {self.server.url}; workloads keep running"]
        return ["you restart the server yourself, because it was started with `fairlead serve`"]

    def _remind(self) -> None:
        if self.server is not None and not self.can_restart:
            self.console.say("Restart the server where it was started, such as with `systemctl restart fairlead`.")

    def _keep(self) -> Path:
        return keep_present_version(self.folder / _VERSIONS)

    def _back_up(self, other: str) -> str:
        folder = self.folder / "backups"
        folder.mkdir(mode=0o700, exist_ok=True)
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        target = folder / f"before-{other}-{stamp}.tar.gz"
        try:
            with Progress(self.console, "Backing up"):
                write_archive(target, self.folder, self.database)
        except (FairleadError, OSError) as error:
            raise ClientError(f"Nothing was changed, because the backup failed: {error}") from error
        return str(target)

    def _install(self, wheel: Path) -> None:
        with Progress(self.console, f"Installing {wheel.name}"):
            install(self.installation, wheel, self.invocation.environment.environ)

    def _restarts(self, version: str) -> bool:
        """Whether the server runs after a restart, with that version."""
        return self._call("server", "restart") == OK and self._runs(version)

    def _runs(self, version: str) -> bool:
        server = load_local(str(self.folder))
        return (
            server is not None and server.version == version and is_healthy(server.url, certificate=server.certificate)
        )

    def _run(self, *words: str, **variables: str) -> None:
        if self._call(*words, **variables) != OK:
            raise ClientError(f"`fairlead {' '.join(words)}` failed.")

    def _call(self, *words: str, **variables: str) -> int:
        """Call the installed command, whichever version that is now."""
        python = str(self.installation.folder / "bin" / "python")
        command = [python, "-m", "fairlead", *words, "--data-dir", str(self.folder)]
        done = subprocess.run(
            command,
            env={**self.invocation.environment.environ, **variables},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            self.console.complain(done.stderr.strip())
        return done.returncode


def _load_record(folder: Path) -> LastUpgrade | None:
    try:
        return LastUpgrade(**json.loads((folder / _RECORD).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _layout_of(database: str) -> Layout:
    try:
        return load_layout(database)
    except FairleadError as error:
        raise ClientError(str(error)) from error
