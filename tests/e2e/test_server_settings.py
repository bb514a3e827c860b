"""A data folder remembers whether its server is personal or shared, and the flags that it was started with."""

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.cli import exit_codes
from tests.e2e.cli_calls import Caller
from tests.e2e.server import Server

NODE = ("--node", "lab:cpu=2,memory=2Gi,gpus=3")


@pytest.fixture
def fairlead(tmp_path: Path) -> Iterator[Caller]:
    folder = tmp_path / "work"
    folder.mkdir()
    caller = Caller(tmp_path / "data", folder)
    yield caller
    caller("server", "stop")
    Server(caller.data_dir).close()


def is_personal(fairlead: Caller) -> bool:
    told: dict[str, bool] = json.loads((fairlead.data_dir / "server.json").read_text())
    return told["personal"]


def nodes_of(fairlead: Caller) -> list[str]:
    return fairlead.ok("node", "list", "-o", "name").split()


def test_a_start_after_a_stop_has_the_flags_that_it_had(fairlead: Caller) -> None:
    fairlead.ok("server", "start", "--", "--shared", *NODE)
    assert (is_personal(fairlead), nodes_of(fairlead)) == (False, ["lab"])
    fairlead.ok("server", "stop")
    again = fairlead("server", "start")
    assert "Started with the same flags as before: --node lab:cpu=2" in again.err
    # The mode is no flag that has changed.
    assert "Started with the same flags as before" in fairlead("server", "restart", "--", "--shared", *NODE).err
    assert (is_personal(fairlead), nodes_of(fairlead)) == (False, ["lab"])
    changed = fairlead("server", "restart", "--", "--node", "other:cpu=1,memory=1Gi")
    was = "it now has --node other:cpu=1,memory=1Gi; it no longer has --node lab:cpu=2"
    assert f"Its flags have changed: {was}" in changed.err
    assert (is_personal(fairlead), nodes_of(fairlead)) == (False, ["other"])


def test_flags_with_which_it_does_not_start_are_not_remembered(fairlead: Caller) -> None:
    (fairlead.folder / "nodes.yaml").write_text("nodes: [{name: lab, cpu: 2, memory: 2Gi}]")
    failed = fairlead("server", "start", "--", "--shared", "--nodes", "other.yaml")
    assert f"cannot read the nodes file '{fairlead.folder}/other.yaml'" in failed.err
    fairlead.ok("server", "start", "--", "--shared", "--nodes", "nodes.yaml")
    fairlead.ok("server", "stop")
    assert fairlead("server", "start", "--", "--nodes", "other.yaml").code == exit_codes.FAILED
    fairlead.ok("server", "start")
    assert (is_personal(fairlead), nodes_of(fairlead)) == (False, ["lab"])
    assert "the server has declared nodes (--nodes)" in fairlead("doctor").out


def test_what_run_starts_is_the_server_that_was_stopped(fairlead: Caller) -> None:
    fairlead.ok("server", "start", "--", *NODE)
    fairlead.ok("server", "stop")
    fairlead.ok("run", "--", "true")
    assert (is_personal(fairlead), nodes_of(fairlead)) == (True, ["lab"])


def test_a_restored_shared_server_stays_shared(fairlead: Caller) -> None:
    fairlead.ok("server", "start", "--", "--shared", *NODE)
    fairlead.ok("user", "create", "ann@lab.example")
    fairlead.ok("backup", "copy.tar.gz")
    fairlead.ok("server", "stop")
    (fairlead.data_dir / "settings.json").unlink()
    fairlead.ok("restore", "copy.tar.gz", "--force")
    fairlead.ok("server", "start")
    assert (is_personal(fairlead), nodes_of(fairlead)) == (False, ["lab"])


def test_personal_mode_is_refused_for_the_folder_of_a_shared_server(fairlead: Caller) -> None:
    fairlead.ok("server", "start", "--", "--shared")
    fairlead.ok("server", "stop")
    refused = fairlead("server", "start", "--", "--personal")
    assert refused.code == exit_codes.FAILED
    assert "belongs to a shared server" in refused.err


def test_personal_mode_is_refused_where_more_than_the_owner_has_an_account(fairlead: Caller) -> None:
    fairlead.ok("server", "start")
    created = fairlead("user", "create", "ann@lab.example")
    assert "in personal mode" in created.err
    assert "fairlead server restart -- --shared" in created.err
    fairlead.ok("server", "stop")
    refused = fairlead("server", "start")
    assert refused.code == exit_codes.FAILED
    assert "would run the jobs of ann@lab.example as the owner of this server" in refused.err
    fairlead.ok("server", "start", "--", "--shared")
    assert not is_personal(fairlead)


def test_a_backup_that_does_not_know_its_mode_is_not_started_as_personal(fairlead: Caller) -> None:
    """As a backup of an earlier version: the accounts in it tell."""
    fairlead.ok("server", "start", "--", "--shared")
    fairlead.ok("user", "create", "ann@lab.example")
    fairlead.ok("server", "stop")
    (fairlead.data_dir / "settings.json").unlink()
    assert "Start it as a shared server" in fairlead("server", "start").err


def test_a_restart_with_wrong_flags_leaves_the_server_alone(fairlead: Caller) -> None:
    fairlead.ok("server", "start", "--", "--port", "0", "--proxy-port", "0")
    before = json.loads(fairlead.ok("server", "status", "-o", "json"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for flags, reason in (
            (("--nodd", "lab:cpu=2"), "unrecognized arguments: --nodd"),
            (("--node", "lab"), "node 'lab'"),
            (("--runtime", "nosuch"), "'nosuch' is not a runtime"),
            (("--tls-certificate", "/nowhere.pem"), "/nowhere.pem"),
            (("--database", "/nowhere/at/all.db"), "/nowhere/at, does not exist"),
            (("--port", port), f"Cannot listen on port {port}"),
        ):
            refused = fairlead("server", "restart", "--", *flags)
            assert refused.code == exit_codes.USAGE, flags
            assert reason in refused.err
            assert "was not touched" in refused.err
    assert json.loads(fairlead.ok("server", "status", "-o", "json")) == before


def test_a_restart_may_keep_the_ports_that_the_server_has(fairlead: Caller) -> None:
    url = fairlead.ok("server", "start", "--", "--port", "0", "--proxy-port", "0").strip()
    port = url.rpartition(":")[2]
    assert fairlead.ok("server", "restart", "--", "--port", port, "--proxy-port", "0").strip() == url


@pytest.mark.debian("openssl")
def test_a_background_server_has_a_certificate_of_its_own_by_a_relative_path(fairlead: Caller) -> None:
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=lab.example"]
    files = ["-keyout", "key.pem", "-out", "certificate.pem"]
    subprocess.run([*made, *files], cwd=fairlead.folder, check=True, capture_output=True)
    flags = ("--port", "0", "--proxy-port", "0", "--tls-certificate", "certificate.pem", "--tls-key=key.pem")
    assert fairlead.ok("server", "start", "--", *flags).startswith("https://")
    assert "does not answer" not in fairlead.ok("server", "status")


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--tls-certificate", "/none.pem", "--tls-key", "/none.key"), "cannot be loaded from /none.pem and /none.key"),
        (("--port", "99999"), "'99999' is not a port"),
        (("--data-dir", "/proc/none"), "data folder /proc/none cannot be used"),
    ],
)
def test_a_server_that_cannot_start_says_why(fairlead: Caller, flags: tuple[str, ...], told: str) -> None:
    refused = fairlead("serve", *flags)
    assert refused.code != 0
    assert refused.err.count(told) == 1
    assert "Traceback" not in refused.err
