"""The result of a simulation in a cluster where tasks ask for whole GPUs and nothing else, computed on plain numbers.

The plain algorithm is `solver.simulate`, which evicts and places on the session itself and undoes it. Here a node is
three numbers, and only the usage of queues is changed and put back: the same result, several times faster. Called by
`solver` before it simulates a scenario; whatever it does not understand is simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.live import LiveJob, LiveNode, LiveTask
from fairlead.scheduling.model.queues import Amounts
from fairlead.scheduling.model.requests import KIND_WHOLE
from fairlead.scheduling.model.subgroups import next_request, tasks_to_place
from fairlead.scheduling.session.session import SchedulingSession
from fairlead.scheduling.solver.forecast import has_limit
from fairlead.scheduling.solver.scenarios import PlacementProbe, Unit
from fairlead.scheduling.solver.simulation import SimulationOrder
from fairlead.scheduling.solver.victims import held

#: GPUs that are idle, GPUs that are being released and not promised, and bookings that leave or are promised.
Room = list[int]
MayLeave = Callable[[PlacementProbe, Sequence[LiveJob]], bool]


class WholeGpuForecast:
    """For one probe. `fails` is true only if the simulation of a scenario would fail."""

    def __init__(self, probe: PlacementProbe, moves_only: bool, may_leave: MayLeave | None = None) -> None:
        """`moves_only`: a scenario fails too if one of its victims finds no place again.

        `may_leave`: it fails too if those that find none may not be evicted.
        """
        self.probe = probe
        self.moves_only = moves_only
        self.may_leave = may_leave
        self.session = probe.session
        self.simple: dict[str, bool] = {}
        self.tasks = tasks_to_place(probe.job, real=False)
        self.applies = (
            self.session.settings.placement.gpu == "binpack"
            and _is_simple(self.session, probe.job, self.tasks)
            and all(node.open_to_all for node in self.session.nodes)
        )

    def fails(self, units: Sequence[Unit]) -> bool:
        if not self.applies:
            return False
        jobs: dict[str, LiveJob] = {}
        evicted = 0
        for unit in units:
            job = unit[0].job
            jobs[job.id] = job
            evicted += len(unit)
            if not self._is_simple_victim(job):
                return False
        rooms = self._rooms(units, evicted + len(self.tasks))
        # A job that is evicted in part is not one of these.
        if rooms is None or evicted != sum(len(job.tasks) for job in jobs.values()):
            return False
        unplaced = self._find_unplaced(jobs, rooms)
        return unplaced is None or (self.may_leave is not None and not self.may_leave(self.probe, unplaced))

    def _is_simple_victim(self, job: LiveJob) -> bool:
        known = self.simple.get(job.id)
        if known is None:
            known = self.simple[job.id] = (
                not job.pending
                and len(job.pod_sets) == 1
                and job.pod_sets[0].minimum == len(job.tasks)
                and _is_simple(self.session, job, job.tasks)
                and all(
                    st.HELD[task.status] and task.leaving is None and task.charge == task.request for task in job.tasks
                )
            )
        return known

    def _rooms(self, units: Sequence[Unit], pods: int) -> dict[int, Room] | None:
        """Room on every node that has any once the units are evicted; None if pods could be short."""
        rooms: dict[int, Room] = {}
        nodes: dict[int, LiveNode] = dict(self.probe.nodes)
        for unit in units:
            for task in unit:
                nodes[task.home.index] = task.home
        for index, node in nodes.items():
            rooms[index] = [node.idle_gpu, node.releasing_gpu, node.unsettled]
        for unit in units:
            for task in unit:
                room = rooms[task.home.index]
                room[1] += task.gpu
                room[2] += 1
        # Each pod takes a GPU at least.
        if any(node.idle_pods < min(pods, rooms[index][0] + rooms[index][1]) for index, node in nodes.items()):
            return None
        return rooms

    def _find_unplaced(self, jobs: Mapping[str, LiveJob], rooms: dict[int, Room]) -> list[LiveJob] | None:
        """Victims that find no place again; None if the winner finds none, or if a victim does not and must."""
        session, winner = self.session, self.probe.job
        out: dict[str, Amounts] = {job.id: held(job) for job in jobs.values()}
        for job in jobs.values():
            session.charge_queue(job, out[job.id], -1)
        order = SimulationOrder(session, {**jobs, winner.id: winner}, out)
        is_placed = True
        while is_placed and (job_popped := order.pop()) is not None:
            if job_popped is winner:
                is_placed = _place(self.tasks, rooms)
                if not is_placed or (not self.moves_only and self.may_leave is None):
                    break
                session.charge_queue(winner, next_request(winner), 1)
                out[winner.id] = next_request(winner)
            elif _place(job_popped.pod_sets[0].tasks, rooms):
                session.charge_queue(job_popped, out.pop(job_popped.id), 1)
            else:
                is_placed = not self.moves_only
        for job_id, request in out.items():
            if job_id == winner.id:
                session.charge_queue(winner, request, -1)
            else:
                session.charge_queue(jobs[job_id], request, 1)
        return [job for job in jobs.values() if job.id in out] if is_placed else None


def _is_simple(session: SchedulingSession, job: LiveJob, tasks: Sequence[LiveTask]) -> bool:
    """Whole GPUs and nothing else, one pod set, no limits, and nothing that makes one node different from another."""
    root = job.root
    if root.groups or len(root.pod_sets) != 1 or root.topology is not None or root.pod_sets[0].topology is not None:
        return False
    return not has_limit(job) and all(
        task.kind == KIND_WHOLE
        and not (task.cpu or task.memory or task.ext or task.spec.nominated_node)
        and task.request_class.undemanding
        and not session.affinities.concerns(task)
        for task in tasks
    )


def _place(tasks: Sequence[LiveTask], rooms: dict[int, Room]) -> bool:
    """All of them or none: where it fits now, then on the fullest node, then the first by name."""
    done: list[tuple[Room, int, int]] = []
    for task in tasks:
        size, best, best_rank = task.gpu, None, (2, 0, 0)
        for index, (idle, releasing, unsettled) in rooms.items():
            free = idle + releasing
            if free >= size:
                rank = (0 if not unsettled or idle >= size else 1, free, index)
                if best is None or rank < best_rank:
                    best, best_rank = rooms[index], rank
        if best is None:
            for room, gpus, bookings in done:
                room[1] += gpus
                room[2] -= bookings
            return False
        # On the node that it leaves, the eviction is taken back.
        bookings = -1 if task.node is not None and task.node.index == best_rank[2] else 1
        best[1] -= size
        best[2] += bookings
        done.append((best, size, bookings))
    return True
