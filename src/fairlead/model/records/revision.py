"""One state of the spec of a workload that is updated while it serves, and how far it has come.

`control` makes a new one when a change means other pods. The workload's record holds those that still have pods; the
store keeps all of them.
"""

from enum import StrEnum

import msgspec

from fairlead.model.clock import Millis
from fairlead.model.records.phase import Phase


class Stage(StrEnum):
    """Where a revision stands among the others."""

    #: Its pods start; requests still go to the one before.
    STARTING = "Coming"
    SERVING = "Serving"
    #: Its pods end: another one serves, or it has failed.
    DRAINING = "Leaving"


class Revision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    version: int
    workload_id: str
    project_id: str
    #: 1, and one more with every change that means other pods.
    number: int
    name: str
    spec: msgspec.Raw
    node_pools: tuple[str, ...] = ()
    stage: Stage = Stage.STARTING
    #: How many pods of each of its scaled sets are wanted now.
    replicas: int = 0
    created_at: Millis = 0
    #: Since when the time that it has to get ready counts, and since when it serves.
    started_at: Millis | None = msgspec.field(default=None, name="begun_at")
    serving_since: Millis | None = None
    #: Since when its load asks for fewer pods, and the most that it has asked for in that time.
    low_since: Millis | None = None
    low_peak: int = msgspec.field(default=0, name="low_most")
    phase: Phase = Phase.PENDING
    phase_message: str = ""
    phase_updated_at: Millis = 0
