"""When a workload starts, on the server's own state. Called by the API; computed on demand and kept per revision."""

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.decide.placement.missing_pods import count_missing_pods
from fairlead.control.decide.placement.snapshot import key_in_snapshot
from fairlead.control.explain.cluster_snapshot import load_board
from fairlead.control.explain.foresight import make_asker, name_scheduler
from fairlead.control.explain.runtimes import load_similar_runs, make_runtimes
from fairlead.control.explain.submissions import load_submissions
from fairlead.control.loop.schedule import render_snapshot
from fairlead.control.questions import QuestionKey
from fairlead.control.workloads.read import load_revision
from fairlead.foresight.estimate import EstimateAnswer, estimate_start
from fairlead.foresight.workloads import NOTHING_WAITS
from fairlead.model.records.people import Caller
from fairlead.model.records.workload import Workload


async def estimate_workload_start(context: Context, caller: Caller, workload: Workload) -> EstimateAnswer:
    """The median and the 90 % value of its start, with what they rest on."""
    context = context.for_cluster(workload.cluster_id)
    access.check(caller, "workloads:read", workload.project_id)
    revision = await load_revision(context)
    key = QuestionKey(revision, (caller.name, access.visible_projects(caller)), ("estimate", workload.id))
    known = context.questions.known(key, EstimateAnswer)
    if known is not None:
        return _at(context, known, revision)
    board = await load_board(context)
    entry = board.entries.get(workload.id)
    if entry is None or not count_missing_pods(entry, context.clock()):
        return EstimateAnswer(
            workload=workload.name,
            project=workload.project_name,
            status="notWaiting",
            message=workload.phase_message or NOTHING_WAITS,
            now=context.clock() / 1000,
            revision=revision,
        )
    similar = await load_similar_runs(context, board)
    runtimes = make_runtimes(board, similar, context.clock())
    submitted = await load_submissions(context)
    snapshot = render_snapshot(context, board, context.clock())

    def ask() -> EstimateAnswer:
        asker = make_asker(caller, board)
        return estimate_start(snapshot, key_in_snapshot(workload), runtimes, asker, submitted.render(similar))

    return _at(context, await context.questions.ask(caller.name, key, ask), revision)


def _at(context: Context, answer: EstimateAnswer, revision: int) -> EstimateAnswer:
    completed: EstimateAnswer = msgspec.structs.replace(answer, revision=revision)
    return name_scheduler(context, completed)
