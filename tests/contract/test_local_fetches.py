"""Repositories and buckets that are fetched into a pod's volumes: what is there, as whom, and how it fails."""

import os
import shutil
import signal
import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from fairlead.engines.base import PodState, Start
from fairlead.model.allowed import Allowed
from fairlead.model.pods.supplies import Supplies
from tests.contract.engine_harness import eventually, is_running, opened, scenario, shell
from tests.contract.storage_engine import (
    AS_ROOT,
    ON_MACHINE,
    call,
    claim,
    engine_maker,
    fail,
    files_with,
    nothing_left,
    personal,
    say,
)
from tests.contract.test_local_engine import state_of, stop_of
from tests.contract.test_local_volumes import data
from tests.ssh_service import ssh_service

__all__ = ["data"]
MODES = [pytest.param({}, id="shared"), pytest.param(personal(), id="personal")]
pytestmark = pytest.mark.debian("git")
PASSWORD = "correct-horse-battery"
LOGIN = Supplies(
    secrets={"login": {"User": "ada", "Password": PASSWORD, "who": "ada", "what": PASSWORD}},
)


@pytest.fixture(scope="module")
def repository() -> Iterator[Path]:
    """A bare repository with two branches; its older commit has the tag `first`."""
    folder = Path(call("mktemp", "-d").strip())
    work, bare = folder / "work", folder / "bare.git"
    git = ("git", "-C", work, "-c", "user.name=t", "-c", "user.email=t@example.com")
    call("git", "init", "-q", "-b", "main", work)
    for number, word in enumerate(("one", "two")):
        (work / "file").write_text(word)
        call(*git, "add", "file")
        call(*git, "commit", "-q", "-m", word)
        if number == 0:
            call(*git, "tag", "first")
    call(*git, "checkout", "-q", "-b", "side")
    (work / "file").write_text("aside")
    call(*git, "commit", "-q", "-am", "aside")
    call(*git, "checkout", "-q", "main")
    call("git", "clone", "-q", "--bare", work, bare)
    call("git", "-C", bare, "update-server-info")
    yield bare
    shutil.rmtree(folder)


class Guarded(SimpleHTTPRequestHandler):
    """A web server that gives its files to one user only, and hangs up nowhere else."""

    wanted: ClassVar[str] = "Basic " + b64encode(f"ada:{PASSWORD}".encode()).decode()

    def do_GET(self) -> None:
        if self.headers.get("Authorization") == self.wanted:
            super().do_GET()
            return
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="git"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""


