"""What the engine knows of one attempt while it lasts. Kept in memory; the attempt's files outlive it."""

from fairlead.engines.base import PodReport, PodState, Stop
from fairlead.engines.local.attempts import Key
from fairlead.engines.local.supervisor.link import Link
from fairlead.model.clock import Millis
from fairlead.model.pods.podset import PodSpec

ENDED = frozenset({PodState.EXITED, PodState.LOST})


class PodAttempt:
    """What the engine knows of one attempt."""

    __slots__ = ("forget", "key", "link", "pod", "record", "report", "stop", "tries")

    def __init__(self, key: Key, report: PodReport, pod: PodSpec | None = None, record: bytes = b"") -> None:
        self.key = key
        self.report = report
        #: The spec, as long as it may have to be launched again.
        self.pod = pod
        #: What its journal keeps of it for a server that has lost its records.
        self.record = record
        self.link: Link | None = None
        self.tries = 0
        #: The last stop, sent again to the next supervisor.
        self.stop: Stop | None = None
        #: Set when it should be forgotten as soon as it ends: whether its logs go too.
        self.forget: bool | None = None

    @property
    def has_ended(self) -> bool:
        return self.report.state in ENDED

    def failed_to_start(self, why: str, now: Millis) -> PodReport:
        """The report of an attempt that could not be started."""
        return PodReport(
            pod_id=self.key[0],
            workload_id=self.report.workload_id,
            attempt=self.key[1],
            state=PodState.EXITED,
            started_at=now,
            ended_at=now,
            exit_code=128,
            reason="StartError",
            message=why,
        )
