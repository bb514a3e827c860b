"""Decides recorded cycles again, and lists what this version of the scheduler decides differently.

Called by the API. One answer covers a limited number of cycles and says where to go on.
"""

from fairlead import __version__
from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.cycles.load import load_cycles
from fairlead.control.cycles.segments import RecordedCycle, digest_decisions
from fairlead.foresight.messages import plural
from fairlead.foresight.replayed import CycleDifference, RecordedOutcome, ReplayAnswer, list_differences
from fairlead.model.clock import Millis
from fairlead.model.records.assets import INSTALLATION_SCOPE_KEY
from fairlead.model.records.people import Caller
from fairlead.scheduling import decide

#: Cycles of one answer, and the jobs of all their snapshots together: some seconds of work.
_CYCLES, _JOBS = 1_000, 200_000
#: Differences that an answer lists.
_LISTED = 50
_REASONS_ONLY = "The same pods start and stop; only reasons or figures differ."


async def replay_cycles(context: Context, caller: Caller, since: Millis, until: Millis) -> ReplayAnswer:
    """Decide the cycles of a period again; the answer counts those with the same decisions and lists the others."""
    access.check_at(caller, "scheduling:read", INSTALLATION_SCOPE_KEY)
    chosen: list[RecordedCycle] = []
    jobs, next_since = 0, None
    async for portion in load_cycles(context, since, until):
        for cycle in portion:
            if len(chosen) >= _CYCLES or (chosen and jobs >= _JOBS):
                next_since = cycle.at
                break
            chosen.append(cycle)
            jobs += len(cycle.snapshot.jobs)
        if next_since is not None:
            break
    outcomes = await context.questions.ask_uncached(caller.name, lambda: [_decide_again(cycle) for cycle in chosen])
    differences = [outcome for outcome in outcomes if outcome is not None]
    return ReplayAnswer(
        since=since / 1000,
        until=until / 1000,
        cycles=len(chosen),
        same=len(chosen) - len(differences),
        binds=sum(len(cycle.entry.binds) for cycle in chosen),
        evictions=sum(len(cycle.entry.evictions) for cycle in chosen),
        differences=tuple(differences[:_LISTED]),
        recorded_by=tuple(dict.fromkeys(cycle.scheduler for cycle in chosen)),
        scheduler=__version__,
        next_since=None if next_since is None else next_since / 1000,
    )


def _decide_again(cycle: RecordedCycle) -> CycleDifference | None:
    decisions = decide(cycle.snapshot)
    if digest_decisions(decisions) == cycle.entry.digest:
        return None
    entry = cycle.entry
    before = RecordedOutcome(binds=entry.binds, evictions=entry.evictions, pipelined=entry.pipelined)
    lines, more = list_differences(cycle.snapshot, before, decisions)
    differing = plural(len(lines) + more, "pod")
    return CycleDifference(
        at=cycle.snapshot.now,
        revision=entry.revision,
        scheduler=cycle.scheduler,
        lines=lines,
        more=more,
        message=f"{differing} would be placed or evicted differently." if lines else _REASONS_ONLY,
    )
