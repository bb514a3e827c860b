"""Why a workload waits: the blocker with its numbers, who holds what it waits for, and what would help.

Called by the API. It asks the scheduler again with the records of this moment; nothing is carried out. The blocker's
message is the scheduler's. Workloads of projects that the caller may not see are counted and never named.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.decide.cluster.blockers import CLUSTER
from fairlead.control.decide.draft import WorkloadEntry
from fairlead.control.decide.placement.eviction_notices import name_pods
from fairlead.control.decide.placement.missing_pods import count_missing_pods
from fairlead.control.decide.placement.snapshot import pool_of, queue_name
from fairlead.control.explain.cluster_snapshot import load_board, load_decisions
from fairlead.control.explain.headline import HeadlineHolder, format_headline, format_span
from fairlead.control.explain.new_nodes import format_for_cluster
from fairlead.control.loop.board import Board
from fairlead.control.organization.inventory import OwnerUsage
from fairlead.engines.base import SCALE_UP
from fairlead.model.clock import Millis
from fairlead.model.records.organization import DEFAULT_NODE_POOL, Department, PoolQuota
from fairlead.model.records.people import Caller
from fairlead.model.records.phase import PodPhase
from fairlead.model.records.workload import Pod, Workload
from fairlead.scheduling.messages import format_amount, format_largest
from fairlead.scheduling.model.decisions import Decisions, FairShare, Pending, Reason

_SHOWN = 20
#: How many workloads a sentence names.
_NAMED = 4
#: Shown instead of the name of a workload or project that the caller may not see.
HIDDEN_WORKLOAD, HIDDEN_PROJECT = "another project's workload", "another project"
#: What helps whatever the workload is, by the blocker's code.
_REMEDIES = {
    "NoSuchNodePool": "Use a node pool that exists, or create this one.",
    "QueueDoesNotExist": "Use a node pool that exists, or create this one.",
    "Fragmented": "Wait for consolidation, request fewer GPUs per pod, or stop small workloads on one node.",
}
_UNITS = {"gpu": "GPUs", "cpu": "CPU cores", "memory": "GB memory"}


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A workload that holds resources of the requested kind, in one node pool."""

    workload: str
    #: None if the caller may not see it.
    workload_id: str | None
    #: Who submitted it; empty if the caller may not see it.
    submitted_by: str
    project: str
    node_pool: str
    nodes: tuple[str, ...]
    #: GPU devices, millicores, bytes.
    gpu: float
    cpu: float
    memory: float
    preemptible: bool
    #: Whether its project holds more GPUs there than its quota, not counting pods that are stopping.
    is_over_quota: bool
    is_ending: bool
    since: Millis | None


class OwnerFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A project or department in a node pool: GPU, CPU, memory; -1 is unlimited."""

    name: str
    #: PROJECT or DEPARTMENT.
    type: str
    node_pool: str
    quota: tuple[float, float, float]
    limit: tuple[float, float, float]
    fair_share: tuple[float, float, float]
    allocated: tuple[float, float, float]
    allocated_non_preemptible: tuple[float, float, float]
    requested: tuple[float, float, float]


class PoolBlocker(msgspec.Struct, frozen=True, kw_only=True):
    node_pool: str
    reason: Reason
    message: str


class WaitingReport(msgspec.Struct, frozen=True, kw_only=True):
    reason: Reason
    #: The message of the scheduler that decides; if that is the cluster's, also what our own would say.
    message: str
    #: The same in one line for the caller, with the holders.
    headline: str
    counted: str = ""
    pools: tuple[PoolBlocker, ...]
    owners: tuple[OwnerFigures, ...]
    holders: tuple[Holder, ...]
    #: The number of all holders; `holders` has only the first.
    holder_count: int
    remedies: tuple[str, ...]


async def explain_waiting(context: Context, caller: Caller, workload: Workload) -> WaitingReport | None:
    """None for a workload without missing pods, or whose next pod would be placed now."""
    context = context.for_cluster(workload.cluster_id)
    access.check(caller, "workloads:read", workload.project_id)
    if not workload.is_active:
        return None
    board = await load_board(context)
    entry = board.entries.get(workload.id)
    if entry is None or not count_missing_pods(entry, context.clock()):
        return None
    decisions = await load_decisions(context, board)
    pending = next((each for each in decisions.pending if each.tasks[0].split("/")[0] == workload.id), None)
    if pending is None:
        return None
    visible = access.visible_projects(caller)
    pods = [(each.workload, pod) for each in board.entries.values() for pod in each.pods]
    staying = [(owner, pod) for owner, pod in pods if pod.phase is not PodPhase.STOPPING and not pod.stopping_for]
    view = _ReaderView(context, board, caller, visible, _add_up(pods), _add_up(staying))
    return _report(view, entry, pending, decisions)


def _add_up(pods: Iterable[tuple[Workload, Pod]]) -> dict[tuple[str, str], OwnerUsage]:
    """By queue and node pool. A decision's own sums differ: they include what it would start and stop."""
    usage: dict[tuple[str, str], OwnerUsage] = {}
    for workload, pod in pods:
        for queue in (f"project-{workload.project_id}", f"department-{workload.department_id}"):
            usage.setdefault((queue, pod.node_pool), OwnerUsage()).add(pod, not workload.preemptible)
    return usage


