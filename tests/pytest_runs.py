"""Runs of pytest inside a test, for what this project adds to it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run_pytest(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run the tests of a folder, with no other plugins than ours need: each process would load them for two seconds."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environ |= {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "xdist", "-p", "pytest_timeout", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
