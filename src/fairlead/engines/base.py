"""The seam to whatever runs pods: three verbs, and beside them the sessions that people open into a pod.

An engine acts on orders and reports what it sees. It decides nothing: restarts, retries and phases are `control`'s.
Every order is idempotent by (pod, attempt): a repeated start finds the attempt there, a repeated stop finds it gone.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from fairlead.model.clock import Millis
from fairlead.model.org import Node
from fairlead.model.podset import PodSpec


class Start(msgspec.Struct, frozen=True):
    pod: PodSpec


class Stop(msgspec.Struct, frozen=True):
    """TERM to the main process, after the grace KILL to everything that is left; 0 kills at once."""

    pod_id: str
    attempt: int
    grace_seconds: int


class Forget(msgspec.Struct, frozen=True):
    """The pod has ended and its state is recorded: drop everything of it except its logs, or those too."""

    pod_id: str
    logs_too: bool = False


class DropClaims(msgspec.Struct, frozen=True):
    """Remove the storage behind claims that are gone: these, and the ephemeral ones of a workload without pods."""

    claim_ids: tuple[str, ...] = ()
    workload_id: str = ""


class RetainClaims(msgspec.Struct, frozen=True):
    """After a start: these are all claims and workloads there are; storage that others of them left behind goes."""

    claim_ids: frozenset[str]
    workload_ids: frozenset[str]


Order = Start | Stop | Forget | DropClaims | RetainClaims


class PodState(StrEnum):
    """What an engine sees of one attempt of a pod."""

    STARTING = "Starting"
    RUNNING = "Running"
    EXITED = "Exited"
    #: Whoever watched over it is gone, or the machine was restarted: it ended, and how is not known.
    LOST = "Lost"


class PodReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pod_id: str
    workload_id: str
    attempt: int
    state: PodState
    started_at: Millis | None = None
    ended_at: Millis | None = None
    exit_code: int | None = None
    signal: int | None = None
    #: A code word (StartError, OOMKilled, SupervisorLost, NodeRebooted …) and the words of whoever knows.
    reason: str = ""
    message: str = ""
    #: Whether its readiness probe passes; pods without a probe are ready when they run.
    ready: bool = True
    #: Where its ports are reached from outside: (port of the container, port of this machine).
    ports: tuple[tuple[int, int], ...] = ()


class LogRequest(msgspec.Struct, frozen=True, kw_only=True):
    pod_id: str
    #: Which attempt; None for the latest.
    attempt: int | None = None
    follow: bool = False
    #: The last so many lines; None for all that is kept.
    tail: int | None = None
    since: Millis | None = None
    timestamps: bool = False
    limit_bytes: int | None = None


class ExecRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A command to run beside a pod's own, in its namespaces and as its user."""

    pod_id: str
    command: tuple[str, ...]
    tty: bool = False
    stdin: bool = False
    columns: int = 80
    rows: int = 24


class Review(msgspec.Struct, frozen=True):
    """What an engine says of a pod before it is started, as (path of the field, why)."""

    #: It cannot be provided and may not be ignored: the workload fails before its start.
    refused: tuple[tuple[str, str], ...] = ()
    #: It has no or less effect here; the workload says so in a condition.
    advisory: tuple[tuple[str, str], ...] = ()


class Engine(Protocol):
    """Runs pods. Made with a function to call (from the event loop) whenever there is something new to observe."""

    async def start(self, notify: Callable[[], None]) -> None:
        """Find again whatever still runs from before; from now on call `notify` when something changes."""
        ...

    async def capacity(self) -> Sequence[Node]:
        """The nodes and what each can give."""
        ...

    async def observe(self) -> Sequence[PodReport]:
        """Every pod that changed since the last call; on the first call, every pod that is known."""
        ...

    async def apply(self, orders: Sequence[Order]) -> None:
        """Set the orders going. What comes of them is observed, a failure to start included."""
        ...

    async def close(self) -> None:
        """Let go; pods run on."""
        ...


class Session(Protocol):
    """A running command and whoever looks at it. Closing it hangs up on a command that was run for it."""

    async def read(self) -> tuple[str, bytes]:
        """The next piece: (`output` or `error`, bytes), and at last (`exit`, the code or nothing)."""
        ...

    async def write(self, data: bytes) -> None: ...

    def close_input(self) -> None: ...

    def resize(self, columns: int, rows: int) -> None: ...

    async def close(self) -> None: ...


class Sessions(Protocol):
    """What people open into a pod."""

    def logs(self, request: LogRequest) -> AsyncIterator[bytes]:
        """The output of a pod, while it runs and as long as it is kept afterwards."""
        ...

    async def exec(self, request: ExecRequest) -> Session:
        """Run a command beside the pod's own."""
        ...

    async def attach(self, pod_id: str) -> Session:
        """The pod's own input and its output from now on."""
        ...

    async def dial(self, pod_id: str, port: int) -> int:
        """A connection to a port on which the pod listens, in its own network: a socket's open file, the caller's."""
        ...