class _ReaderView(msgspec.Struct, frozen=True):
    """The state that a report is made from, and what of it the reader may see."""

    context: Context
    board: Board
    caller: Caller
    #: Projects that the caller may see; None for all.
    visible: frozenset[str] | None
    #: By queue and node pool: what pods hold now, and what those hold that are not stopping.
    held: Mapping[tuple[str, str], OwnerUsage]
    staying: Mapping[tuple[str, str], OwnerUsage]

    def shows(self, workload: Workload) -> bool:
        return self.visible is None or workload.project_id in self.visible

    def named(self, reason: Reason) -> Reason:
        return name_pods(reason, self.board.pods, self.board.entries, self.visible)


def _report(view: _ReaderView, entry: WorkloadEntry, pending: Pending, decisions: Decisions) -> WaitingReport:
    context, workload = view.context, entry.workload
    reason = view.named(pending.reason)
    pools = workload.node_pools or (DEFAULT_NODE_POOL,)
    directory = context.directory
    owners = [directory.projects.get(workload.project_id), directory.departments.get(workload.department_id)]
    shares = {(share.queue, share.node_pool): share for share in decisions.fair_shares}
    figures = tuple(_figures(view, owner, pool, shares) for owner in owners if owner for pool in pools)
    holders = [] if reason.code == "NeverFits" else _holders(view, entry, pools)
    from_cluster = _cluster_message(workload)
    return WaitingReport(
        reason=reason,
        message=from_cluster or format_for_cluster(view.context, reason),
        headline=(from_cluster or _headline(view, reason, holders, workload)) + _note_not_ready(view, reason),
        counted=format_for_cluster(view.context, reason) if from_cluster and not _is_scaling_up(workload) else "",
        pools=tuple(
            PoolBlocker(
                node_pool=each.node_pool,
                reason=view.named(each.reason),
                message=format_for_cluster(view.context, view.named(each.reason)),
            )
            for each in pending.pools
        ),
        owners=figures,
        holders=tuple(holders[:_SHOWN]),
        holder_count=len(holders),
        remedies=tuple(_remedies(entry, reason, figures, holders, _request_less(context, entry, reason, pools))),
    )


def _headline(view: _ReaderView, reason: Reason, holders: Sequence[Holder], workload: Workload) -> str:
    shown = [
        HeadlineHolder(
            holder.workload,
            "you" if holder.submitted_by == view.caller.name else holder.submitted_by,
            holder.since,
        )
        for holder in sorted(holders, key=lambda holder: (-holder.gpu, -holder.cpu))
        if holder.workload_id != workload.id
    ]
    if reason.code == "NeverFits":
        return format_for_cluster(view.context, reason)
    return format_headline(reason, shown, view.context.clock())


def _is_scaling_up(workload: Workload) -> bool:
    return (workload.blocked_by or {}).get("code") == SCALE_UP


def _note_not_ready(view: _ReaderView, reason: Reason) -> str:
    """For how long the node has not been ready that would be large enough."""
    names = {cause.best_node for cause in reason.causes if cause.cause == "notReady" and not cause.never}
    now = view.context.clock()
    return "".join(
        f" Node {node.name} has not been ready for {format_span(now - node.not_ready_since)}."
        for node in view.context.directory.nodes.values()
        if node.name in names and node.not_ready_since is not None
    )


