"""What was submitted in the last days, as estimates expect it of the next ones. Reads only."""

import msgspec

from fairlead.control.context import Context
from fairlead.control.decide.draft import WorkloadEntry
from fairlead.control.decide.expand import podsets_of
from fairlead.control.decide.placement.snapshot import render_jobs
from fairlead.control.explain.runtimes import SimilarRuns, make_runtime
from fairlead.foresight.runtimes import RunningTime
from fairlead.foresight.submissions import DAY, DAYS, PastSubmission, PastSubmissions
from fairlead.model.clock import Millis
from fairlead.model.records.phase import TERMINAL, DesiredPhase, Phase
from fairlead.model.records.workload import Workload
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import WORKLOADS

#: The newest submissions that are looked at.
_LOOKED_AT = 2_000


class LoadedSubmissions(msgspec.Struct, frozen=True):
    """Records as they were loaded; rendering them takes a while, and is done where the question is answered."""

    workloads: list[Workload]
    #: How far back they go.
    seconds: float
    now: Millis

    def render(self, similar: SimilarRuns) -> PastSubmissions:
        rendered = (
            PastSubmission(
                ago=(self.now - each.created_at) / 1000,
                jobs=tuple(render_jobs(_as_submitted(each), "", self.now)),
                runtime=_runtime(each, similar, self.now),
            )
            for each in self.workloads
        )
        return PastSubmissions(tuple(each for each in rendered if each.jobs), self.seconds)


async def load_submissions(context: Context) -> LoadedSubmissions:
    """Those of a server that is younger than a day say little about the next day, and are left out."""
    now = context.clock()
    own = context.own_workload_conditions
    since = Where("created_at", Comparison.ABOVE, now - int(DAYS * DAY * 1000))
    newest: list[Workload] = await context.store.find(
        Query(collection=WORKLOADS, where=(since, *own), order=(("created_at", True),), limit=_LOOKED_AT)
    )
    first: list[Workload] = await context.store.find(
        Query(collection=WORKLOADS, where=own, order=(("created_at", False),), limit=1)
    )
    age = (now - first[0].created_at) / 1000 if first else 0
    if age < DAY:
        return LoadedSubmissions([], 0, now)
    # If there are more than were loaded, they do not go back as far.
    reach = (now - newest[-1].created_at) / 1000 if len(newest) == _LOOKED_AT else DAYS * DAY
    return LoadedSubmissions(newest, min(age, reach), now)


def _as_submitted(workload: Workload) -> WorkloadEntry:
    waiting: Workload = msgspec.structs.replace(
        workload,
        phase=Phase.PENDING,
        desired_phase=DesiredPhase.RUNNING,
        waits_for=(),
        tallies={},
        groups={},
        deleted_at=None,
        last_eviction=None,
        started_at=None,
    )
    return WorkloadEntry(workload=waiting, pods=(), podsets=podsets_of(waiting))


def _runtime(workload: Workload, similar: SimilarRuns, now: Millis) -> RunningTime:
    if workload.phase in TERMINAL or workload.gone:
        return RunningTime(declared=workload.running_time / 1000)
    return make_runtime(workload, similar, now)
