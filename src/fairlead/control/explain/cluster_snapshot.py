"""The snapshot that the scheduler would get now, loaded from the store on any server; and its decisions on it.

For people and tools that ask. The loop has its own view, which is the same once everything is recorded.
"""

import asyncio
from collections import defaultdict

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.loop.board import Board
from fairlead.control.loop.schedule import render_snapshot
from fairlead.model.records.assets import INSTALLATION_SCOPE_KEY
from fairlead.model.records.people import Caller
from fairlead.model.records.workload import Pod, Workload
from fairlead.scheduling import decide
from fairlead.scheduling.model.decisions import Decisions
from fairlead.scheduling.model.snapshot import Snapshot
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import PODS, WORKLOADS


async def load_board(context: Context) -> Board:
    """Every unfinished workload of the cluster and its pods."""
    active = (Where("is_active", Comparison.EQUAL, 1),)
    own = (*active, *context.own_workload_conditions)
    workloads: list[Workload] = await context.store.find(Query(collection=WORKLOADS, where=own))
    active_pods: list[Pod] = await context.store.find(Query(collection=PODS, where=active))
    pods: dict[str, list[Pod]] = defaultdict(list)
    for pod in active_pods:
        pods[pod.workload_id].append(pod)
    known = {workload.id for workload in workloads}
    ended = tuple(id for id in pods if id not in known)
    if ended:
        where = (Where("id", Comparison.ONE_OF, ended), *context.own_workload_conditions)
        workloads += await context.store.find(Query(collection=WORKLOADS, where=where))
    board = Board({})
    for workload in workloads:
        board.put(workload, pods[workload.id])
    return board


async def load_snapshot(context: Context, caller: Caller) -> Snapshot:
    """The snapshot that a decision would be based on now."""
    access.check_at(caller, "scheduling:read", INSTALLATION_SCOPE_KEY)
    context = context.for_cluster(context.directory.cluster_id)
    return render_snapshot(context, await load_board(context), context.clock())


async def load_decisions(context: Context, board: Board) -> Decisions:
    """What the scheduler would decide now; nothing is carried out."""
    return await asyncio.to_thread(decide, render_snapshot(context, board, context.clock()))