def _cluster_message(workload: Workload) -> str:
    """What the cluster's scheduler reported about it last."""
    blocked = workload.blocked_by or {}
    return str(blocked.get("detail", "")) if blocked.get("source") == CLUSTER else ""


def _quota(owner: Department, pool: str) -> PoolQuota:
    granted = next((quota for quota in owner.resources if quota.node_pool_name == pool), None)
    return granted or PoolQuota(node_pool_id="", node_pool_name=pool)


def _figures(view: _ReaderView, owner: Department, pool: str, shares: dict[tuple[str, str], FairShare]) -> OwnerFigures:
    quota = _quota(owner, pool)
    resources = (quota.gpu, quota.cpu, quota.memory)
    name = queue_name(owner)
    share, usage = shares.get((name, pool)), view.held.get((name, pool), OwnerUsage())
    nothing = (0.0, 0.0, 0.0)
    return OwnerFigures(
        name=owner.name,
        type="PROJECT" if name.startswith("project-") else "DEPARTMENT",
        node_pool=pool,
        quota=_three(-1.0 if each.deserved is None else each.deserved for each in resources),
        limit=_three(-1.0 if each.limit is None else each.limit for each in resources),
        fair_share=share.fair_share if share else nothing,
        allocated=(round(usage.gpu, 3), usage.cpu_milli, usage.memory_bytes),
        allocated_non_preemptible=(round(usage.fixed_gpu, 3), usage.fixed_cpu_milli, usage.fixed_memory_bytes),
        requested=share.requested if share else nothing,
    )


def _three(values: Iterable[float]) -> tuple[float, float, float]:
    gpu, cpu, memory = values
    return gpu, cpu, memory


def _holders(view: _ReaderView, waiting: WorkloadEntry, pools: Sequence[str]) -> list[Holder]:
    """Who holds resources of the requested kind; those that may have to give them back come first."""
    wants_gpu = any(podset.request.gpu_devices for podset in waiting.podsets)
    holders = []
    for entry in view.board.entries.values():
        for pool in pools:
            pods = [pod for pod in entry.pods if pod.node_pool == pool and (pod.gpu_devices or not wants_gpu)]
            if pods:
                holders.append(_holder(view, entry.workload, pool, pods))
    return sorted(holders, key=_holder_order)


def _holder(view: _ReaderView, workload: Workload, pool: str, pods: Sequence[Pod]) -> Holder:
    project = view.context.directory.projects.get(workload.project_id)
    staying = view.staying.get((f"project-{workload.project_id}", pool), OwnerUsage())
    quota = _quota(project, pool).gpu.deserved if project else None
    starts = [pod.started_at for pod in pods if pod.started_at is not None]
    is_shown = view.shows(workload)
    return Holder(
        workload=workload.name if is_shown else HIDDEN_WORKLOAD,
        workload_id=workload.id if is_shown else None,
        submitted_by=workload.created_by if is_shown else "",
        project=workload.project_name if is_shown else HIDDEN_PROJECT,
        node_pool=pool,
        nodes=tuple(sorted({pod.node for pod in pods})),
        gpu=round(sum(len(pod.gpu_devices) * pod.gpu_thousandths for pod in pods) / 1000, 3),
        cpu=float(sum(pod.cpu_milli for pod in pods)),
        memory=float(sum(pod.memory_bytes for pod in pods)),
        preemptible=workload.preemptible,
        is_over_quota=quota is not None and round(staying.gpu, 3) > quota,
        is_ending=all(pod.stopping_for for pod in pods),
        since=min(starts) if starts else None,
    )


def _holder_order(holder: Holder) -> tuple[bool, bool, bool, float, str, str]:
    """Stopping ones, then over quota, then preemptible, then who holds most; ties by name and id."""
    return (
        not holder.is_ending,
        not holder.is_over_quota,
        not holder.preemptible,
        -holder.gpu,
        holder.workload,
        holder.workload_id or "",
    )


