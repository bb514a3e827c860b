"""How long workloads have waited and run until now, and lists that are filtered and sorted by that.

The store has the time until the last change of phase only; what goes on since then is added here, so such lists are
read whole. Called by `read.py`, and by the API for what it shows.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from fairlead.control.context import Context
from fairlead.control.filters import Filter, FilterField, as_conditions, is_match, parse_filters
from fairlead.control.lists import ListRequest, Page
from fairlead.model.clock import Millis
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import Workload
from fairlead.store.base import Query, Where
from fairlead.store.collections import WORKLOADS

WAITING = frozenset({Phase.CREATING, Phase.PENDING, Phase.RESUMING})
RUNNING = frozenset({Phase.RUNNING, Phase.DEGRADED, Phase.UPDATING})


def pending_seconds(workload: Workload, now: Millis) -> int:
    return _elapsed(workload.pending_time, workload, WAITING, now)


def running_seconds(workload: Workload, now: Millis) -> int:
    return _elapsed(workload.running_time, workload, RUNNING, now)


def _elapsed(stored: Millis, workload: Workload, counting: frozenset[Phase], now: Millis) -> int:
    """Seconds spent in some phases: the stored time, and the time since the last change if it is in one of them now."""
    going_on = max(0, now - workload.phase_updated_at) if workload.phase in counting and not workload.gone else 0
    return (stored + going_on) // 1000


#: By the column that has the stored time.
_SECONDS = {"total_pending_time_seconds": pending_seconds, "total_running_time_seconds": running_seconds}


def asks_for_elapsed(request: ListRequest, fields: Mapping[str, FilterField[Workload]]) -> bool:
    used = [each.field for each in parse_filters(request.filter_by, fields)]
    used += [fields[request.sort_by]] if request.sort_by else []
    return any(field.column in _SECONDS for field in used)


async def find_by_elapsed(
    context: Context,
    request: ListRequest,
    fields: Mapping[str, FilterField[Workload]],
    where: tuple[Where, ...],
    search_in: tuple[str, ...],
) -> Page[Workload]:
    """A page of the list, with the number of all that match."""
    now = context.clock()
    filters = parse_filters(request.filter_by, fields)
    live = [each for each in filters if each.field.column in _SECONDS]
    conditions = as_conditions(each for each in filters if each.field.column not in _SECONDS)
    if conditions is None:
        return Page([])
    sort = fields[request.sort_by].column if request.sort_by else "created_at"
    order = ((sort, request.descending),) if sort and sort not in _SECONDS else ()
    query = Query(
        collection=WORKLOADS, where=(*where, *conditions), search=request.search, search_in=search_in, order=order
    )
    found = [each for each in await context.store.find(query) if _matches(each, live, now)]
    if sort in _SECONDS:
        found.sort(key=partial(_SECONDS[sort], now=now), reverse=request.descending)
    end = request.offset + request.limit
    return Page(found[request.offset : end], end if end < len(found) else None, total=len(found))


def _matches(workload: Workload, filters: Sequence[Filter[Workload]], now: Millis) -> bool:
    return all(is_match(each.comparison, _SECONDS[each.field.column](workload, now), each.value) for each in filters)
