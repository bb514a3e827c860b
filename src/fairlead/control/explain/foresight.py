"""Questions about the future on the server's own state: loads the snapshot, asks `foresight`, hides what it must.

Called by the API. Each answer carries the revision of the state on which it was computed.
"""

from collections.abc import Sequence
from functools import partial
from typing import TypeVar

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.decide.placement.missing_pods import count_missing_pods
from fairlead.control.decide.placement.snapshot import key_in_snapshot, queue_of
from fairlead.control.explain.cluster_snapshot import load_board
from fairlead.control.explain.new_nodes import correct_for_cluster
from fairlead.control.explain.runtimes import load_similar_runs, make_runtimes
from fairlead.control.loop.board import Board
from fairlead.control.loop.schedule import render_snapshot
from fairlead.control.questions import QuestionKey
from fairlead.control.workloads.read import load_revision
from fairlead.foresight.changes import Change, encode_changes
from fairlead.foresight.estimate import EstimateAnswer
from fairlead.foresight.kai.agreement import describe_agreement
from fairlead.foresight.plan import PlanAnswer
from fairlead.foresight.what_if import WhatIfAnswer, ask_what_if
from fairlead.foresight.why import Asker, WhyAnswer, explain_why
from fairlead.foresight.workloads import NOTHING_WAITS, UnknownName, UnknownWorkload
from fairlead.model.clock import Millis, iso
from fairlead.model.errors import Invalid, NotFound
from fairlead.model.records.assets import INSTALLATION_SCOPE_KEY
from fairlead.model.records.people import Caller
from fairlead.model.records.workload import Workload

AnswerT = TypeVar("AnswerT", WhyAnswer, PlanAnswer, EstimateAnswer, WhatIfAnswer)


def make_asker(caller: Caller, board: Board) -> Asker:
    """What a caller may see and suspend: their own workloads."""
    projects = access.visible_projects(caller)
    own = (entry.workload for entry in board.entries.values() if entry.workload.created_by == caller.name)
    return Asker(
        visible=None if projects is None else frozenset(map(queue_of, projects)),
        own=frozenset(map(key_in_snapshot, own)),
    )


async def explain_pending(context: Context, caller: Caller, workload: Workload) -> WhyAnswer:
    """Why the workload waits, with the smallest changes that would start it."""
    context = context.for_cluster(workload.cluster_id)
    access.check(caller, "workloads:read", workload.project_id)
    revision = await load_revision(context)
    key = QuestionKey(revision, (caller.name, access.visible_projects(caller)), ("why", workload.id))
    known = context.questions.known(key, WhyAnswer)
    if known is not None:
        return name_scheduler(context, known)
    board = await load_board(context)
    entry = board.entries.get(workload.id)
    now = context.clock()
    retry_at = workload.retry_at if workload.retry_at is not None and workload.retry_at > now else None
    at = retry_at or now
    if entry is None or not count_missing_pods(entry, at):
        return _not_waiting(context, workload, revision)
    snapshot = render_snapshot(context, board, at)
    ask = partial(explain_why, snapshot, key_in_snapshot(workload), make_asker(caller, board))

    def answer() -> WhyAnswer:
        return _complete(correct_for_cluster(context, ask()), revision, retry_at)

    return name_scheduler(context, await context.questions.ask(caller.name, key, answer))


def name_scheduler(context: Context, answer: AnswerT) -> AnswerT:
    """On a cluster, the answer also says who decides there, and how often both decided the same so far."""
    if not context.engine_of(context.directory.cluster_id).is_cluster:
        return answer
    assumptions = (describe_agreement(context.agreement), *answer.assumptions)
    completed: AnswerT = msgspec.structs.replace(answer, assumptions=assumptions)
    return completed


def _not_waiting(context: Context, workload: Workload, revision: int) -> WhyAnswer:
    return WhyAnswer(
        workload=workload.name,
        project=workload.project_name,
        status="notWaiting",
        message=workload.phase_message or NOTHING_WAITS,
        now=context.clock() / 1000,
        revision=revision,
    )


def _complete(answer: WhyAnswer, revision: int, retry_at: Millis | None) -> WhyAnswer:
    message = answer.message
    if retry_at is not None:
        message = f"Its failed pod is not replaced before {iso(retry_at)}. Then: {message}"
    completed: WhyAnswer = msgspec.structs.replace(answer, revision=revision, message=message)
    return completed


async def compare_changed(
    context: Context, caller: Caller, changes: Sequence[Change], *, with_times: bool = False
) -> WhatIfAnswer:
    """What these changes would do to everybody; raises Invalid if they make no sense here, NotFound for a workload.

    `with_times` also estimates when waiting workloads start before and after, which takes longer.
    """
    access.check_at(caller, "scheduling:read", INSTALLATION_SCOPE_KEY)
    revision = await load_revision(context)
    context = context.for_cluster(context.directory.cluster_id)
    board = await load_board(context)
    snapshot = render_snapshot(context, board, context.clock())
    rights = (caller.name, access.visible_projects(caller))
    key = QuestionKey(revision, rights, ("what-if", with_times, encode_changes(tuple(changes))))
    runtimes = None
    if with_times:
        runtimes = make_runtimes(board, await load_similar_runs(context, board), context.clock())
    ask = partial(ask_what_if, snapshot, changes, make_asker(caller, board), runtimes)
    try:
        answer = await context.questions.ask(caller.name, key, ask)
    except UnknownWorkload as error:
        raise NotFound(str(error)) from error
    except UnknownName as error:
        raise Invalid(str(error)) from error
    completed: WhatIfAnswer = msgspec.structs.replace(answer, revision=revision)
    return name_scheduler(context, completed)
