"""The demo does what it says with real processes, in time, and leaves nothing behind, interrupted or not."""

import os
import signal
import subprocess
from pathlib import Path

from tests.e2e.cli_calls import COMMAND, surroundings
from tests.e2e.server import until


def start(folder: Path) -> "subprocess.Popen[str]":
    places = folder / "places"
    places.mkdir()
    environment = surroundings(folder / "data", TMPDIR=str(places))
    return subprocess.Popen([*COMMAND, "demo"], stdout=subprocess.PIPE, text=True, env=environment, cwd=folder)


def leftovers(folder: Path) -> list[str]:
    """Files below the temporary folder, and processes that know it."""
    needle, found = str(folder / "places").encode(), [str(path) for path in (folder / "places").iterdir()]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if needle in text:
                found.append(f"process {entry.name}")
    return found


def test_the_whole_demo(tmp_path: Path) -> None:
    demo = start(tmp_path)
    out, _ = demo.communicate(timeout=300)
    assert demo.returncode == 0, out
    assert "project team-a was 4 GPUs over its quota of 4" in out
    assert "stopping: saving a checkpoint" in out
    assert "Workloads that use what it waits for" in out
    assert "Cleaned up: " in out
    assert leftovers(tmp_path) == []
    assert not (tmp_path / "data").exists(), "the user's own data folder is not touched"


def test_interrupted_in_the_middle(tmp_path: Path) -> None:
    demo = start(tmp_path)
    assert demo.stdout is not None
    for line in demo.stdout:
        if line.startswith("Reclaiming"):
            break
    until(lambda: leftovers(tmp_path), "something to clean up")
    demo.send_signal(signal.SIGINT)
    demo.communicate(timeout=300)
    assert demo.returncode == 130
    assert leftovers(tmp_path) == []