@pytest.fixture
def web(repository: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Guarded, directory=str(repository.parent)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/{repository.name}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def silent() -> Iterator[str]:
    """A host that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/silent.git"


def settings(mode: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"allowed": Allowed(git_protocols=("http",), host_namespaces=True), **more, **mode}


def git(repository: object, **members: Any) -> dict[str, Any]:
    return {"git": [{"repository": str(repository), "path": "/code", **members}]}


@pytest.mark.parametrize("mode", MODES)
class TestGit:
    @pytest.mark.parametrize(
        ("members", "want"),
        [
            pytest.param({}, "two", id="default-branch"),
            pytest.param({"branch": "side"}, "aside", id="branch"),
            pytest.param({"revision": "first"}, "one", id="revision"),
            pytest.param({"branch": "side", "revision": "first"}, "one", id="revision-of-a-branch"),
        ],
    )
    @scenario
    async def test_git_branch_and_revision(
        self, data: Path, mode: dict[str, Any], web: str, members: dict[str, Any], want: str
    ) -> None:
        async with opened(engine_maker(data, LOGIN, **settings(mode))) as harness:
            script = "cat /code/file; stat -c ' %u' /code/file; id -u; echo new > /code/new; ls -A /dev/shm"
            arguments = (
                await say(harness, script, **ON_MACHINE, storage=git(web, passwordSecret="login", **members))
            ).split()
            assert arguments[0] == want
            assert arguments[1] == arguments[2]
            assert len(arguments) == 3, "no credentials or helpers are left in sight"

    @pytest.mark.parametrize(
        "reference",
        [
            pytest.param({"passwordSecret": "login"}, id="password-secret"),
            pytest.param({"secretRef": {"name": "login", "authenticationMethod": "password"}}, id="secret-ref"),
            pytest.param(
                {"secretRef": {"name": "login", "secretKeyOfUser": "who", "secretKeyOfPassword": "what"}}, id="own-keys"
            ),
        ],
    )
    @scenario
    async def test_git_password(self, data: Path, mode: dict[str, Any], web: str, reference: dict[str, Any]) -> None:
        async with opened(engine_maker(data, LOGIN, **settings(mode))) as harness:
            assert (
                await say(
                    harness,
                    f"cat /code/file; grep -r {PASSWORD} /code/.git; true",
                    **ON_MACHINE,
                    storage=git(web, **reference),
                )
                == "two"
            )
            assert files_with(data, PASSWORD) == []

    @scenario
    async def test_git_says_what_went_wrong_and_no_secret(self, data: Path, mode: dict[str, Any], web: str) -> None:
        login = {"User": "ada", "Password": "wrong-and-secret"}
        async with opened(engine_maker(data, Supplies(secrets={"login": login}), **settings(mode))) as harness:
            report = await harness.run(shell("true", fields=ON_MACHINE | {"storage": git(web, passwordSecret="login")}))
            assert report.reason == "FetchError"
            assert "storage.git[0]: git: fatal: Authentication failed" in report.message
            assert "wrong-and-secret" not in report.message
            inside = web.replace("://", "://ada:in-the-address@")
            message = await fail(harness, **ON_MACHINE, storage=git(inside))
            assert "in-the-address" not in message

    @scenario
    async def test_git_host_that_does_not_answer(self, data: Path, mode: dict[str, Any], silent: str) -> None:
        quick = settings(mode, fetch_silence_seconds=1, fetch_seconds=20)
        async with opened(engine_maker(data, **quick)) as harness:
            message = await fail(harness, **ON_MACHINE, storage=git(silent))
            assert "storage.git[0]: git: fatal: unable to access" in message
        async with opened(engine_maker(data, **settings(mode, fetch_seconds=1))) as harness:
            assert "git did not finish within 1 s" in await fail(harness, **ON_MACHINE, storage=git(silent))

    @scenario
    async def test_a_stop_while_it_is_fetched(self, data: Path, mode: dict[str, Any], silent: str) -> None:
        storage = git(silent) | {"emptyDirVolume": [{"path": "/bounded", "sizeLimit": "8Mi"}]}
        async with opened(engine_maker(data, **settings(mode))) as harness:
            spec = shell("true", fields=ON_MACHINE | {"storage": storage})
            await harness.engine.apply([Start(spec)])
            helper = await eventually(lambda: running("git-remote-http", silent), "git asks the silent host")
            await harness.engine.apply([stop_of(spec, 600)])
            report = await harness.until(spec, PodState.EXITED)
            assert report.exit_code != 0
            assert not is_running(helper)
        await nothing_left(data)

    @scenario
    async def test_a_supervisor_killed_while_it_is_fetched(self, data: Path, mode: dict[str, Any], silent: str) -> None:
        storage = git(silent) | {
            "emptyDirVolume": [{"path": "/bounded", "sizeLimit": "8Mi"}],
            "pvc": [{"path": "/claimed"}],
        }
        supplies = Supplies(claims={0: claim("kept", size_bytes=16_000_000)})
        async with opened(engine_maker(data, supplies, **settings(mode))) as harness:
            spec = shell("true", fields=ON_MACHINE | {"storage": storage})
            await harness.engine.apply([Start(spec)])
            helper = await eventually(lambda: running("git-remote-http", silent), "git asks the silent host")
            os.kill(state_of(data, spec)["pid"], signal.SIGKILL)
            assert (await harness.until(spec, PodState.LOST)).reason == "SupervisorLost"
            await eventually(lambda: not is_running(helper))
            await nothing_left(data)
            again = shell("touch /claimed/x; ls /claimed", fields=ON_MACHINE | {"storage": {"pvc": storage["pvc"]}})
            assert (await harness.run(again)).exit_code == 0
            assert await harness.output(again) == b"x\n"


@pytest.mark.parametrize(
    ("item", "want_field"),
    [
        pytest.param({"repository": "ext::sh -c date"}, "repository", id="a-command"),
        pytest.param({"repository": "file:///etc"}, "repository", id="a-file"),
        pytest.param({"repository": "/etc"}, "repository", id="a-path"),
        pytest.param({"repository": "--upload-pack=date"}, "repository", id="an-option"),
        pytest.param({"repository": "https://h/r", "branch": "--upload-pack=date"}, "branch", id="an-option-as-branch"),
        pytest.param({"repository": "https://h/r", "revision": "-x"}, "revision", id="an-option-as-revision"),
    ],
)
@scenario
async def test_git_speaks_only_what_is_allowed(data: Path, item: dict[str, str], want_field: str) -> None:
    async with opened(engine_maker(data)) as harness:
        assert f"storage.git[0].{want_field}" in await fail(
            harness, **ON_MACHINE, storage=git(item.pop("repository"), **item)
        )


@pytest.fixture
def ssh_host(tmp_path: Path, repository: Path) -> Iterator[tuple[str, str]]:
    """A real SSH server that lets in one key; (address of the repository, the key)."""
    with ssh_service(tmp_path, "127.0.0.1") as (address, key):
        yield f"{address}{repository}", key


@pytest.mark.debian("openssh-server")
@pytest.mark.skipif(not AS_ROOT, reason="needs root")
@pytest.mark.parametrize("mode", MODES)
@scenario
async def test_git_ssh_key(data: Path, mode: dict[str, Any], ssh_host: tuple[str, str]) -> None:
    address, key = ssh_host
    secrets = {"deploy": {"ssh-privatekey": key}, "wrong": {"ssh-privatekey": "no key"}}
    async with opened(engine_maker(data, Supplies(secrets=secrets), **mode)) as harness:
        reference = {"name": "deploy", "authenticationMethod": "ssh-key"}
        assert await say(harness, "cat /code/file", **ON_MACHINE, storage=git(address, secretRef=reference)) == "two"
        assert files_with(data, "PRIVATE KEY") == []
        message = await fail(harness, **ON_MACHINE, storage=git(address, secretRef=reference | {"name": "wrong"}))
        assert "Permission denied" in message


def running(name: str, word: str) -> int:
    """A process of that name that was told that word; 0 for none."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if name.encode() in words.split(b"\0")[0] and word.encode() in words:
                return int(entry.name)
    return 0
