"""`fairlead upgrade` from 0.1.0 to the version of this checkout and back, while a pod runs."""

import hashlib
import io
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest

from fairlead import __version__
from fairlead.cli.command import CommandEnvironment, Invocation
from fairlead.cli.flags import Parsed, UsageError
from fairlead.cli.server.fetch_wheel import fetch_wheel
from fairlead.client import ClientError
from scripts import release
from tests.e2e import wheels
from tests.e2e.cli_calls import Called, Caller
from tests.e2e.server import Server, observe_processes, until

pytestmark = pytest.mark.xdist_group("install")
OLD, NEW = "0.1.0", __version__
DATA = Path(__file__).parent / "data" / "data-0.1.0.tar.gz"
#: What a later version may add to the layout of the database, so that earlier ones cannot use it.
MIGRATION = """
_later = (Table(name="later", columns="name:text"),)
MIGRATIONS = (*MIGRATIONS, Migration(MIGRATIONS[-1].number + 1, _later, admits_previous=False))
"""
BROKEN = "\nraise ImportError('this version does not start')\n"


class Installed(NamedTuple):
    """Version 0.1.0, installed with `uv tool install`, with a data folder of its own."""

    folder: Path
    #: Called as an operator does.
    command: Path
    new: Path
    broken: Path

    def __call__(self, *arguments: str) -> Called:
        variables = {"HOME": self.folder / "home", "FAIRLEAD_DATA_DIR": self.folder / "data"}
        environment = release.clean_environment(variables)
        environment["PATH"] = f"{release.UV.parent}{os.pathsep}{environment['PATH']}"
        done = subprocess.run(
            [self.command, *arguments], env=environment, cwd=self.folder, capture_output=True, text=True, timeout=180
        )
        return Called(done.returncode, done.stdout, done.stderr)

    def ok(self, *arguments: str) -> str:
        called = self(*arguments)
        assert called.code == 0, called
        return called.out

    def version(self) -> str:
        found = json.loads((self.folder / "data" / "server.json").read_text())
        return f"{self.ok('version', '-o', 'name').strip()} {found['version']}"


@pytest.fixture
def installed(built: Path, tmp_path: Path) -> Iterator[Installed]:
    """The old version has the code of this checkout, the new one a newer layout of the database too."""
    wheel = built / release.WHEEL
    old = wheels.as_version(wheel, OLD, tmp_path)
    new = wheels.as_version(wheel, NEW, tmp_path, migrations=MIGRATION)
    assert old != new
    (tmp_path / "broken").mkdir()
    broken = wheels.as_version(wheel, "98.0.0", tmp_path / "broken", sqlite=BROKEN)
    places = {"UV_TOOL_DIR": tmp_path / "tools", "UV_TOOL_BIN_DIR": tmp_path / "bin"}
    release.run(release.UV, "tool", "install", "--quiet", old, cwd=tmp_path, **places)
    old.unlink()
    (tmp_path / "home").mkdir()
    made = Installed(tmp_path, tmp_path / "bin" / "fairlead", new, broken)
    yield made
    made("server", "stop")
    Server(tmp_path / "data").close()


def pid_of(marker: str) -> int:
    return next((pid for pid, process in observe_processes().items() if marker in process.words and process.pod), 0)


def test_an_upgrade_and_its_rollback_keep_running_work(installed: Installed) -> None:
    """The rollback restores the database of before, because the new version has given it another layout."""
    installed.ok("server", "start", "--", "--port", "0", "--proxy-port", "0")
    installed.ok("run", "--detach", "--name", "kept", "--", "sleep", "86399")
    installed.ok("wait", "kept", "--for", "Running", "--timeout", "60s")
    pid = until(lambda: pid_of("86399"), "the pod's process")
    assert installed.version() == f"{OLD} {OLD}"

    plan = installed("upgrade", str(installed.new), "--dry-run")
    assert f"Upgrade from {OLD} to {NEW}" in plan.err
    assert "back up" in plan.err
    assert installed("upgrade", str(installed.new)).code != 0
    assert installed.version() == f"{OLD} {OLD}"

    installed.ok("upgrade", str(installed.new), "--yes")
    assert installed.version() == f"{NEW} {NEW}"
    assert json.loads(installed.ok("describe", "kept", "-o", "json"))["phase"] == "Running"
    assert pid_of("86399") == pid
    installed.ok("run", "--detach", "--name", "later", "--", "sleep", "86398")
    installed.ok("wait", "later", "--for", "Running", "--timeout", "60s")

    told = installed("upgrade", "--rollback", "--yes")
    assert told.code == 0, told
    assert "restore" in told.err
    assert installed.version() == f"{OLD} {OLD}"
    assert pid_of("86399") == pid
    # It ran, so it was adopted.
    phases = {row["name"]: row["phase"] for row in json.loads(installed.ok("list", "-o", "json"))}
    assert phases == {"kept": "Running", "later": "Running"}
    assert installed("upgrade", "--rollback", "--yes").code != 0


