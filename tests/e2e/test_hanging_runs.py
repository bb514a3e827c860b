"""A test that hangs, and a process of tests that dies: both fail one test, and the run goes on and ends."""

import subprocess
from pathlib import Path

import pytest

from tests.pytest_runs import ROOT, run_pytest

#: One of several tests does `fault`; every other one writes down that it ran.
TESTS = """
import os
import signal
import threading

import pytest

@pytest.mark.parametrize("number", range(12))
def test_it(number, request):
    if number == {number}:
        {fault}
    with open("ran.txt", "a") as file:
        file.write(f"{{number}}\\n")
"""
NUMBER = 4


def run_with(fault: str, folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """With the settings of this project, but for the seconds."""
    (folder / "test_it.py").write_text(TESTS.format(number=NUMBER, fault=fault))
    settings = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder)]
    seconds = ["-o", "timeout=2", "-o", "faulthandler_timeout=6"]
    return run_pytest(folder, *settings, *seconds, "-p", "tests.workers", *options, "test_it.py")


def assert_only_that_test_failed(folder: Path, run: "subprocess.CompletedProcess[str]") -> None:
    assert run.returncode == 1, run.stdout + run.stderr
    assert "1 failed, 11 passed" in run.stdout, run.stdout + run.stderr
    ran = sorted(int(line) for line in (folder / "ran.txt").read_text().splitlines())
    assert ran == [number for number in range(12) if number != NUMBER]


@pytest.mark.parametrize("options", [(), ("-n", "2", "--dist", "loadgroup")], ids=["one process", "two processes"])
def test_a_test_that_hangs_fails_with_its_stack(tmp_path: Path, options: tuple[str, ...]) -> None:
    run = run_with("threading.Event().wait()", tmp_path, *options)
    assert_only_that_test_failed(tmp_path, run)
    assert "Timeout (>2.0s) from pytest-timeout" in run.stdout
    assert "threading.Event().wait()" in run.stdout


def test_a_test_that_no_signal_reaches_ends_its_process_with_its_stack(tmp_path: Path) -> None:
    fault = "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM}); threading.Event().wait()"
    run = run_with(fault, tmp_path, "-n", "2", "--dist", "loadgroup")
    assert_only_that_test_failed(tmp_path, run)
    assert f"crashed while running 'test_it.py::test_it[{NUMBER}]'" in run.stdout
    assert 'test_it.py", line 11 in test_it' in run.stderr


@pytest.mark.parametrize("dist", ["loadgroup", "loadfile"])
def test_a_run_continues_after_a_process_died(tmp_path: Path, dist: str) -> None:
    run = run_with("os.kill(os.getpid(), signal.SIGKILL)", tmp_path, "-n", "2", "--dist", dist)
    assert_only_that_test_failed(tmp_path, run)
    assert f"crashed while running 'test_it.py::test_it[{NUMBER}]'" in run.stdout
