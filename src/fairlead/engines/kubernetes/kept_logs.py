"""The output of pods that are gone from the cluster, in files of the data folder: one per pod, with the lines' times.

A cluster deletes the output of a pod with the pod. So it is read when a pod has ended, and from a pod that is being
deleted while it still runs. Made by the configuration; the engine tells it about pods and asks it for output.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from fairlead.engines.base import LogRequest
from fairlead.engines.kubernetes.client import objects
from fairlead.model.clock import Millis
from fairlead.model.errors import FairleadError, NotFound

log = logging.getLogger(__name__)

#: The most bytes that are kept of one pod: the last ones.
_MAX_BYTES_PER_POD = 10 << 20
#: Pods whose output is read at the same time.
_AT_ONCE = 64
_ENDED = ("Succeeded", "Failed")

#: The output of a pod, of its latest attempt.
StreamLogs = Callable[[objects.Pod, LogRequest], AsyncIterator[bytes]]
Spawn = Callable[[Coroutine[None, None, None]], object]


class KeptLogs:
    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        #: By the id of a pod: the file of its output. Those that are being written are not among them.
        self._files = {path.name.split(".")[0]: path for path in folder.glob("*.log")}
        self._writing: set[str] = set()
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        for part in folder.glob("*.part"):
            part.unlink()

    def notice(self, pod: objects.Pod, stream: StreamLogs, spawn: Spawn) -> None:
        """Keep the output of a pod that has ended or is being deleted, once."""
        id, is_ended = pod.metadata.uid, pod.status.phase in _ENDED
        is_leaving = is_ended or pod.metadata.deletion_timestamp is not None
        if is_leaving and _has_started(pod) and id not in self._files and id not in self._writing:
            self._writing.add(id)
            spawn(self._keep(pod, stream, follows=not is_ended))

    async def _keep(self, pod: objects.Pod, stream: StreamLogs, *, follows: bool) -> None:
        id, attempt = pod.metadata.uid, 1 + max((one.restart_count for one in pod.status.container_statuses), default=0)
        part, whole = self._folder / f"{id}.part", self._folder / f"{id}.{attempt}.log"
        try:
            async with self._at_once:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                with contextlib.closing(_LastBytes(part)) as file:
                    async for piece in stream(pod, LogRequest(pod_id=id, follow=follows, timestamps=True)):
                        file.write(piece)
                part.replace(whole)
                self._files[id] = whole
        except (FairleadError, OSError) as error:
            # It may have been deleted too fast, with its node, or by force.
            log.info("Cannot keep the output of pod %s: %s", pod.metadata.name, error)
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
        finally:
            self._writing.discard(id)

    # Reading

    def has(self, pod_id: str) -> bool:
        return pod_id in self._files

    async def read(self, request: LogRequest) -> AsyncIterator[bytes]:
        path = self._files.get(request.pod_id)
        attempt = int(path.name.split(".")[1]) if path is not None else 0
        if path is None or request.attempt not in (None, attempt):
            raise NotFound("The pod was deleted from the cluster, and the output of this attempt was not kept")
        yield select(await asyncio.to_thread(path.read_bytes), request)

    # Retention

    def drop(self, pod_ids: Collection[str]) -> None:
        for id in pod_ids:
            if path := self._files.pop(id, None):
                path.unlink(missing_ok=True)

    def expire(self, before: Millis) -> int:
        """Delete what is older, and then the oldest until the rest fits; returns the number of pods."""
        ages = sorted((path.stat().st_mtime, path.stat().st_size, id) for id, path in self._files.items())
        total, expired = sum(size for _, size, _ in ages), []
        for modified, size, id in ages:
            if modified * 1000 >= before and total <= self._most_bytes:
                break
            total -= size
            expired.append(id)
        self.drop(expired)
        return len(expired)


def _has_started(pod: objects.Pod) -> bool:
    """Whether a container has run, so that there is output."""
    states = [state for one in pod.status.container_statuses for state in (one.state, one.last_state)]
    return any(state.running is not None or state.terminated is not None for state in states)


class _LastBytes:
    """A file with the last part of what is written, from the beginning of a line."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "w+b", opener=_private)  # noqa: SIM115 - `close` closes it

    def write(self, piece: bytes) -> None:
        self._file.write(piece)
        if self._file.tell() > 2 * _MAX_BYTES_PER_POD:
            self._shorten()

    def _shorten(self) -> None:
        self._file.seek(-_MAX_BYTES_PER_POD, os.SEEK_END)
        last_lines = self._file.read().partition(b"\n")[2]
        self._file.seek(0)
        self._file.write(last_lines)
        self._file.truncate()

    def close(self) -> None:
        with self._file:
            if self._file.tell() > _MAX_BYTES_PER_POD:
                self._shorten()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def select(output: bytes, request: LogRequest) -> bytes:
    """What is asked for of an output whose lines begin with their times."""
    lines: list[bytes] = output.splitlines(keepends=True)
    if request.since is not None:
        lines = list(_since(lines, datetime.fromtimestamp(request.since / 1000, UTC)))
    if request.tail is not None:
        lines = lines[-request.tail :] if request.tail else []
    if not request.timestamps:
        lines = [line.partition(b" ")[2] for line in lines]
    return b"".join(lines)[: request.limit_bytes]


def _since(lines: Iterable[bytes], start: datetime) -> Iterator[bytes]:
    for line in lines:
        try:
            at = datetime.fromisoformat(line.partition(b" ")[0].decode())
        except ValueError:
            # Not a line of its own: it belongs to the one before it.
            at = start
        if at >= start:
            yield line
