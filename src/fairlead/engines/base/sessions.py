"""The seam to what people open into pods, and to the output that is kept of ended ones.

Implemented by engines beside their three verbs; `control` passes requests of the API on to it.
"""

from collections.abc import AsyncIterator, Collection
from typing import Protocol

import msgspec

from fairlead.model.clock import Millis
from fairlead.model.pods.origin import PodOrigin


class LogRequest(msgspec.Struct, frozen=True, kw_only=True):
    pod_id: str
    origin: PodOrigin | None = None
    #: Which attempt; None for the latest.
    attempt: int | None = None
    follow: bool = False
    #: The number of last lines; None for all that are kept.
    tail: int | None = None
    since: Millis | None = None
    timestamps: bool = False
    limit_bytes: int | None = None


class ExecRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A command to run beside a pod's main process, in its namespaces and as its user."""

    pod_id: str
    command: tuple[str, ...]
    tty: bool = False
    stdin: bool = False
    columns: int = 80
    rows: int = 24


class Session(Protocol):
    """A terminal or pipe to a process in a pod. Closing it ends a command that was started for it."""

    async def read(self) -> tuple[str, bytes]:
        """The next piece: (`output` or `error`, bytes), and last (`exit`, the exit code or nothing)."""
        ...

    async def write(self, data: bytes) -> None: ...

    def close_input(self) -> None:
        """This session sends no more; the pod's own input stays open for others."""
        ...

    def finish_input(self) -> None:
        """Nobody sends more: the pod's own input ends too."""
        ...

    def resize(self, columns: int, rows: int) -> None: ...

    async def close(self) -> None: ...


class Sessions(Protocol):
    """What people open into a pod."""

    def logs(self, request: LogRequest) -> AsyncIterator[bytes]:
        """The output of a pod, while it runs and as long as it is kept afterwards."""
        ...

    async def exec(self, request: ExecRequest) -> Session:
        """Run a command beside the pod's main process."""
        ...

    async def attach(self, pod_id: str, *, from_start: bool = False) -> Session:
        """Attach to the pod's main process: its input, and its output from now on, or from the start if it is kept."""
        ...

    async def dial(self, pod_id: str, port: int) -> int:
        """Connect to a port on which the pod listens, in its own network; returns a socket's file descriptor."""
        ...


class LogStore(Protocol):
    """Keeps the output of ended pods."""

    async def drop_logs(self, pod_ids: Collection[str]) -> None:
        """Remove the output of these pods, and everything else of them."""
        ...

    async def expire_logs(self, before: Millis) -> int:
        """Remove the output of forgotten pods that have written nothing since then; returns the number of pods."""
        ...