def test_the_data_of_the_first_release_can_be_used(tmp_path: Path) -> None:
    """The file is a backup that version 0.1.0 made. Its server was shared, and had one declared node."""
    fairlead = Caller(tmp_path / "data", tmp_path)
    fairlead.ok("restore", str(DATA))
    try:
        fairlead.ok("server", "start")
        rows = {row["name"]: row["phase"] for row in json.loads(fairlead.ok("list", "-p", "vision", "-o", "json"))}
        assert rows == {"done": "Completed", "waits": "Pending"}
        assert "ann@lab.example" in fairlead.ok("user", "list", "-o", "name")
        # Its secrets can be decrypted, and work goes on.
        submit = ("training", "submit", "next", "-p", "vision", "-i", "fairlead.local/host")
        fairlead.ok(*submit, "--env-secret", "TOKEN=token,key=key", "--", "sh", "-c", "echo $TOKEN")
        fairlead.ok("wait", "next", "-p", "vision", "--for", "Completed", "--timeout", "60s")
        assert fairlead.ok("logs", "next", "-p", "vision") == "kept-secret\n"
    finally:
        fairlead("server", "stop")
        Server(fairlead.data_dir).close()


def test_a_version_that_does_not_start_is_taken_back(installed: Installed) -> None:
    installed.ok("server", "start", "--", "--port", "0", "--proxy-port", "0")
    pid = json.loads(installed.ok("server", "status", "-o", "json"))["pid"]
    failed = installed("upgrade", str(installed.broken), "--yes")
    assert failed.code != 0
    assert "does not start" in failed.err
    assert installed.version() == f"{OLD} {OLD}"
    # Its flags were checked first, by the new version, so the server was never stopped.
    assert json.loads(installed.ok("server", "status", "-o", "json"))["pid"] == pid


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """A package index as companies have them, with one version whose checksum is right, and one whose is not."""
    pages = tmp_path / "index" / "fairlead-workloads"
    pages.mkdir(parents=True)
    links = []
    for version, content in (("2.0", b"right"), ("3.0", b"wrong")):
        name = f"fairlead_workloads-{version}-py3-none-any.whl"
        (pages / name).write_bytes(content)
        links.append(f'<a href="{name}#sha256={hashlib.sha256(b"right").hexdigest()}">{name}</a>')
    (pages / "index.html").write_text("\n".join(links))
    handler = partial(QuietHandler, directory=str(tmp_path / "index"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


def fetch(tmp_path: Path, target: str, index: str = "") -> Path:
    environment = CommandEnvironment({}, str(tmp_path), io.StringIO(), io.StringIO(), io.StringIO())
    flags = {"index": index} if index else {}
    return fetch_wheel(Invocation(Parsed(flags, [target], None), environment), tmp_path / "versions")


def test_a_version_comes_from_an_index_with_its_checksum(index: str, tmp_path: Path) -> None:
    assert fetch(tmp_path, "2.0", index).read_bytes() == b"right"
    with pytest.raises(ClientError, match="does not match its checksum"):
        fetch(tmp_path, "3.0", index)
    with pytest.raises(ClientError, match=r"no wheel of version 4\.0"):
        fetch(tmp_path, "4.0", index)
    with pytest.raises(ClientError, match="neither https:// nor a checksum"):
        fetch(tmp_path, f"{index}/fairlead-workloads/fairlead_workloads-2.0-py3-none-any.whl")
    # Never from PyPI, where the name is not ours.
    with pytest.raises(UsageError, match="--index URL"):
        fetch(tmp_path, "2.0")


def test_a_checkout_is_not_upgraded(tmp_path: Path) -> None:
    variables = {"HOME": tmp_path, "FAIRLEAD_DATA_DIR": tmp_path / "data"}
    command = [str(release.ROOT / ".venv" / "bin" / "fairlead"), "upgrade", "any.whl"]
    done = subprocess.run(command, env=release.clean_environment(variables), capture_output=True, text=True)
    assert done.returncode != 0
    assert "git pull" in done.stderr
