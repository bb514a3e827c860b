"""What an engine shows of one workload, in the form in which the phase machine reads it. Pure.

Two kinds: `PodObservation` of engines of single pods (`pods/reports.py`) and `ClusterObservation` of engines of whole
workloads (`cluster/reports.py`). The machine asks both the same; the pods themselves are written into the draft.
"""

from collections.abc import Callable, Mapping

import msgspec

from fairlead.control.decide.autoscale import Load
from fairlead.control.decide.draft import Draft
from fairlead.kinds.kind import Outcome
from fairlead.model.records.phase import TERMINAL
from fairlead.model.records.workload import Pod


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """Here are the answers if there is nothing to say or to do; each kind has its own where it differs."""

    #: Beyond pods that we control: nothing is left except claims; not even those.
    has_no_pods: bool = True
    is_removed: bool = True
    #: Why the engine rejects it for good, and why it has not accepted it yet.
    refused: str = ""
    retrying_because: str = ""
    #: By role, how many pods the engine wants of sets that it scales itself; None if it scales none.
    replicas_wanted: Mapping[str, int] | None = None
    #: How the last failed pod that still exists ended; and the same, if its replacement does not exist yet.
    last_failure: str = ""
    unreplaced_failure: str = ""
    #: Why a placed pod does not start.
    starting_message: str = ""
    #: How far the upload of a pod's changes is, whose program has ended.
    uploading_message: str = ""
    #: A pod has succeeded that its job has not counted yet: what follows is the job's to say.
    has_uncounted_success: bool = False

    def controlled_pods(self, draft: Draft) -> list[Pod]:
        """The pods that we start and stop."""
        return []

    def shows(self, run: int) -> bool:
        """Whether what is observed belongs to this run."""
        return True

    def find_end(self, outcome: Outcome | None, run: int) -> Outcome | None:
        """How the workload has ended, if it has. `outcome` is what its pods amount to."""
        return outcome if outcome is not None and outcome.phase in TERMINAL else None

    def leaves_open(self, outcome: Outcome | None) -> bool:
        """Whether pods have ended of which the consequence is not known yet."""
        return False

    def is_scaling_from_zero(self, draft: Draft) -> bool:
        """Whether it had no pods because there were no requests, and nothing is known to block the next pod."""
        return False

    def stop_unwanted(self, draft: Draft, has_node: Callable[[str], bool], load: Load) -> None:
        """Stop pods that should no longer run where they are, or at all."""

    def forget_evicted(self, draft: Draft) -> None:
        """All evicted pods have ended; the workload starts again."""

    def follow_up(self, draft: Draft) -> None:
        """What is to be done once the phase is set."""
