"""A revision: one version of the spec of a workload that is updated while it serves, and the progress of its rollout.

`control` creates one for every change that needs new pods. The workload's record holds those that still have pods;
the store keeps all of them.
"""

from enum import StrEnum

import msgspec

from fairlead.model.clock import Millis
from fairlead.model.records.phase import Phase


class Stage(StrEnum):
    """The stage of a revision in a rollout."""

    #: Its pods start; requests still go to the previous revision.
    STARTING = "Coming"
    SERVING = "Serving"
    #: Its pods are stopped: another revision serves, or it has failed.
    DRAINING = "Leaving"


class Revision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    version: int
    workload_id: str
    project_id: str
    #: 1 for the first, and one more for every change that needs new pods.
    number: int
    name: str
    spec: msgspec.Raw
    node_pools: tuple[str, ...] = ()
    stage: Stage = Stage.STARTING
    #: The desired number of pods in each of its scaled sets.
    replicas: int = 0
    created_at: Millis = 0
    #: When its initialization timeout began to count, and since when it serves.
    started_at: Millis | None = msgspec.field(default=None, name="begun_at")
    serving_since: Millis | None = None
    #: Since when its load needs fewer pods, and the most pods that it has needed in that time.
    low_since: Millis | None = None
    low_peak: int = msgspec.field(default=0, name="low_most")
    phase: Phase = Phase.PENDING
    phase_message: str = ""
    phase_updated_at: Millis = 0
