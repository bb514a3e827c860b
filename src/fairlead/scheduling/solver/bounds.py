"""Proofs that a search or a scenario must fail, so that it need not be tried.

The plain search tries them all and finds the same. A bound only ever says no where every simulation would.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.scheduling.model.live import LiveTask
from fairlead.scheduling.solver.filters import EPSILON, asked_gpus, freed_gpus
from fairlead.scheduling.solver.scenarios import PlacementProbe, Unit


class RoomForAll:
    """Nodes hold a whole number of equal tasks each: do they hold enough of them when all victims are gone?"""

    def __init__(self, probe: PlacementProbe) -> None:
        demands = [asked_gpus(task) for task in probe.tasks]
        self.count = len(demands)
        self.demand = demands[0] if min(demands) == max(demands) else 0
        self.exact = probe.session.free_gpus().exact
        self.base: dict[int, float] = {}
        self.held = 0
        if self.demand:
            for index in probe.nodes:
                self.base[index] = self.exact[index]
            for task in probe.loaded_tasks:
                if task.node is not None:
                    self.base[task.node.index] += at_most_freed(task)
            self.held = sum(self._fit(amount) for amount in self.base.values())

    def _fit(self, amount: float) -> int:
        return max(0, int((amount + EPSILON) / self.demand))

    def is_there(self, units: Sequence[Unit]) -> bool:
        if not self.demand:
            return True
        more: dict[int, float] = {}
        for unit in units:
            for task in unit:
                if task.node is not None:
                    index = task.node.index
                    more[index] = more.get(index, 0) + at_most_freed(task)
        held = self.held
        for index, amount in more.items():
            before = self.base.get(index)
            held += self._fit((self.exact[index] if before is None else before) + amount)
            held -= 0 if before is None else self._fit(before)
        return held >= self.count


def at_most_freed(task: LiveTask) -> float:
    """GPUs that a victim gives back; the quota of a portion is rounded, so the portion itself counts if it is more."""
    return max(freed_gpus(task), task.portion * task.devices)


def is_short(tasks: Sequence[LiveTask], free: float, most_freed: float | None) -> bool:
    """Whether even with all that may be taken there are fewer GPUs than the tasks ask for.

    Each queue gives strictly less than `most_freed` counts for it, so reaching that sum exactly is not enough.
    """
    if most_freed is None:
        return False
    missing = sum(asked_gpus(task) for task in tasks) - free
    return missing > EPSILON and missing >= most_freed - EPSILON
