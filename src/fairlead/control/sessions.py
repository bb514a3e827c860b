"""What people open into a workload's pods. The only reads that pass through to an engine.

Called by the API.
"""

from collections.abc import AsyncIterator

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.engines.base import LogRequest as LogRequest
from fairlead.model.errors import Elsewhere, NotFound, Unavailable
from fairlead.model.lease import Lease
from fairlead.model.org import Caller
from fairlead.model.workload import Pod, Workload
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import LEASES, PODS, WORKLOADS


async def pod_logs(
    context: Context, caller: Caller, workload_id: str, pod_name: str, request: LogRequest, previous: bool = False
) -> AsyncIterator[bytes]:
    """The output of one pod: the named one, else the newest. `request.pod_id` is filled in here."""
    workload: Workload | None = await context.store.get(WORKLOADS, workload_id)
    if workload is None:
        raise NotFound(f"There is no workload {workload_id}")
    access.check(caller, "workloads:logs", workload.project_id)
    pod = await _pod(context, workload, pod_name)
    if previous:
        if pod.attempt < 2 and request.attempt is None:
            raise NotFound(f"Pod {pod.name} was started once; there is no earlier attempt")
        request = msgspec.structs.replace(request, attempt=request.attempt or pod.attempt - 1)
    if context.sessions is None:
        raise await _elsewhere(context)
    return context.sessions.logs(msgspec.structs.replace(request, pod_id=pod.id))


async def _elsewhere(context: Context) -> Elsewhere | Unavailable:
    """Who runs the machine, as its lease says."""
    leases: list[Lease] = await context.store.find(Query(collection=LEASES))
    holders = [lease.address for lease in leases if lease.address]
    return Elsewhere(holders[0]) if holders else Unavailable("No server runs this machine's pods at the moment")


async def _pod(context: Context, workload: Workload, name: str) -> Pod:
    where = [Where("workload_id", Comparison.EQUAL, workload.id)]
    if name:
        where.append(Where("name", Comparison.EQUAL, name))
    pods = await context.store.find(Query(collection=PODS, where=tuple(where), order=(("created_at", True),), limit=1))
    if not pods:
        what = f"no pod named {name}" if name else "no pod yet"
        raise NotFound(f"Workload {workload.name} has {what}; it is {workload.phase}")
    pod: Pod = pods[0]
    return pod
