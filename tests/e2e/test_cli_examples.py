"""Every example, as its README says to run it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.cli_calls import Caller, surroundings
from tests.e2e.server import Server

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def fairlead(server: Server) -> Caller:
    return Caller(server.data_dir)


def run(server: Server, tmp_path: Path, *arguments: str) -> str:
    """An example as a process, with a `fairlead` command on its path."""
    command = tmp_path / "fairlead"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fairlead "$@"\n')
    command.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    environ = surroundings(server.data_dir, PATH=path)
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=180, env=environ, check=False)
    assert done.returncode == 0, done
    return done.stdout


def test_hello_sh(server: Server, tmp_path: Path) -> None:
    shown = run(server, tmp_path, str(EXAMPLES / "hello.sh"))
    assert shown == "hello from hello-1 in project default\n"


def test_hello_json(fairlead: Caller) -> None:
    name, line = fairlead.ok("training", "submit", "-f", str(EXAMPLES / "hello.json"), "--attach").splitlines()
    assert line == f"hello from {name}"


def test_sweep_json(fairlead: Caller) -> None:
    name = fairlead.ok("training", "submit", "-f", str(EXAMPLES / "sweep.json")).strip()
    assert fairlead("wait", name, "--timeout", "120s").code == 0
    lines = {fairlead.ok("logs", name, "--pod", f"{name}-0-{number}").strip() for number in range(6)}
    assert lines == {f"learning rate {0.1 / 2**number}" for number in range(6)}


def test_retry_json(fairlead: Caller) -> None:
    name = fairlead.ok("training", "submit", "-f", str(EXAMPLES / "retry.json")).strip()
    assert fairlead("wait", name, "--timeout", "120s").code == 0
    assert fairlead.ok("logs", name) == "try 3\n"


def test_workload_yaml(fairlead: Caller) -> None:
    file = str(EXAMPLES / "workload.yaml")
    assert fairlead.ok("apply", "-f", file) == "python-small: template created\nhello-yaml: submitted\n"
    assert fairlead("wait", "hello-yaml", "--timeout", "60s").code == 0
    assert fairlead.ok("logs", "hello-yaml") == "hello from workload YAML\n"
    assert fairlead.ok("apply", "-f", file) == "python-small: template unchanged\nhello-yaml: unchanged\n"
    assert fairlead.ok("convert", file, "--to", "flags").startswith("fairlead training submit hello-yaml -p default")


@pytest.mark.parametrize(
    ("script", "want"),
    [
        pytest.param("rest.py", r"Completed\nhello over REST\n", id="rest"),
        pytest.param("sdk.py", r"hello from the SDK\nCompleted\n", id="sdk"),
        pytest.param("runapy_training.py", r"runapy-\w+ Completed\n", id="runapy"),
    ],
)
def test_python_examples(server: Server, tmp_path: Path, script: str, want: str) -> None:
    shown = run(server, tmp_path, sys.executable, str(EXAMPLES / script))
    assert re.fullmatch(want, shown), shown


def test_the_readme_names_every_example() -> None:
    named = set(re.findall(r"^\| `([^`]+)` \|", (EXAMPLES / "README.md").read_text(), re.MULTILINE))
    there = {f"{path.name}/" if path.is_dir() else path.name for path in EXAMPLES.iterdir()}
    assert named == there - {"README.md", "ruff.toml"}
