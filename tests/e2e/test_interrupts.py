"""Tests of Ctrl-C hold in every run of the suite, also in one that ignores the signal itself."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHOWS_HANDLER = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
#: Runs the words after it as nohup and many CI runners do.
IGNORING = ("sh", "-c", "trap '' INT; exec \"$@\"", "sh")


def test_programs_that_tests_start_hear_ctrl_c() -> None:
    shown = subprocess.run([sys.executable, "-c", SHOWS_HANDLER], capture_output=True, text=True, check=True)
    assert shown.stdout == "True\n"


def test_also_in_a_run_that_ignores_it() -> None:
    test = f"{__file__}::{test_programs_that_tests_start_hear_ctrl_c.__name__}"
    # The inner run is no part of the outer one's: neither a worker of it nor a writer of its cache.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    words = [*IGNORING, sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", test]
    done = subprocess.run(words, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
