"""What a command takes along from the shell that runs it: an activated Python, variables, piped input."""

import base64
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.cli import exit_codes
from tests.e2e.cli_calls import COMMAND, Caller, surroundings
from tests.e2e.server import Server, until


@pytest.fixture(scope="module")
def fairlead(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    """The command of somebody whose own server runs."""
    base = tmp_path_factory.mktemp("caller")
    (base / "work").mkdir()
    caller = Caller(base / "data", base / "work")
    caller.ok("server", "start")
    yield caller
    caller("server", "stop")
    Server(caller.data_dir).close()


def test_an_activated_environment_is_the_commands_own(fairlead: Caller, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True, timeout=120)
    activated = {"PATH": f"{venv}/bin:/usr/bin:/bin", "VIRTUAL_ENV": str(venv)}
    script = "import os, sys; print(sys.prefix, os.environ['VIRTUAL_ENV'])"
    assert fairlead.ok("run", "--", "python", "-c", script, **activated) == f"{venv} {venv}\n"


@pytest.mark.parametrize(
    ("export", "want"),
    [
        (["--export", "all"], "1 2"),
        ([], "1 2"),
        (["--export", "none"], "- -"),
        (["--export", "ONE"], "1 -"),
        (["--export", "ALL,TWO=other"], "1 other"),
    ],
    ids=["all", "default", "none", "one", "all-and-more"],
)
def test_export_says_which_variables_go_along(fairlead: Caller, export: list[str], want: str) -> None:
    script = 'echo "${ONE:--} ${TWO:--}"'
    assert fairlead.ok("run", *export, "--", "sh", "-c", script, ONE="1", TWO="2") == f"{want}\n"


def test_a_variable_that_is_not_there_is_an_error(fairlead: Caller) -> None:
    called = fairlead("run", "--export", "NOWHERE", "--", "true")
    assert called.code == exit_codes.USAGE, called
    assert "NOWHERE" in called.err


def test_names_are_shown_and_values_are_not(fairlead: Caller) -> None:
    fairlead.ok("run", "--name", "shown", "--", "true", WANDB_API_KEY="hush-4711")
    page = fairlead.ok("describe", "shown")
    assert "WANDB_API_KEY" in page
    assert "hush-4711" not in page
    assert "hush-4711" not in fairlead.ok("training", "describe", "shown", "--json")
    stored = b"".join(path.read_bytes() for path in fairlead.data_dir.glob("fairlead.db*"))
    assert b"hush-4711" not in stored
    assert base64.b64encode(b"hush-4711") not in stored


def test_piped_input_reaches_the_command(fairlead: Caller) -> None:
    assert fairlead.ok("run", "--", "cat", stdin="x\n") == "x\n"
    assert fairlead.ok("run", "--input", "none", "--", "cat", stdin="x\n") == ""
    assert fairlead.ok("run", "--", "wc", "-c", stdin="y" * 2_000_000).strip() == "2000000"


def test_input_that_continues_is_passed_on_as_it_comes(fairlead: Caller) -> None:
    process = subprocess.Popen(
        [*COMMAND, "run", "--", "sh", "-c", "while read -r word; do echo got $word; done"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=surroundings(fairlead.data_dir),
        cwd=fairlead.folder,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for word in ("one", "two"):
        process.stdin.write(f"{word}\n")
        process.stdin.flush()
        assert process.stdout.readline() == f"got {word}\n"
    process.stdin.close()
    assert process.wait(timeout=180) == 0
    process.stdout.close()


def test_input_that_continues_cannot_be_kept_for_the_background(fairlead: Caller) -> None:
    called = fairlead("run", "--detach", "--", "cat", stdin="y" * 2_000_000)
    assert called.code == exit_codes.USAGE, called
    assert "input" in called.err


def test_variables_and_input_survive_the_server_and_a_new_run(fairlead: Caller) -> None:
    script = 'cat; echo "$WHO"; sleep 600'
    fairlead.ok("run", "--detach", "--name", "kept", "--", "sh", "-c", script, stdin="piped\n", WHO="ann")
    fairlead.ok("wait", "kept", "--for", "Running", "--timeout", "60s")
    fairlead.ok("training", "suspend", "kept")
    fairlead.ok("wait", "kept", "--for", "Stopped", "--timeout", "60s")
    fairlead.ok("server", "restart")
    fairlead.ok("training", "resume", "kept")
    fairlead.ok("wait", "kept", "--for", "Running", "--timeout", "60s")
    assert until(lambda: fairlead.ok("logs", "kept") == "piped\nann\n", "the output of the second run")
    fairlead.ok("training", "delete", "kept")


@pytest.mark.parametrize("words", [("run", "--", "true"), ("server", "start"), ("restore", "backup.tar.gz")])
def test_a_data_folder_that_cannot_be_written_is_named(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "file").touch()
    nowhere = tmp_path / "file" / "folder"
    refused = Caller(tmp_path / "data")(*words, FAIRLEAD_DATA_DIR=str(nowhere))
    assert refused.code in (exit_codes.FAILED, exit_codes.RUN_FAILED), refused
    assert f"The data folder {nowhere} cannot be used: Not a directory" in refused.err
    assert "Traceback" not in refused.err


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    refused = Caller(tmp_path / "data")("config", "set", "url", "http://127.0.0.1:9", HOME="/proc/none")
    assert refused.code == exit_codes.FAILED
    assert (
        refused.err
        == "fairlead: /proc/none/.config/fairlead/config.json cannot be written: No such file or directory.\n"
    )
