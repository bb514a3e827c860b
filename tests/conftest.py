"""What holds for every test: packages of the system that some need, and a plain word about what was left out; and a
PostgreSQL for those that ask for one.

The set of packages is scripts/system-packages.txt. As root on Debian they can be had, so a missing one is a failure
there; elsewhere its tests are left out and named at the end of the run.
"""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from tests.postgres import PostgresServer

PACKAGES = Path(__file__).parents[1] / "scripts" / "system-packages.txt"
CAN_INSTALL = os.geteuid() == 0 and shutil.which("apt-get") is not None


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A real PostgreSQL for the tests of one process."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


def load_programs() -> dict[str, str]:
    """From each listed package to the program or file that shows it is there."""
    lines = (line.split() for line in PACKAGES.read_text().splitlines())
    return {words[0]: words[1] for words in lines if words and not words[0].startswith("#")}


def is_there(program: str) -> bool:
    return Path(program).is_file() if program.startswith("/") else shutil.which(program) is not None


def pytest_configure() -> None:
    """Let the programs that tests start hear Ctrl-C, also in a run that ignores it (nohup, `make test &`, CI runners).

    Programs inherit that a signal is ignored, but not a handler; so this one changes nothing for the run itself.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, _ignore)


def _ignore(_number: int, _frame: FrameType | None) -> None: ...


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nothing-skipped", action="store_true", help="a test that is left out fails the run")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    programs = load_programs()
    for item in items:
        for mark in item.iter_markers("debian"):
            for package in mark.args:
                if package not in programs:
                    raise pytest.UsageError(f"{item.nodeid} asks for {package}, which {PACKAGES.name} does not list")
                if not CAN_INSTALL and not is_there(programs[package]):
                    item.add_marker(
                        pytest.mark.skip(reason=f"needs {package} (as root on Debian: make system-packages)")
                    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    programs = load_programs()
    for mark in item.iter_markers("debian"):
        missing = [package for package in mark.args if not is_there(programs[package])]
        if missing:
            pytest.fail(f"missing here: {', '.join(missing)}; install with: make system-packages", pytrace=False)


def describe_skipped(terminal: pytest.TerminalReporter) -> dict[str, list[str]]:
    left_out: dict[str, list[str]] = {}
    for report in terminal.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        left_out.setdefault(reason.removeprefix("Skipped: "), []).append(report.nodeid)
    return left_out


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    left_out = describe_skipped(terminalreporter)
    if not left_out:
        return
    terminalreporter.section("left out on this machine")
    for reason, names in sorted(left_out.items()):
        terminalreporter.write_line(f"{len(names)} because: {reason}")
        for name in sorted(names):
            terminalreporter.write_line(f"    {name}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    is_worker = hasattr(session.config, "workerinput")
    if session.config.getoption("--nothing-skipped") and not is_worker and terminal and describe_skipped(terminal):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
