"""Why a cluster has not placed a workload, written into its record in the cluster's own words. Pure.

Called for each observation of a cluster. On an engine of single pods our own scheduler explains
(`placement/placements.py`).
"""

from collections.abc import Sequence

from fairlead.control.decide.draft import Draft
from fairlead.engines.base import SCALE_UP, SchedulingBlocker
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import PENDING_REASONS, PendingMessage, Workload

#: The source of a blocker that the cluster reported.
CLUSTER = "cluster"


def explain_blockers(draft: Draft, blockers: Sequence[SchedulingBlocker], retrying_because: str) -> None:
    """Write an event only when the reason changes."""
    workload = draft.workload
    if retrying_because and workload.phase is Phase.PENDING:
        draft.set_phase(Phase.PENDING, retrying_because)
        return
    if not blockers:
        if workload.blocked_by is not None and workload.phase is not Phase.PENDING:
            draft.set(blocked_by=None, pending_messages=())
        return
    first = blockers[0]
    if (workload.blocked_by or {}).get("code") != first.code:
        is_scale_up = first.code == SCALE_UP
        is_scheduler = first.can_create_pods and not is_scale_up
        reason, source = ("Unschedulable", "scheduler") if is_scheduler else (first.code, "engine")
        if is_scale_up:
            draft.add_event(reason, first.message, source=source)
        else:
            draft.add_blocker(first.code, first.message, reason=reason, source=source)
    draft.set(
        blocked_by={"code": first.code, "detail": first.message, "source": CLUSTER},
        pending_messages=tuple(
            _pending_message(blocker, workload) for blocker in blockers if blocker.code in PENDING_REASONS
        ),
    )
    if workload.phase is Phase.PENDING:
        draft.set_phase(Phase.PENDING, first.message, reason=first.code if first.code in PENDING_REASONS else None)


def _pending_message(blocker: SchedulingBlocker, workload: Workload) -> PendingMessage:
    org_type = "PROJECT" if blocker.queue.startswith(workload.project_name) else "DEPARTMENT"
    return PendingMessage(node_pool=blocker.node_pool, reason=blocker.code, message=blocker.message, org_type=org_type)
