"""What of a workload goes when its pods are gone: what they left, and its storage. Pure.

Called by `decide.py`, and by the loop for a record that was made unknown to it: ephemeral claims go whenever a workload
stops or ends. The claims that a workload made otherwise go with its record; the loop writes that down in the same
transaction.
"""

from collections.abc import Iterable, Iterator

from fairlead.control.decide.draft import Draft
from fairlead.engines.base import DropClaims, Forget
from fairlead.model.pods.container_fields import ClaimMount
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.phase import TERMINAL, Phase


def _claims(podsets: Iterable[PodSet]) -> Iterator[ClaimMount]:
    for podset in podsets:
        yield from podset.container.fields.storage.pvc


def makes_claims(podsets: Iterable[PodSet]) -> bool:
    """Whether a spec asks for claims that go when its workload is deleted."""
    return any(not claim.existing_pvc and not claim.ephemeral for claim in _claims(podsets))


def order_cleanup(draft: Draft) -> None:
    """Order the removal of what ended pods leave behind, and of claims that go with the last of them."""
    draft.orders.extend(Forget(pod.id) for pod in draft.pods.values() if pod.has_ended)
    drop_ephemeral(draft)


def drop_ephemeral(draft: Draft) -> None:
    """Order the removal of ephemeral claims once no pod is left that mounts them."""
    workload, before = draft.workload, draft.entry
    if workload.phase is not Phase.STOPPED and workload.phase not in TERMINAL and not workload.gone:
        return
    if draft.active_pods() or not any(claim.ephemeral for claim in _claims(before.podsets)):
        return
    if workload.phase != before.workload.phase or workload.gone != before.workload.gone or before.pods:
        draft.orders.append(DropClaims(workload_id=workload.id))
