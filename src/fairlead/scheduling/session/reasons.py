"""Why a job waits: causes per node gathered as numbers, and sentences made of them only when someone reads."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlead.scheduling.model.decisions import NodeCause, Reason, ReasonCode
from fairlead.scheduling.model.live import LiveNode, LiveTask
from fairlead.scheduling.model.requests import KIND_MEMORY
from fairlead.scheduling.placement import gpus
from fairlead.scheduling.placement.predicates import fits_later, lacking, static_cause
from fairlead.scheduling.session.session import SchedulingSession

#: Stands for the reason of a lone task that found no node, until it is looked into.
UNEXPLAINED = Reason(code="NoNodeFits")


class _Tally:
    """One cause while nodes are counted; the nearest miss is the node with most of the resource free."""

    __slots__ = ("asked", "best", "free", "never", "nodes")

    def __init__(self) -> None:
        self.nodes = 0
        self.never = True
        self.asked: float | None = None
        self.free: float | None = None
        self.best: str | None = None

    def add(self, node: LiveNode, asked: float | None, free: float | None, never: bool) -> None:
        self.nodes += 1
        self.never = self.never and never
        if free is not None and (self.free is None or free > self.free):
            self.asked, self.free, self.best = asked, free, node.name
        elif self.best is None:
            self.best = node.name


def explain_task(
    session: SchedulingSession, task: LiveTask, nodes: Sequence[LiveNode], placed: int, required: int
) -> Reason:
    """Count, over the nodes, what keeps this task off each of them. Equal tasks are refused alike."""
    key = (task.request_class, required)
    alike = not session.log and nodes is session.nodes and not session.affinities.concerns(task)
    if alike and key in session.told and session.told[key][0] == session.commits:
        known = session.told[key][1]
        return msgspec.structs.replace(known, task=task.spec.name or task.id)
    reason = _explain(session, task, nodes, placed, required)
    if alike:
        session.told[key] = (session.commits, reason)
    return reason


def _explain(
    session: SchedulingSession, task: LiveTask, nodes: Sequence[LiveNode], placed: int, required: int
) -> Reason:
    tallies: dict[str, _Tally] = {}
    amounts = None if session.log else session.free_gpus().amounts
    for node in nodes:
        cause = static_cause(task, node)
        if cause is not None:
            _tally(tallies, cause).add(node, None, None, cause not in _PASSING or _is_too_small(task, node))
        elif fits_later(task, node):
            why = session.affinities.cause(task, node) or ("limit" if task.kind == KIND_MEMORY else None)
            if why is not None:
                _tally(tallies, why).add(node, None, None, False)
        else:
            name, asked, free, whole = lacking(task, node, amounts[node.index] if amounts else gpus.free_gpus(node))
            _tally(tallies, name).add(node, asked, free, asked > whole)
    causes = tuple(
        NodeCause(cause=name, nodes=t.nodes, never=t.never, asked=t.asked, free=t.free, best_node=t.best)
        for name, t in sorted(tallies.items(), key=lambda item: (-item[1].nodes, item[0]))
    )
    return Reason(
        code=_code(task, nodes, causes, required),
        task=task.spec.name or task.id,
        placed=placed,
        required=required,
        nodes=len(nodes),
        causes=causes,
    )


def _is_too_small(task: LiveTask, node: LiveNode) -> bool:
    """Whether it would not do either if it were empty and well."""
    _, asked, _, whole = lacking(task, node, 0.0)
    return asked > whole


def _tally(tallies: dict[str, _Tally], cause: str) -> _Tally:
    found = tallies.get(cause)
    if found is None:
        found = tallies[cause] = _Tally()
    return found


def _code(task: LiveTask, nodes: Sequence[LiveNode], causes: tuple[NodeCause, ...], required: int) -> ReasonCode:
    if sum(cause.nodes for cause in causes) < len(nodes):
        return "NextCycle"
    if all(cause.never for cause in causes):
        return "NeverFits"
    if required > 1:
        return "GangIncomplete"
    wanted = task.request[2] / 1000
    if wanted and all(cause.cause in ("gpu", *_STATIC) for cause in causes):
        free = sum(gpus.free_gpus(node) for node in nodes if static_cause(task, node) is None)
        return "Fragmented" if free >= wanted else "NoNodeFits"
    return "NoNodeFits"


#: Causes that pass, where the node is large enough.
_PASSING = ("notReady", "cordoned")
_STATIC = ("notReady", "cordoned", "taint", "nodeSelector", "nodeAffinity", "mig", "gpuMemoryUnknown", "gpuMemory")

_CAUSES = {
    "notReady": "not ready",
    "cordoned": "cordoned",
    "taint": "with a taint that it does not tolerate",
    "nodeSelector": "without the labels of its node selector",
    "nodeAffinity": "outside its node affinity",
    "mig": "of another MIG kind",
    "gpuMemoryUnknown": "with unknown GPU memory",
    "gpuMemory": "with GPUs of less memory than it asks for",
    "podAffinity": "without the pods that it wants to be near to",
    "podAntiAffinity": "with pods that it keeps away from, or that keep it away",
    "pods": "with no pod slot free",
    "limit": "where its queue would pass its limit",
}
_UNITS = {"gpu": "GPUs", "cpu": "CPU cores", "memory": "GB memory"}


def format_reason(reason: Reason) -> str:
    """The sentence of a reason."""
    if reason.code == "NonPreemptibleOverQuota":
        return _say_over_quota(reason)
    if reason.code == "OverLimit":
        return _say_over_limit(reason)
    if reason.code in ("NeverFits", "NoNodeFits", "GangIncomplete", "Fragmented"):
        return _say_no_node(reason)
    if reason.code == "WaitsForVictims":
        return f"Has a place that is being freed; waits for {_names(reason.waits_for)} to end."
    if reason.code == "PreemptionDelayNotElapsed":
        return f"Takes only what is free until {reason.until}: its preemption delay has not passed."
    if reason.code == "QueueDoesNotExist":
        return f"Queue {reason.queue} does not exist."
    if reason.code == "QueueIsNotALeaf":
        return f"Queue {reason.queue} has queues below it; only the lowest ones run workloads."
    if reason.code == "NextCycle":
        return "Room has become free at the end of this cycle; it is tried again in the next."
    if reason.code == "Gated":
        return "Waits for a scheduling gate to open."
    if reason.code == "NotReady":
        return f"Only {reason.placed} of the {reason.required} pods that it needs exist yet."
    return reason.detail or reason.code


def _names(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def _say_over_quota(reason: Reason) -> str:
    unit, quota_unit = _quota_units(reason.resource or "gpu")
    requested, quota, used = (amount(value, reason.resource) for value in (reason.requested, reason.quota, reason.used))
    return (
        f"Non-preemptible workload is over quota. Workload requested {requested} {unit}, but {reason.queue} quota is "
        f"{quota} {quota_unit}, while {used} {quota_unit} are already allocated for non-preemptible pods. "
        "Use a preemptible workload to go over quota."
    )


def _quota_units(resource: str) -> tuple[str, str]:
    return {"gpu": ("GPUs", "GPUs"), "cpu": ("CPU cores", "cores"), "memory": ("GB memory", "GB")}[resource]


def _say_over_limit(reason: Reason) -> str:
    resource = reason.resource or "gpu"
    what = {"gpu": "GPUs", "cpu": "CPU cores", "memory": "memory"}[resource]
    unit = {"gpu": "GPUs", "cpu": "cores", "memory": "GB"}[resource]
    limit, used, requested = (amount(value, resource) for value in (reason.limit, reason.used, reason.requested))
    return (
        f"{reason.queue} quota has reached the allowable limit of {what}. Limit is {limit} {unit}, "
        f"currently {used} {unit} allocated and workload requested {requested} {unit}"
    )


def amount(value: float | None, resource: str | None) -> str:
    """At most three decimals; -1 as Unlimited; CPU in cores, memory in GB."""
    if value is None or value == -1:
        return "Unlimited"
    if resource == "cpu":
        value = value / 1000
    elif resource == "memory":
        value = value / 1e9
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _say_no_node(reason: Reason) -> str:
    parts = [_say_cause(cause) for cause in reason.causes]
    causes = "; ".join(parts) if parts else "there are none"
    if reason.code == "NeverFits":
        opening = f"Pod {reason.task} can never fit on {_any_of(reason.nodes)}"
    elif reason.code == "Fragmented":
        opening = f"Enough GPUs are free, but not together: no node of {reason.nodes} has room for pod {reason.task}"
    elif reason.code == "GangIncomplete":
        opening = (
            f"Only {reason.placed} of {reason.required} pods that must start together find a place now; "
            f"no node of {reason.nodes} has room for pod {reason.task}"
        )
    else:
        opening = f"No node of {reason.nodes} has room for pod {reason.task} now"
    return f"{opening}: {causes}."


def _any_of(nodes: int | None) -> str:
    return "the only node" if nodes == 1 else f"any of the {nodes} nodes"


def _say_cause(cause: NodeCause) -> str:
    nodes = "1 node" if cause.nodes == 1 else f"{cause.nodes} nodes"
    lack = "lacks" if cause.nodes == 1 else "lack"
    if cause.cause in _CAUSES:
        return f"{nodes} {_CAUSES[cause.cause]}"
    unit = _UNITS.get(cause.cause, cause.cause)
    asked, free = amount(cause.asked, cause.cause), amount(cause.free, cause.cause)
    size = f" (more than {'it' if cause.nodes == 1 else 'any of them'} has at all)" if cause.never else ""
    return f"{nodes} {lack} {unit}: {asked} asked, at most {free} free on {cause.best_node}{size}"
