"""How the scripts run what failed once more: flaky tests are named and kept, and too many of them fail the run."""

import subprocess
from pathlib import Path

import pytest

from tests.pytest_runs import run_pytest

#: Fails the first time when it is flaky, every time when it is broken.
TESTS = """
import pytest
from pathlib import Path

@pytest.mark.parametrize("number", range({flaky}))
@pytest.mark.xdist_group("together")
def test_flaky(number, request):
    mark = Path(__file__).with_name(f"ran-{{number}}")
    was_there = mark.exists()
    mark.touch()
    assert was_there, "the mark"

@pytest.mark.parametrize("number", range({broken}))
def test_broken(number):
    assert number < 0

def test_good():
    mark = Path(__file__).with_name("good")
    assert not mark.exists()
    mark.touch()
"""


class Runs:
    """Both runs, as the scripts call them, of one file of tests."""

    def __init__(self, folder: Path, flaky: int, broken: int) -> None:
        (folder / "pytest.ini").write_text("[pytest]\n")
        (folder / "test_it.py").write_text(TESTS.format(flaky=flaky, broken=broken))
        self.folder = folder
        self.kept = folder / "flaky.txt"

    def run(self, which: str) -> "subprocess.CompletedProcess[str]":
        words = ["-p", "tests.flaky", "-n", "1", "--dist", "loadgroup", f"--{which}-run", "failures.json", "test_it.py"]
        return run_pytest(self.folder, "--flaky-file", str(self.kept), *words)


@pytest.mark.parametrize(
    ("flaky", "broken", "want_code"),
    [(2, 0, 0), (3, 0, 0), (4, 0, 1), (1, 1, 1)],
    ids=["some are flaky", "as many as are allowed", "too many", "one is broken"],
)
def test_flaky_tests_are_named_and_kept(tmp_path: Path, flaky: int, broken: int, want_code: int) -> None:
    runs = Runs(tmp_path, flaky, broken)
    assert runs.run("first").returncode == 1
    second = runs.run("second")
    assert second.returncode == want_code, second.stdout
    lines = runs.kept.read_text().splitlines()
    assert len(lines) == flaky
    for number, line in enumerate(lines):
        assert f"test_it.py::test_flaky[{number}]" in line
        assert line.endswith("(call) AssertionError: the mark"), line
        assert line.partition("test_it")[2] in second.stdout


def test_a_run_that_failed_without_a_failed_test_is_not_saved_by_a_second(tmp_path: Path) -> None:
    runs = Runs(tmp_path, 0, 0)
    (tmp_path / "test_it.py").write_text("import nothing_of_that_name\n")
    assert runs.run("first").returncode != 0
    assert runs.run("second").returncode != 0
    assert not runs.kept.exists()
