"""The `fairlead` command as a process of its own, for tests that call it as people do."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from fairlead.client.access.machine import VARIABLE

COMMAND = (sys.executable, "-m", "fairlead")


class Called(NamedTuple):
    code: int
    out: str
    err: str


def surroundings(data_dir: Path, **more: str) -> dict[str, str]:
    """The environment of a user who has nothing but that data folder, a home beside it and a path.

    The machine may have a shared server of its own, which such a user does not know.
    """
    home = data_dir.parent / "home"
    home.mkdir(exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONDONTWRITEBYTECODE") if name in os.environ}
    return {**kept, VARIABLE: os.devnull, "HOME": str(home), "FAIRLEAD_DATA_DIR": str(data_dir), **more}


class Caller:
    """Calls the command with one data folder."""

    def __init__(self, data_dir: Path, folder: Path | None = None) -> None:
        self.data_dir = data_dir
        self.folder = folder or data_dir.parent

    def __call__(self, *arguments: str, stdin: str = "", **environ: str) -> Called:
        done = subprocess.run(
            [*COMMAND, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=180,
            env=surroundings(self.data_dir, **environ),
            cwd=self.folder,
            check=False,
        )
        return Called(done.returncode, done.stdout, done.stderr)

    def ok(self, *arguments: str, stdin: str = "", **environ: str) -> str:
        """The output of a call that must go well."""
        called = self(*arguments, stdin=stdin, **environ)
        assert called.code == 0, called
        return called.out

    def start(self, *arguments: str, **environ: str) -> "subprocess.Popen[str]":
        """A call that goes on."""
        return subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=surroundings(self.data_dir, **environ),
            cwd=self.folder,
        )
