"""A pytest plugin of `make test` and `make test-kubernetes`: what failed runs once more, to tell flaky from broken.

`--first-run FILE` notes what failed. `--second-run FILE` runs only that. A test that passes then is flaky: it is listed
at the end and added to `.tools/flaky-tests.txt`, and more than `ALLOWED` of them fail the run.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest

ALLOWED = 3


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("flaky tests")
    group.addoption("--first-run", type=Path, metavar="FILE", help="write the tests that fail into FILE")
    group.addoption("--second-run", type=Path, metavar="FILE", help="run only the tests that FILE lists")
    group.addoption("--flaky-file", type=Path, metavar="FILE", default=Path(".tools/flaky-tests.txt"))


def pytest_configure(config: pytest.Config) -> None:
    first, second = config.getoption("first_run"), config.getoption("second_run")
    if second:
        noted = json.loads(second.read_text())
        config.pluginmanager.register(Selection(noted))
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(SecondRun(noted, config.getoption("flaky_file")))
    elif first and not hasattr(config, "workerinput"):
        first.unlink(missing_ok=True)
        config.pluginmanager.register(FirstRun(first))


class Failures:
    """What failed in this run, and its last words; what was run at all."""

    def __init__(self) -> None:
        self.failed: dict[str, str] = {}
        self.seen: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seen.add(report.nodeid)
        if report.failed:
            self.failed.setdefault(report.nodeid, describe(report))


class FirstRun(Failures):
    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        super().pytest_runtest_logreport(report)
        if report.failed:
            # Whoever watches a long run can read it before its end.
            self._write()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self._write()

    def _write(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(self.failed, indent=1))


class Selection:
    """Also in the processes that run the tests."""

    def __init__(self, noted: Iterable[str]) -> None:
        self._noted = set(noted)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left_out = [item for item in items if not self._is_noted(item.nodeid)]
        items[:] = [item for item in items if self._is_noted(item.nodeid)]
        config.hook.pytest_deselected(items=left_out)

    def _is_noted(self, nodeid: str) -> bool:
        """xdist adds `@` and its group to the names that it reports."""
        return nodeid in self._noted or any(noted.startswith(f"{nodeid}@") for noted in self._noted)


class SecondRun(Failures):
    def __init__(self, noted: dict[str, str], file: Path) -> None:
        super().__init__()
        self._noted = noted
        self._file = file

    @property
    def _flaky(self) -> dict[str, str]:
        return {name: words for name, words in self._noted.items() if name in self.seen - self.failed.keys()}

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._flaky:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            day = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
            with self._file.open("a") as file:
                file.writelines(f"{day} {name} {words}\n" for name, words in self._flaky.items())
        if session.exitstatus == pytest.ExitCode.OK and (len(self._flaky) > ALLOWED or self._noted.keys() - self.seen):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._flaky:
            return
        terminalreporter.section(f"flaky: failed, then passed (added to {self._file})")
        for name, words in self._flaky.items():
            terminalreporter.write_line(f"{name} {words}")
        if len(self._flaky) > ALLOWED:
            terminalreporter.write_line(
                f"{len(self._flaky)} tests are flaky; more than {ALLOWED} fail the run", red=True
            )


def describe(report: pytest.TestReport) -> str:
    """The first line of why it failed."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = str(crash.message if crash else report.longrepr).strip().splitlines()
    return f"({report.when}) {lines[0][:200] if lines else ''}"
