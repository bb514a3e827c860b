"""The order that brings a cluster in line with a draft. Pure; called by the cluster driver for every draft.

An order is a desired state that the engine may be given again and again, so it follows from the draft and the last
report alone.
"""

from collections.abc import Callable

from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.engines.base import ApplyWorkload, DeleteWorkload, DesiredWorkload, WorkloadOrder, WorkloadReport
from fairlead.model.records.phase import TERMINAL, DesiredPhase, Phase
from fairlead.model.records.workload import Workload

RenderWorkload = Callable[[Workload, WorkloadEntry], DesiredWorkload]


def workload_orders(draft: Draft, report: WorkloadReport, render: RenderWorkload) -> list[WorkloadOrder]:
    workload = draft.workload
    if workload.desired_phase is DesiredPhase.DELETED:
        return [] if report.is_removed else [_delete(draft, render, keeps_claims=False)]
    if workload.phase in TERMINAL:
        return [_delete(draft, render, keeps_claims=True)] if _outlives_its_end(draft, report) else []
    if workload.phase is Phase.STOPPING:
        return [_delete(draft, render, keeps_claims=True)]
    if workload.phase is Phase.STOPPED or workload.waits_for:
        return []
    return [ApplyWorkload(render(workload, draft.entry))]


def _delete(draft: Draft, render: RenderWorkload, *, keeps_claims: bool) -> DeleteWorkload:
    desired = render(draft.workload, draft.entry)
    return DeleteWorkload(desired.workload_id, desired.namespace, keeps_claims, desired.manifest)


def _outlives_its_end(draft: Draft, report: WorkloadReport) -> bool:
    """Whether objects go on of a workload that we ended and the cluster did not.

    A workload that ended by itself stays in the cluster, with its output. Of a refused one, objects may exist that no
    watch has shown yet.
    """
    may_exist = report.run == draft.workload.run or bool(report.refused)
    return may_exist and report.ended is None and not report.has_no_pods
