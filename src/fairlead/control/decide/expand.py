"""Expands a workload's spec into pod sets; of a workload with revisions, into those of each revision. Pure.

Called by the board and by reads. The role of a revision's set ends in the revision's number, so that everything that
reads sets and pods by role keeps the revisions apart without knowing about them.
"""

from functools import lru_cache
from typing import Any

import msgspec

from fairlead.kinds import KINDS
from fairlead.kinds.kind import read_stored_spec
from fairlead.model.clock import SECOND, Millis
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.revision import Revision, Stage
from fairlead.model.records.workload import Workload

_MARK = "@"


class ExpandedSpec(msgspec.Struct, frozen=True):
    """What follows from a spec alone."""

    podsets: tuple[PodSet, ...]
    #: How long a finished workload stays before it deletes itself; None: for ever.
    lifetime_after_end: Millis | None
    #: How many preemptions it may have before it fails; None: any number.
    max_preemptions: int | None


@lru_cache(maxsize=1024)
def expand_spec(kind_key: str, spec_text: bytes) -> ExpandedSpec:
    """Cached, because sweeps and scripts submit the same spec again and again."""
    kind = KINDS[kind_key]
    spec: Any = read_stored_spec(kind, spec_text)
    lifetime = kind.lifetime_after_end(spec)
    return ExpandedSpec(kind.podsets(spec), None if lifetime is None else lifetime * SECOND, kind.max_preemptions(spec))


def podsets_of(workload: Workload) -> tuple[PodSet, ...]:
    """The pod sets of which a workload has or wants pods."""
    if not workload.revisions:
        return expand_spec(workload.kind, bytes(workload.spec)).podsets
    return tuple(podset for revision in workload.revisions for podset in podsets_of_revision(workload.kind, revision))


def podsets_of_revision(kind: str, revision: Revision) -> tuple[PodSet, ...]:
    podsets = []
    for podset in expand_spec(kind, bytes(revision.spec)).podsets:
        count = podset.count if podset.scaling is None else revision.replicas
        podsets.append(
            msgspec.structs.replace(
                podset,
                role=f"{podset.role}{_MARK}{revision.number}",
                count=0 if revision.stage is Stage.DRAINING else count,
                revision=revision.number,
                stage=revision.stage,
            )
        )
    return tuple(podsets)


def base_role(role: str) -> str:
    """The role as the kind calls it."""
    return role.partition(_MARK)[0]
