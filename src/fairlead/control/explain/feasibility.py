"""Whether a workload could start at all, on empty nodes; and submitting it only then.

The command line asks for it, because people notice a mistyped number at once. REST submits what can never start too,
because nodes may come.
"""

import asyncio

import msgspec

from fairlead.control.context import Context
from fairlead.control.decide.dependencies import format_waiting
from fairlead.control.explain.new_nodes import may_new_node_help
from fairlead.control.loop.board import Board
from fairlead.control.loop.schedule import render_snapshot
from fairlead.control.workloads.submit import submit
from fairlead.model.errors import Refused
from fairlead.model.records.people import Caller
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import Workload
from fairlead.model.submission import Submission
from fairlead.scheduling import Reason, decide, format_reason
from fairlead.scheduling.messages import NEVER, format_excess, format_largest


async def submit_if_it_can_start(
    context: Context, caller: Caller, submission: Submission, request_id: str = ""
) -> Workload:
    """Like `submit`; raises Refused if the workload would not start on empty nodes either, or waits in vain."""
    preview = await submit(context, caller, submission, request_id, is_dry_run=True)
    waiting = format_waiting(preview.waits_for)
    if waiting.startswith(NEVER):
        raise Refused(f"{waiting}.")
    reason = await find_lasting_blocker(context, preview)
    if reason is not None:
        raise Refused(describe_blocker(reason))
    return await submit(context, caller, submission, request_id)


async def find_lasting_blocker(context: Context, workload: Workload) -> Reason | None:
    """Why no pod of it would start if all nodes were empty and ready; None if one would, if an autoscaler
    may add a node for it, or if it needs none."""
    context = context.for_cluster(workload.cluster_id)
    board = Board({})
    board.put(msgspec.structs.replace(workload, phase=Phase.PENDING), ())
    snapshot = render_snapshot(context, board, context.clock())
    nodes = tuple(msgspec.structs.replace(node, ready=True, unschedulable=False) for node in snapshot.nodes)
    decisions = await asyncio.to_thread(decide, msgspec.structs.replace(snapshot, nodes=nodes))
    if decisions.binds or decisions.pipelined or not decisions.pending:
        return None
    reason = decisions.pending[0].reason
    return None if may_new_node_help(context, reason) else reason


def describe_blocker(reason: Reason) -> str:
    """What is too large, and the largest request that would fit."""
    if reason.code in ("NonPreemptibleOverQuota", "OverLimit"):
        return format_excess(reason)
    sentence = format_reason(reason)
    if not sentence.startswith(NEVER):
        sentence = f"{NEVER}: {sentence[0].lower()}{sentence[1:]}"
    largest = format_largest(reason)
    return f"{sentence} The largest request that fits: {largest}." if largest else sentence
