"""What `doctor` says about the server of a data folder."""

import io
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.cli.command import CommandEnvironment, Invocation
from fairlead.cli.flags import Parsed
from fairlead.cli.server.doctor import Checks, run_doctor
from fairlead.cli.server.server_checks import check_server, judge_backup, judge_version
from fairlead.engines.local.machine_checks import judge_gpus
from fairlead.model.finding import Finding


def invocation_in(folder: Path, flags: list[str]) -> Invocation:
    """For a folder whose server does not run and was started with these flags last."""
    (folder / "settings.json").write_text(json.dumps({"personal": True, "flags": flags}))
    environ = {"HOME": str(folder), "FAIRLEAD_DATA_DIR": str(folder)}
    environment = CommandEnvironment(environ, str(folder), io.StringIO(), io.StringIO(), io.StringIO())
    return Invocation(Parsed({}, [], None), environment)


def findings(folder: Path, flags: list[str]) -> dict[str, Finding]:
    return {each.what: each for each in check_server(invocation_in(folder, flags))}


@pytest.mark.parametrize("form", ["{} {}", "{}={}"], ids=["two words", "one word"])
def test_a_port_that_another_program_has_is_missing(tmp_path: Path, form: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        flags = [*form.format("--port", port).split(), "--proxy-port", "0"]
        found = findings(tmp_path, flags)["Ports"]
    assert found.state == "missing"
    assert f"port {port} (--port) is in use" in found.found


def test_ports_that_may_be_any_are_free(tmp_path: Path) -> None:
    found = findings(tmp_path, ["--port", "0", "--proxy-port=0"])
    assert found["Ports"].state == "ok"
    assert found["Server"] == Finding("Server", "note", "not running", "Start it: fairlead server start")


def test_a_server_of_another_version_is_to_be_restarted() -> None:
    found = judge_version("0.1.0", "0.2.0", "fairlead server restart")
    assert found.state == "note"
    assert "the server is 0.1.0, but this command is 0.2.0" in found.found
    assert "fairlead server restart" in found.advice


HOUR = 3600.0


@pytest.mark.parametrize(
    ("age", "every", "want_state", "want_text"),
    [
        pytest.param(None, 0.0, "note", "there is none", id="never"),
        pytest.param(2 * HOUR, 0.0, "ok", "2h0m old", id="by hand"),
        pytest.param(200 * HOUR, 0.0, "note", "8d8h old", id="by hand, long ago"),
        pytest.param(2 * HOUR, 6 * HOUR, "ok", "scheduled every 6h", id="scheduled"),
        pytest.param(13 * HOUR, 6 * HOUR, "missing", "one is due every 6h", id="scheduled, late"),
        pytest.param(None, 6 * HOUR, "missing", "there is none, but one is due", id="scheduled, none"),
    ],
)
def test_backups_are_judged_by_their_age(age: float | None, every: float, want_state: str, want_text: str) -> None:
    found = judge_backup(age, every, "Back up now")
    assert found.state == want_state
    assert want_text in found.found
    assert bool(found.advice) is (want_state != "ok")


def test_the_advice_for_backups_keeps_the_flags_of_the_server(tmp_path: Path) -> None:
    advice = findings(tmp_path, ["--node", "lab:cpu=8,gpus=2", "--port", "8000"])["Backup"].advice
    assert " -- --node lab:cpu=8,gpus=2 --port 8000 --backup-every 6h --keep 14" in advice


def said_about_gpus(folder: Path, flags: list[str]) -> str:
    invocation = invocation_in(folder, flags)
    run_doctor(invocation, Checks(machine=lambda folder, is_personal: [judge_gpus((), 0)]))
    said: str = invocation.environment.stdout.getvalue()  # type: ignore[attr-defined] # it is a StringIO
    return said.partition("GPUs")[2]


def test_the_advice_to_declare_gpus_keeps_the_flags_of_the_server(tmp_path: Path) -> None:
    said = said_about_gpus(tmp_path, ["--port", "8000"])
    assert "fairlead server restart -- --port 8000 --node lab:cpu=8,memory=16G,gpus=2" in said


def test_a_server_with_declared_nodes_needs_no_advice_to_declare_some(tmp_path: Path) -> None:
    said = said_about_gpus(tmp_path, ["--node", "lab:cpu=8,gpus=2"])
    assert said.strip() == "this machine has none; the server has declared nodes (--node)"


def test_a_server_elsewhere_is_not_to_be_started_here(tmp_path: Path) -> None:
    invocation = invocation_in(tmp_path, [])
    with socket.socket() as silent:
        # Bound, so that nobody else gets the port, and not listening.
        silent.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        invocation.environment.environ["FAIRLEAD_URL"] = url  # type: ignore[index] # it is a dictionary
        found = {each.what: each for each in check_server(invocation)}
    assert found.keys() == {"Server", "Version"}
    assert (found["Server"].state, found["Server"].found) == ("missing", f"does not answer at {url}, as configured")


def test_a_server_in_the_foreground_is_not_to_be_restarted_in_the_background(tmp_path: Path) -> None:
    invocation = invocation_in(tmp_path, ["--port", "8000"])
    # A process whose command line is that of `fairlead serve`.
    with subprocess.Popen([sys.executable, "-c", "input()", "serve"], stdin=subprocess.PIPE) as process:
        content = {"url": "http://127.0.0.1:1", "pid": process.pid, "version": "0.0.1"}
        (tmp_path / "server.json").write_text(json.dumps(content))
        found = {each.what: each for each in check_server(invocation)}
        process.kill()
    assert "stop the server, then start it with fairlead serve --port 8000 --backup-every 6h" in found["Backup"].advice
    assert found["Version"].advice.endswith("where `fairlead serve` was started")
