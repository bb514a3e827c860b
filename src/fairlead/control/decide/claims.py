"""Which claims go with a workload. Pure.

Ephemeral claims go whenever a workload stops or ends. Other claims that a workload created go with its record; the loop
deletes both in one transaction.
"""

from collections.abc import Iterable, Iterator

from fairlead.control.decide.draft import Draft
from fairlead.model.pods.container_fields import ClaimMount
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.phase import TERMINAL, Phase


def _claims(podsets: Iterable[PodSet]) -> Iterator[ClaimMount]:
    for podset in podsets:
        yield from podset.container.fields.storage.pvc


def makes_claims(podsets: Iterable[PodSet]) -> bool:
    """Whether a spec asks for claims that go when its workload is deleted."""
    return any(not claim.existing_pvc and not claim.ephemeral for claim in _claims(podsets))


def releases_ephemeral_claims(draft: Draft) -> bool:
    """Whether ephemeral claims go now: the workload has just stopped or ended, and no pod is left that mounts them."""
    workload, before = draft.workload, draft.entry
    if not any(claim.ephemeral for claim in _claims(before.podsets)):
        return False
    if workload.run != before.workload.run:
        return True
    is_over = workload.phase is Phase.STOPPED or workload.phase in TERMINAL or workload.gone
    if not is_over or draft.active_pods():
        return False
    return workload.phase != before.workload.phase or workload.gone != before.workload.gone or bool(before.pods)
