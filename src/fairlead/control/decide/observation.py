"""What an engine shows of one workload, in the form in which the phase machine reads it. Pure.

Made by `pods/reports.py` for engines of single pods and by `cluster/reports.py` for engines of whole workloads. The
pods themselves are written into the draft, where both kinds look alike.
"""

from collections.abc import Mapping

import msgspec

from fairlead.engines.base import SchedulingBlocker
from fairlead.kinds.kind import Outcome


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults are true for every engine of single pods: the pods of the draft are all there is."""

    #: Whether we start and stop the pods. A cluster controls its own, and alone says when a workload is over.
    controls_pods: bool = True
    #: The run whose objects exist; None if the pods are all there is.
    run: int | None = None
    #: Beyond pods that we control: nothing is left except claims; not even those.
    has_no_pods: bool = True
    is_removed: bool = True
    #: How it ended, as the cluster reports it.
    ended: Outcome | None = None
    #: Why the cluster rejects it for good, and why it has not accepted it yet.
    refused: str = ""
    retrying_because: str = ""
    #: Why the cluster's scheduler has not placed it.
    blockers: tuple[SchedulingBlocker, ...] = ()
    #: By role, how many pods the cluster wants of sets that it scales itself.
    replicas_wanted: Mapping[str, int] | None = None
    #: How the last failed pod that still exists ended; and the same, if its replacement does not exist yet.
    last_failure: str = ""
    unreplaced_failure: str = ""
    #: Why a placed pod does not start.
    starting_message: str = ""
    #: How far the upload of a pod's changes is, whose program has ended.
    uploading_message: str = ""
    #: A pod has ended, or succeeded, that its job has not counted yet: what follows is the job's to say.
    has_uncounted_end: bool = False
    has_uncounted_success: bool = False

    def shows(self, run: int) -> bool:
        return self.run is None or self.run == run
