"""Why a job waits: the causes per node, counted. `messages.py` makes a sentence of them when someone reads it."""

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
    """One cause while nodes are counted, with the node that has most of the resource free and the largest node."""

    __slots__ = ("asked", "best", "free", "largest", "largest_node", "never", "nodes")

    def __init__(self) -> None:
        self.nodes = 0
        self.never = True
        self.asked: float | None = None
        self.free: float | None = None
        self.best: str | None = None
        self.largest: float | None = None
        self.largest_node: str | None = None

    def add(self, node: LiveNode, never: bool) -> None:
        """Count a node that refuses the task for another cause than a missing amount."""
        self.nodes += 1
        if self.best is None or (self.never and not never):
            self.best = node.name
        self.never = self.never and never

    def add_lack(self, node: LiveNode, requested: float, free: float, whole: float) -> None:
        """Count a node that has too little free of its `whole` amount."""
        self.nodes += 1
        self.never = self.never and requested > whole
        if self.free is None or free > self.free:
            self.asked, self.free, self.best = requested, free, node.name
        if self.largest is None or whole > self.largest:
            self.largest, self.largest_node = whole, node.name

    def cause(self, name: str) -> NodeCause:
        return NodeCause(
            cause=name,
            nodes=self.nodes,
            never=self.never,
            asked=self.asked,
            free=self.free,
            best_node=self.best,
            largest=self.largest,
            largest_node=self.largest_node,
        )


def explain_task(
    session: SchedulingSession, task: LiveTask, nodes: Sequence[LiveNode], placed: int, required: int
) -> Reason:
    """Count, over the nodes, what keeps this task off each of them. Equal tasks are refused alike."""
    gang = _gang_size(task) if required > 1 else 1
    key = (task.request_class, required, gang)
    alike = not session.log and nodes is session.nodes and not session.affinities.concerns(task)
    if alike and key in session.known_reasons and session.known_reasons[key][0] == session.commits:
        known = session.known_reasons[key][1]
        return msgspec.structs.replace(known, task=task.spec.name or task.id)
    reason = _explain(session, task, nodes, placed, required)
    room = _count_room(task, session.nodes) if gang > 1 and reason.code == "GangIncomplete" else gang
    if room < gang:
        reason = msgspec.structs.replace(reason, code="NeverFits", placed=room, required=gang)
    if alike:
        session.known_reasons[key] = (session.commits, reason)
    return reason


def _explain(
    session: SchedulingSession, task: LiveTask, nodes: Sequence[LiveNode], placed: int, required: int
) -> Reason:
    tallies: dict[str, _Tally] = {}
    amounts = None if session.log else session.free_gpus().amounts
    for node in nodes:
        cause = static_cause(task, node)
        if cause is not None:
            _tally(tallies, cause).add(node, cause not in _PASSING or _is_too_small(task, node))
        elif fits_later(task, node):
            why = session.affinities.cause(task, node) or ("limit" if task.kind == KIND_MEMORY else None)
            if why is not None:
                _tally(tallies, why).add(node, False)
        else:
            name, requested, free, whole = lacking(task, node, amounts[node.index] if amounts else gpus.free_gpus(node))
            _tally(tallies, name).add_lack(node, requested, max(0, free), whole)
    causes = tuple(
        tally.cause(name) for name, tally in sorted(tallies.items(), key=lambda item: (-item[1].nodes, item[0]))
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
    """Whether the node could not take the task even if it were empty and ready."""
    _, requested, _, whole = lacking(task, node, 0.0)
    return requested > whole


def _gang_size(task: LiveTask) -> int:
    """How many tasks its job needs at once; 1, which is always enough to ask, if they are not all alike."""
    job = task.job
    if job.spec.groups or job.spec.min_sub_group is not None:
        return 1
    is_uniform = all(other.request_class is task.request_class for other in job.tasks)
    return sum(pod_set.minimum for pod_set in job.pod_sets) if is_uniform else 1


def _count_room(task: LiveTask, nodes: Sequence[LiveNode]) -> int:
    """How many such tasks fit at once, at most, if all nodes are empty and ready."""
    room = 0
    for node in nodes:
        if static_cause(task, node) in (None, *_PASSING):
            room += _room_on(task, node)
    return room


def _room_on(task: LiveTask, node: LiveNode) -> int:
    amounts = [(task.cpu, node.allocatable_cpu), (task.memory, node.allocatable_memory), (1, node.allocatable_pods)]
    if task.gpu:
        amounts.append((task.gpu, node.gpu_count))
    room = min(int(whole // requested) for requested, whole in amounts if requested)
    if task.devices:
        share = node.shared_memory(task)
        per_gpu = node.gpu_memory // share if share else 0
        room = min(room, node.gpu_count // task.devices * per_gpu if per_gpu else room)
    return room


def _tally(tallies: dict[str, _Tally], cause: str) -> _Tally:
    tally = tallies.get(cause)
    if tally is None:
        tally = tallies[cause] = _Tally()
    return tally


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


#: Causes that can pass if the node is large enough.
_PASSING = ("notReady", "cordoned")
_STATIC = ("notReady", "cordoned", "taint", "nodeSelector", "nodeAffinity", "mig", "gpuMemoryUnknown", "gpuMemory")
