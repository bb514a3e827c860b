"""Placing the next tasks of a job: all of them or none. The allocate action and the solver's simulations share it."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.scheduling.fairness.quota import find_limit_breach, optimistic_request
from fairlead.scheduling.model.decisions import Reason
from fairlead.scheduling.model.live import LiveGroup, LiveJob, LiveNode, LivePodSet, LiveTask
from fairlead.scheduling.model.requests import KIND_CPU, KIND_MEMORY, KIND_MIG, KIND_WHOLE
from fairlead.scheduling.model.subgroups import member_key, tasks_to_place
from fairlead.scheduling.placement import gpus, scoring
from fairlead.scheduling.placement.predicates import fits_later, fits_now, static_cause
from fairlead.scheduling.placement.topology import Scores, narrow
from fairlead.scheduling.session.reasons import UNEXPLAINED, explain_task
from fairlead.scheduling.session.session import SchedulingSession

#: Costs of `defragment` are far below this.
COST_SCALE = 1_000_000


class PlacementAttempt:
    """One try to place a job on some nodes; `reason` tells why it failed, if wanted."""

    __slots__ = ("explain", "job", "members", "nodes", "pipeline_only", "placed", "reason", "session")

    def __init__(self, session: SchedulingSession, job: LiveJob, pipeline_only: bool, explain: bool) -> None:
        self.session = session
        self.job = job
        self.pipeline_only = pipeline_only
        #: Reasons cost time; simulations do without.
        self.explain = explain
        self.reason: Reason | None = None
        self.placed = 0
        self.nodes: Sequence[LiveNode] = ()
        self.members: set[int] | None = None

    def run(self, nodes: Sequence[LiveNode]) -> bool:
        self.nodes = nodes
        tasks = tasks_to_place(self.job, real=not self.pipeline_only)
        self.reason = find_limit_breach(self.job, optimistic_request(tasks))
        if self.reason is not None:
            return False
        return self._place_group(self.job.root, tasks, nodes, None)

    def _place_group(
        self, group: LiveGroup, tasks: list[LiveTask], nodes: Sequence[LiveNode], scores: Scores | None
    ) -> bool:
        """On the first of the node sets that its topology constraint leaves on which all members find their place."""
        if group.topology is None:
            return self._place_members(group, tasks, nodes, scores)
        narrowed = narrow(self.session.trees(), group, tasks, nodes)
        self.reason = narrowed.reason
        for node_set in narrowed.sets:
            mark = self.session.checkpoint()
            if self._place_members(group, tasks, node_set, narrowed.scores or scores):
                return True
            self.session.rollback(mark)
        return False

    def _place_members(
        self, group: LiveGroup, tasks: list[LiveTask], nodes: Sequence[LiveNode], scores: Scores | None
    ) -> bool:
        """Inner groups first, then pod sets, each in its order at this moment."""
        for inner in sorted(group.groups, key=member_key):
            own = {pod_set.name for pod_set in inner.all_pod_sets()}
            if not self._place_group(inner, [task for task in tasks if task.pod_set.name in own], nodes, scores):
                return False
        for pod_set in sorted(group.pod_sets, key=member_key):
            if not self._place_pod_set(pod_set, [t for t in tasks if t.pod_set.name == pod_set.name], nodes, scores):
                return False
        return True

    def _place_pod_set(
        self, pod_set: LivePodSet, tasks: list[LiveTask], nodes: Sequence[LiveNode], scores: Scores | None
    ) -> bool:
        if pod_set.topology is None:
            return self._place_tasks(tasks, nodes, scores)
        narrowed = narrow(self.session.trees(), pod_set, tasks, nodes)
        self.reason = narrowed.reason
        for node_set in narrowed.sets:
            mark = self.session.checkpoint()
            if self._place_tasks(tasks, node_set, narrowed.scores or scores):
                return True
            self.session.rollback(mark)
        return False

    def _place_tasks(self, tasks: list[LiveTask], nodes: Sequence[LiveNode], scores: Scores | None) -> bool:
        for task in tasks:
            if not self._place_task(task, nodes, scores):
                if self.explain:
                    self._explain(task, nodes, len(tasks))
                return False
            self.placed += 1
        return True

    def _explain(self, task: LiveTask, nodes: Sequence[LiveNode], required: int) -> None:
        """A lone task is explained when the cycle is over, as the cluster stands then; many never need it."""
        is_lone = required == 1 and nodes is self.session.nodes and not self.session.log
        if is_lone or not self.session.is_explained:
            self.reason = UNEXPLAINED
        else:
            self.reason = explain_task(self.session, task, nodes, self.placed, required)

    def _place_task(self, task: LiveTask, nodes: Sequence[LiveNode], scores: Scores | None) -> bool:
        if scores is None and self._may_use_index(task, nodes):
            best = self.session.node_index(task).best(lambda node: self._at_hand(task, node))
            if best is not None:
                place_task(self.session, task, best, self.pipeline_only)
            return best is not None
        for node in candidates(self.session, task, nodes, scores):
            if self._allowed(task, node):
                place_task(self.session, task, node, self.pipeline_only)
                return True
        return False

    def _may_use_index(self, task: LiveTask, nodes: Sequence[LiveNode]) -> bool:
        is_ranked = not task.spec.preferred_pod_affinity
        return not self.session.plain and nodes is self.nodes and task.kind != KIND_MIG and is_ranked

    def _at_hand(self, task: LiveTask, node: LiveNode) -> bool:
        """The index knows all nodes. What a simulation leaves out has no whole GPU, but perhaps a part of one."""
        if task.kind != KIND_WHOLE and self.nodes is not self.session.nodes:
            if self.members is None:
                self.members = {member.index for member in self.nodes}
            if node.index not in self.members:
                return False
        return self._allowed(task, node)

    def _allowed(self, task: LiveTask, node: LiveNode) -> bool:
        """What must hold on the chosen node beyond resources. GPU memory costs its queue differently per node."""
        affinities = self.session.affinities
        if affinities.concerns(task) and affinities.cause(task, node) is not None:
            return False
        return task.kind != KIND_MEMORY or find_limit_breach(self.job, node.charge(task)) is None


def candidates(
    session: SchedulingSession, task: LiveTask, nodes: Sequence[LiveNode], topology: Scores | None
) -> list[LiveNode]:
    """Nodes with room for the task, best first."""
    fitting = [node for node in nodes if static_cause(task, node) is None and fits_later(task, node)]
    if len(fitting) < 2:
        return fitting
    placement = session.settings.placement
    strategy = placement.cpu if task.kind == KIND_CPU else placement.gpu
    if strategy == "defragment":
        # Scores are whole numbers and costs small ones, so that a cost never outweighs a score.
        cost = session.fragmentation().rank
        scores = [scoring.urgent_score(task, node) - cost(task, node) / COST_SCALE for node in fitting]
    elif strategy == "spread":
        scores = [scoring.base_score(task, node, placement) + scoring.spreading_score(task, node) for node in fitting]
    else:
        low, high = scoring.packing_range(task, nodes)
        scores = [
            scoring.base_score(task, node, placement) + scoring.packing_score(task, node, low, high) for node in fitting
        ]
    if task.spec.preferred_pod_affinity:
        scores = [sum(both) for both in zip(scores, session.affinities.scores(task, fitting), strict=True)]
    if topology is not None:
        scores = [score + topology.get(node.index, 0) for score, node in zip(scores, fitting, strict=True)]
    order = sorted(range(len(fitting)), key=lambda i: (-scores[i], fitting[i].name))
    return [fitting[i] for i in order]


def place_task(session: SchedulingSession, task: LiveTask, node: LiveNode, pipeline_only: bool) -> None:
    """Allocate if it can start now, else pipeline."""
    if task.devices:
        _put_shared(session, task, node, pipeline_only)
    elif not pipeline_only and fits_now(task, node):
        session.allocate(task, node, ())
    else:
        session.pipeline(task, node, ())


def _put_shared(session: SchedulingSession, task: LiveTask, node: LiveNode, pipeline_only: bool) -> None:
    picks = gpus.pick(node, task, session.settings.placement.spreads_devices)
    now = not pipeline_only and fits_now(task, node)
    if now:
        # KAI would bind on more GPUs than are idle when it spreads over several devices, or joins one that is only
        # promised; two may not hold one.
        now = sum(group is None or group.allocated == 0 for group in picks) <= node.idle_gpu
        now = now and all(group is None or gpus.is_ready(node, group, task) for group in picks)
    groups = tuple(
        session.new_group(node, task, position) if group is None else group.id for position, group in enumerate(picks)
    )
    if now:
        session.allocate(task, node, groups)
    else:
        session.pipeline(task, node, groups)


def must_wait(job: LiveJob) -> bool:
    """A gang of which some tasks are only promised a place and too few have one really: then all of it waits."""
    for pod_set in job.pod_sets:
        pipelined = pod_set.pipelined
        if pipelined and pod_set.active - pipelined < pod_set.minimum:
            return True
    return False
