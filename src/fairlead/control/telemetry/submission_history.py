"""What was submitted in a period of the ledger and how long it ran, to be replayed. Reads only.

Called by the API. Workloads that the caller may not see are there without their names.
"""

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.decide.placement.snapshot import queue_of
from fairlead.control.ledger.history import PastRun, RunNames, list_runs
from fairlead.control.telemetry.usage_report import find_recorded_period, load_period
from fairlead.model.clock import Millis, iso
from fairlead.model.records.assets import INSTALLATION_SCOPE_KEY
from fairlead.model.records.people import Caller
from fairlead.model.records.workload import Workload
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import WORKLOADS

#: Ids in one query.
_AT_ONCE = 500


class SubmissionHistory(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Times are those of the part of the period that is recorded."""

    since: str
    until: str
    submissions: tuple[PastRun, ...]
    #: Workloads that only waited in the period; how long they would run is not known.
    left_out: int


async def load_submission_history(
    context: Context, caller: Caller, since: Millis, until: Millis | None
) -> SubmissionHistory:
    """As for the snapshot of the scheduler, one needs the right to read the scheduler."""
    access.check_at(caller, "scheduling:read", INSTALLATION_SCOPE_KEY)
    context = context.for_cluster(context.directory.cluster_id)
    period, _ = await find_recorded_period(context, since, until)
    records = await load_period(context, period)
    visible = access.visible_projects(caller)
    present = context.directory.projects
    names = RunNames(
        projects={id: project.name for id, project in present.items() if visible is None or id in visible},
        hidden_project={id: queue_of(id) for id in present},
        priorities=await _load_priorities(context, sorted({use.workload_id for use in records.uses})),
    )
    # The queue of a deleted project does not exist any more, so nothing can be replayed in it.
    uses, waits = ([one for one in some if one.project_id in present] for some in (records.uses, records.waits))
    runs = await context.questions.ask_uncached(caller.name, lambda: list_runs(uses, waits, period, names))
    return SubmissionHistory(
        since=iso(period.since), until=iso(period.until), submissions=runs.runs, left_out=runs.left_out
    )


async def _load_priorities(context: Context, ids: list[str]) -> dict[str, int]:
    """Of workloads that still have a record."""
    priorities: dict[str, int] = {}
    for first in range(0, len(ids), _AT_ONCE):
        where = (Where("id", Comparison.ONE_OF, tuple(ids[first : first + _AT_ONCE])),)
        workloads: list[Workload] = await context.store.find(Query(collection=WORKLOADS, where=where))
        priorities.update({workload.id: workload.priority for workload in workloads})
    return priorities
