"""Backs the server's data up every few hours, and keeps the newest backups. Created and started by `app`.

`fairlead backup` makes each backup in its own process, and verifies it by a test restore, so that requests and the loop
are not delayed. Only the server that runs the workloads makes backups.
"""

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from fairlead.api.server.metrics import Sample
from fairlead.settings import ServerSettings, find_database
from fairlead.store.last_backup import load_last_backup

log = logging.getLogger(__name__)

#: The longest wait before a backup that failed is tried again, in seconds; and how often a standby server looks.
_RETRY = 600.0
_STANDBY = 5.0
_PATIENCE = 5.0
_LOW_PRIORITY = 10
_PATTERN = "fairlead-*.tar.gz"


class BackupSchedule:
    def __init__(self, settings: ServerSettings, is_in_charge: Callable[[], bool]) -> None:
        self._data_dir = settings.data_dir
        self._folder = Path(settings.backup_dir) if settings.backup_dir else settings.data_dir / "backups"
        self._database = find_database(settings)
        self._every = settings.backup_every
        self._keep = settings.backup_keep
        self._is_in_charge = is_in_charge
        self._failures = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._every:
            self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def samples(self) -> Iterator[Sample]:
        """Metrics: how old the newest backup is, also one that was made by hand."""
        last = load_last_backup(self._data_dir)
        if last:
            text = "Seconds since the newest verified backup"
            yield Sample("fairlead_backup_age_seconds", max(0.0, time.time() - last.time), help=text)
        if self._every:
            text = "Scheduled backups that failed since the start of the server"
            yield Sample("fairlead_backup_failures_total", self._failures, help=text, type="counter")

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._until_due())
            if not self._is_in_charge():
                await asyncio.sleep(_STANDBY)
                continue
            problem = await self._back_up()
            if problem:
                self._failures += 1
                log.error("The scheduled backup failed: %s", problem)
                await asyncio.sleep(min(self._every, _RETRY))

    def _until_due(self) -> float:
        last = load_last_backup(self._data_dir)
        return max(0.0, last.time + self._every - time.time()) if last else 0.0

    async def _back_up(self) -> str:
        """Why it failed; empty if it did not."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            target = self._folder / _name_at(datetime.now(UTC))
            problem = await self._call(target)
            if not problem:
                log.info("Backed up to %s", target)
                self._prune()
        except OSError as error:
            return str(error)
        return problem

    async def _call(self, target: Path) -> str:
        command = [sys.executable, "-m", "fairlead", "backup", "--data-dir", str(self._data_dir), str(target)]
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            # Not as an argument, because everybody on the machine can read those, and a URL may have a password.
            env={**os.environ, "FAIRLEAD_DATABASE": self._database},
        )
        try:
            os.setpriority(os.PRIO_PROCESS, process.pid, _LOW_PRIORITY)
            _, output = await process.communicate()
        except asyncio.CancelledError:
            await _interrupt(process)
            raise
        return (
            output.decode(errors="replace").strip() or f"exit code {process.returncode}" if process.returncode else ""
        )

    def _prune(self) -> None:
        # Their names are times, so the oldest come first.
        for path in sorted(self._folder.glob(_PATTERN))[: -self._keep]:
            path.unlink()


def _name_at(moment: datetime) -> str:
    """With milliseconds, because a small backup takes less than a second."""
    return f"fairlead-{moment:%Y%m%dT%H%M%S}.{moment.microsecond // 1000:03}Z.tar.gz"


async def _interrupt(process: asyncio.subprocess.Process) -> None:
    """End a backup as Ctrl-C does: it deletes what it has written so far."""
    process.send_signal(signal.SIGINT)
    try:
        await asyncio.wait_for(process.communicate(), _PATIENCE)
    except TimeoutError:
        process.kill()
        await process.wait()