def _remedies(
    entry: WorkloadEntry, reason: Reason, figures: Sequence[OwnerFigures], holders: Sequence[Holder], request_less: str
) -> list[str]:
    """What would let it start, most direct first."""
    others = [holder for holder in holders if holder.workload_id != entry.workload.id]
    # What a cluster's scheduler says counts: our own figures may have another reason first.
    blocking = entry.workload.phase_reason or reason.code
    if blocking == "NonPreemptibleOverQuota":
        own = [holder for holder in others if holder.project == entry.workload.project_name]
        submit = f"Submit it as preemptible, so that it may exceed its quota. {_raise(reason, blocking, 'quota')}"
        # A node would not help: nobody else has to leave, and there may be room.
        return [submit, _wait_for(own)] if own else [submit]
    if blocking == "OverLimit":
        return [_raise(reason, blocking, "limit"), "Or stop other workloads of the same project."]
    if _is_scaling_up(entry.workload):
        return ["Nothing to do: it starts when the new node is ready."]
    if reason.code == "NeverFits":
        return [request_less]
    if reason.code == "WaitsForVictims":
        grace = max(podset.container.termination_grace_seconds for podset in entry.podsets)
        return [f"Nothing to do: it starts when these pods have stopped. Its own grace period is {grace} s."]
    if reason.code in _REMEDIES:
        return [_REMEDIES[reason.code]]
    return [_wait_for(others), *_quota_remedies(entry, figures, others)]


def _raise(reason: Reason, blocking: str, what: str) -> str:
    if reason.code != blocking:
        return f"Raise the {what} of its project or department."
    resource = reason.resource or "gpu"
    needed = format_amount((reason.used or 0) + (reason.requested or 0), resource)
    return f"A {what} of {needed} {_UNITS[resource]} for {reason.queue or 'its project'} would let it start."


def _request_less(context: Context, entry: WorkloadEntry, reason: Reason, pools: Sequence[str]) -> str:
    """What could start instead of a pod that is too large for every node in these pools."""
    known = context.directory.node_pools.values()
    nodes = [node for node in context.directory.nodes.values() if pool_of(node, known) in pools]
    memory = max((gpu.memory_mib for node in nodes for gpu in node.gpus), default=0)
    if memory and any(podset.request.gpu_memory_bytes for podset in entry.podsets):
        return f"Request at most {memory} MiB of GPU memory, which the largest GPU has, or add a larger node."
    largest = format_largest(reason)
    return f"Request at most {largest}; or add a larger node." if largest else "Request less, or add a node that fits."


def _wait_for(holders: Sequence[Holder]) -> str:
    ending = _names_of(holder for holder in holders if holder.is_ending)
    if ending:
        return f"Wait: {', '.join(ending[:5])} {'is' if len(ending) == 1 else 'are'} stopping."
    if not holders:
        return "No other workload holds what it requests: add a node, or request less."
    [*first, last] = _names_of(holders)
    if not first:
        return f"Wait for {last} to finish."
    if len(first) >= _NAMED:
        first, last = first[:_NAMED], f"{len(first) + 1 - _NAMED} others"
    return f"Wait until enough of {', '.join(first)} and {last} have finished."


def _names_of(holders: Iterable[Holder]) -> list[str]:
    return list(dict.fromkeys(holder.workload for holder in holders))


def _quota_remedies(entry: WorkloadEntry, figures: Sequence[OwnerFigures], holders: Sequence[Holder]) -> list[str]:
    """Whether more quota would let it reclaim from others."""
    own = next((each for each in figures if each.type == "PROJECT"), None)
    is_borrowed = any(holder.is_over_quota and holder.project != entry.workload.project_name for holder in holders)
    requested = sum(podset.request.gpu_devices * podset.request.gpu_portion / 1000 for podset in entry.podsets)
    if own is None or not requested or own.quota[0] < 0 or not is_borrowed:
        return []
    if own.allocated[0] + requested <= own.quota[0]:
        return [f"Project {own.name} is within its quota: what others hold above theirs is reclaimed for it."]
    needed, quota = format_amount(own.allocated[0] + requested, "gpu"), format_amount(own.quota[0], "gpu")
    return [
        f"A quota of {needed} GPUs for project {own.name} (now {quota}) would let it reclaim "
        "what others hold above theirs."
    ]
