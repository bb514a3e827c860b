"""Which devices of its node a task gets. The rules count GPUs; only what is bound now needs an index.

Lowest free index first. A device is free when no task that is on the node, or still leaving it, holds it.
"""

from __future__ import annotations

from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.live import LiveNode, LiveTask
from fairlead.scheduling.session.session import SchedulingSession


class Devices:
    """Devices in use per node, and the device of every shared GPU."""

    def __init__(self, session: SchedulingSession) -> None:
        self.taken: dict[str, set[int]] = {node.name: set() for node in session.nodes}
        self.shared: dict[tuple[str, str], int] = {}
        #: Ids under which new shared GPUs become known, by the id used during the cycle.
        self.names: dict[str, str] = {}
        unknown: list[LiveTask] = []
        for task in (*(task for job in session.jobs.values() for task in job.tasks), *session.foreign_tasks):
            if st.USED[task.first_status] and task.first_status != st.PIPELINED and task.spec.node in self.taken:
                if task.spec.devices:
                    self._hold(task)
                elif task.gpu or task.spec.gpu_groups:
                    unknown.append(task)
        for task in unknown:
            self._guess(task)

    def _hold(self, task: LiveTask) -> None:
        node = task.spec.node or ""
        self.taken[node].update(task.spec.devices)
        for group, device in zip(task.spec.gpu_groups, task.spec.devices, strict=False):
            self.shared[node, group] = device

    def _guess(self, task: LiveTask) -> None:
        """A snapshot may leave devices out: then placed tasks are taken to hold the lowest free ones."""
        node = task.spec.node or ""
        for group in task.spec.gpu_groups:
            if (node, group) not in self.shared:
                self.shared[node, group] = self._lowest(node)
        for _ in range(task.gpu):
            self._lowest(node)

    def _lowest(self, node: str) -> int:
        used = self.taken[node]
        index = 0
        while index in used:
            index += 1
        used.add(index)
        return index

    def take(self, task: LiveTask) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Final group ids and devices of a task that is bound now."""
        node = task.home
        if not task.groups:
            return (), tuple(self._lowest(node.name) for _ in range(task.gpu))
        pairs = [self._group(node, task, group) for group in task.groups]
        return tuple(group for group, _ in pairs), tuple(device for _, device in pairs)

    def _group(self, node: LiveNode, task: LiveTask, group: str) -> tuple[str, int]:
        name = self.names.get(group, group)
        device = self.shared.get((node.name, name))
        if device is None:
            device = self._lowest(node.name)
            name = self.names[group] = f"{node.name}-{device}-{task.id}"
            self.shared[node.name, name] = device
        return name, device
