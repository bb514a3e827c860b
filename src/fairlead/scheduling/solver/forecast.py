"""The result of a simulation among equal tasks, computed without placing anything.

Suppose that winner and victims request the same, and that victims are whole gangs that are placed again in one step.
Then each node holds a number of such tasks, each evicted task makes room for exactly one, and it does not matter who
gets which place. The result depends only on which victims go before the winner, which follows from the order of queues
and their usage. The plain algorithm is `solver.simulate`: the same result, a hundred times slower for large gangs.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.live import LiveJob, LiveNode
from fairlead.scheduling.model.queues import INFINITE, Amounts
from fairlead.scheduling.model.requests import KIND_WHOLE
from fairlead.scheduling.placement.predicates import static_cause
from fairlead.scheduling.session.session import SchedulingSession
from fairlead.scheduling.solver.scenarios import PlacementProbe, Unit
from fairlead.scheduling.solver.simulation import SimulationOrder

#: With fewer victims a simulation takes no longer than a forecast.
WORTHWHILE = 8


class Forecast:
    """For one probe. `fails` is true only if the simulation of a scenario would fail."""

    def __init__(self, probe: PlacementProbe) -> None:
        self.probe = probe
        self.session = probe.session
        self.request_class = probe.tasks[0].request_class
        self.applies = _is_plain(self.session, probe)
        self.free = sum(slots(node, probe) for node in probe.nodes.values()) if self.applies else 0
        self.simple: dict[str, bool] = {}

    def fails(self, units: Sequence[Unit]) -> bool:
        if not self.applies or sum(len(unit) for unit in units) < WORTHWHILE:
            return False
        slots_used: dict[str, int] = {}
        jobs: dict[str, LiveJob] = {}
        for unit in units:
            job = unit[0].job
            slots_used[job.id] = slots_used.get(job.id, 0) + len(unit)
            jobs[job.id] = job
        for job in jobs.values():
            if not self._comes_back_whole(job, slots_used[job.id]):
                return False
        return self._room_at_its_turn(jobs, slots_used) < len(self.probe.tasks)

    def _comes_back_whole(self, job: LiveJob, slots_used: int) -> bool:
        known = self.simple.get(job.id)
        if known is None:
            known = self.simple[job.id] = self._is_simple(job)
        return known and slots_used == len(job.tasks)

    def _is_simple(self, job: LiveJob) -> bool:
        root = job.root
        if root.groups or len(root.pod_sets) != 1 or root.topology is not None or job.pending:
            return False
        pod_set = root.pod_sets[0]
        if pod_set.topology is not None or not 1 <= pod_set.minimum == len(job.tasks):
            return False
        return all(
            task.request_class is self.request_class
            and st.HELD[task.status]
            # What was moved in this cycle may also return to the node that it is leaving.
            and task.leaving is None
            and task.node is not None
            and static_cause(task, task.node) is None
            and not self.session.affinities.concerns(task)
            for task in job.tasks
        ) and not has_limit(job)

    def _room_at_its_turn(self, jobs: dict[str, LiveJob], slots_used: dict[str, int]) -> int:
        """Places that are free when the winner is popped: those free now, and those of victims that come after it."""
        session, one = self.session, self.request_class.request
        requests: dict[str, Amounts] = {}
        for job in jobs.values():
            count = slots_used[job.id]
            requests[job.id] = (one[0] * count, one[1] * count, one[2] * count)
            session.charge_queue(job, requests[job.id], -1)
        order = SimulationOrder(session, {**jobs, self.probe.job.id: self.probe.job}, requests)
        room = self.free + sum(slots_used.values())
        while (job_popped := order.pop()) is not None and job_popped is not self.probe.job:
            room -= slots_used[job_popped.id]
            session.charge_queue(job_popped, requests.pop(job_popped.id), 1)
        for job_id, request in requests.items():
            session.charge_queue(jobs[job_id], request, 1)
        return room


def _is_plain(session: SchedulingSession, probe: PlacementProbe) -> bool:
    """Whole GPUs, all tasks equal, one pod set, nothing that makes one node different from another."""
    request_class = probe.tasks[0].request_class
    root = probe.job.root
    if request_class.kind != KIND_WHOLE or request_class.ext or root.groups or len(root.pod_sets) != 1:
        return False
    if root.topology is not None or root.pod_sets[0].topology is not None or has_limit(probe.job):
        return False
    return all(task.request_class is request_class and not session.affinities.concerns(task) for task in probe.tasks)


def has_limit(job: LiveJob) -> bool:
    """With limits, or quotas that bind, a job may be refused at its turn."""
    return not job.preemptible or any(limit != INFINITE for queue in job.queue.path for limit in queue.limit)


def slots(node: LiveNode, probe: PlacementProbe) -> int:
    """How many of the probed tasks fit on what is idle or being released."""
    task = probe.tasks[0]
    if static_cause(task, node) is not None:
        return 0
    count = min(node.idle_pods + node.releasing_pods, (node.idle_gpu + node.releasing_gpu) // task.gpu)
    for requested, free in (
        (task.cpu, node.idle_cpu + node.releasing_cpu),
        (task.memory, node.idle_memory + node.releasing_memory),
    ):
        if free < requested:
            return 0
        if requested:
            count = min(count, free // requested)
    return max(0, count)
