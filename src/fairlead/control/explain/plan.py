"""Plans a submission without submitting it, and submits only if an earlier plan still holds.

Called by the API. The server forgets plans when it restarts.
"""

from functools import partial

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.decide.placement.snapshot import key_in_snapshot
from fairlead.control.explain.cluster_snapshot import load_board
from fairlead.control.explain.foresight import make_asker, name_scheduler
from fairlead.control.explain.new_nodes import correct_for_cluster
from fairlead.control.explain.runtimes import load_similar_runs, make_runtimes
from fairlead.control.loop.schedule import render_snapshot
from fairlead.control.questions import QuestionKey
from fairlead.control.workloads.read import load_revision
from fairlead.control.workloads.submit import submit
from fairlead.control.workloads.templates import apply_named_template
from fairlead.foresight.plan import PlanAnswer, describe_difference, make_plan
from fairlead.formats.losses import leaves
from fairlead.kinds import KINDS
from fairlead.model.errors import PlanChanged
from fairlead.model.records.people import Caller
from fairlead.model.records.phase import DesiredPhase, Phase
from fairlead.model.records.workload import Workload
from fairlead.model.submission import Submission

_SUSPENDED = "It is submitted suspended, so nothing starts."


async def plan_submission(
    context: Context, caller: Caller, submission: Submission, request_id: str, *, with_times: bool = False
) -> PlanAnswer:
    """What would happen if this were submitted now. Raises what `submit` raises.

    `with_times` also estimates when it starts and whom it delays by how much, which takes longer.
    """
    preview = await submit(context, caller, submission, request_id, is_dry_run=True)
    revision = await load_revision(context)
    remarks = await _find_policy_remarks(context, submission, preview)
    remarks += tuple(f"{each.reason}: {each.message}" for each in preview.conditions)
    if preview.desired_phase is not DesiredPhase.RUNNING or preview.waits_for:
        return _without_pods(context, preview, revision, remarks)
    context = context.for_cluster(preview.cluster_id)
    board = await load_board(context)
    board.put(msgspec.structs.replace(preview, phase=Phase.PENDING), ())
    snapshot = render_snapshot(context, board, context.clock())
    runtimes = None
    if with_times:
        runtimes = make_runtimes(board, await load_similar_runs(context, board), context.clock())
    compute = partial(make_plan, snapshot, key_in_snapshot(preview), make_asker(caller, board), runtimes)
    key = QuestionKey(revision, (caller.name, access.visible_projects(caller)), ("plan", preview.id))
    plan = correct_for_cluster(context, await context.questions.ask(caller.name, key, compute))
    completed: PlanAnswer = msgspec.structs.replace(name_scheduler(context, plan), revision=revision, remarks=remarks)
    context.questions.remember_plan(caller.name, completed.id, completed)
    return completed


async def _find_policy_remarks(context: Context, submission: Submission, preview: Workload) -> tuple[str, ...]:
    """What the policy of the project sets in it, beyond what the request and its template say."""
    sent = await apply_named_template(context, KINDS[submission.kind], submission)
    before = leaves(msgspec.json.decode(msgspec.json.encode(sent.spec)))
    set_by_policy = {
        path: value for path, value in leaves(msgspec.json.decode(preview.spec)).items() if before.get(path) != value
    }
    shown = (f"{path} = {msgspec.json.encode(value).decode()[:80]}" for path, value in set_by_policy.items())
    return tuple(f"Set by policy: {each}" for each in shown)


def _without_pods(context: Context, preview: Workload, revision: int, remarks: tuple[str, ...]) -> PlanAnswer:
    message = _SUSPENDED if not preview.waits_for else preview.conditions[-1].message
    return PlanAnswer(
        id="0" * 16,
        workload=preview.name,
        project=preview.project_name,
        status="notWaiting",
        message=message,
        remarks=remarks,
        now=context.clock() / 1000,
        revision=revision,
    )


async def submit_as_planned(
    context: Context, caller: Caller, submission: Submission, request_id: str, plan_id: str
) -> Workload:
    """Submit it if the plan still holds; raises PlanChanged with the differences if it does not."""
    present = await plan_submission(context, caller, submission, request_id)
    if present.id != plan_id:
        planned = context.questions.known_plan(caller.name, plan_id, PlanAnswer)
        if planned is None:
            raise PlanChanged(f"There is no plan {plan_id[:40]!r} of yours; plans are kept until the server restarts")
        raise PlanChanged(f"The plan {plan_id} no longer holds. {' '.join(describe_difference(planned, present))}")
    return await submit(context, caller, submission, request_id)
