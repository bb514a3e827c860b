"""What would start waiting workloads, in a few words each, for tables and progress lines. Called by the API.

Computed on demand and kept per revision. A caller whose other question is being answered gets only what is known.
"""

from collections.abc import Sequence
from functools import partial

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.decide.placement.missing_pods import count_missing_pods
from fairlead.control.decide.placement.snapshot import key_in_snapshot
from fairlead.control.explain.cluster_snapshot import load_board
from fairlead.control.explain.foresight import make_asker
from fairlead.control.loop.schedule import render_snapshot
from fairlead.control.questions import QuestionKey
from fairlead.control.workloads.read import load_revision
from fairlead.foresight.suggestions import format_suggestion, suggest_changes
from fairlead.foresight.why import WhyAnswer
from fairlead.model.records.people import Caller


async def suggest_to_caller(context: Context, caller: Caller, ids: Sequence[str]) -> dict[str, str]:
    """The best change by workload id; workloads that do not wait or that the caller may not see are left out."""
    access.check(caller, "workloads:read")
    rights = (caller.name, access.visible_projects(caller))
    revision = await load_revision(context)
    key = QuestionKey(revision, rights, ("suggestions", tuple(ids)))
    suggested: dict[str, str] | None = context.questions.known(key, dict)
    if suggested is None:
        suggested = {} if context.questions.count_open(caller.name) else await _ask_all(context, caller, ids, key)
    return {**suggested, **_known(context, ids, QuestionKey(revision, rights, ()))}


async def _ask_all(context: Context, caller: Caller, ids: Sequence[str], key: QuestionKey) -> dict[str, str]:
    """In every cluster, because a change in one starts nothing in another."""
    suggested: dict[str, str] = {}
    for cluster_id in context.directory.clusters:
        several = len(context.directory.clusters) > 1
        own = key._replace(question=("suggestions", tuple(ids), cluster_id)) if several else key
        suggested |= await _ask(context.for_cluster(cluster_id), caller, ids, own)
    return suggested


async def _ask(context: Context, caller: Caller, ids: Sequence[str], key: QuestionKey) -> dict[str, str]:
    board = await load_board(context)
    now, visible = context.clock(), access.visible_projects(caller)
    entries = [board.entries[id] for id in ids if id in board.entries]
    waiting = {
        key_in_snapshot(entry.workload): entry.workload.id
        for entry in entries
        if (visible is None or entry.workload.project_id in visible) and count_missing_pods(entry, now)
    }
    if not waiting:
        return {}
    suggest = partial(suggest_changes, render_snapshot(context, board, now), tuple(waiting), make_asker(caller, board))
    return await context.questions.ask(
        caller.name, key, lambda: {waiting[workload]: text for workload, text in suggest().items()}
    )


def _known(context: Context, ids: Sequence[str], like: QuestionKey) -> dict[str, str]:
    """From whole answers to `why` on the same state."""
    known: dict[str, str] = {}
    for id in ids:
        answer = context.questions.known(like._replace(question=("why", id)), WhyAnswer)
        if answer is not None and (text := format_suggestion(answer)):
            known[id] = text
    return known
