"""Proofs that a search or a scenario must fail, so that it is not tried.

A bound says no only if every simulation would fail. The plain search tries all of them and has the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.scheduling.model.live import LiveTask
from fairlead.scheduling.model.requests import KIND_WHOLE
from fairlead.scheduling.placement.free_gpus import count_slots
from fairlead.scheduling.session.session import SchedulingSession
from fairlead.scheduling.solver.filters import EPSILON, asked_gpus, freed_gpus
from fairlead.scheduling.solver.scenarios import PlacementProbe, Unit


class RoomForAll:
    """Each node holds a whole number of equal tasks: is there room for all tasks once the victims are gone?"""

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
                    self.base[task.node.index] += at_max_freed(task)
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
                    more[index] = more.get(index, 0) + at_max_freed(task)
        held = self.held
        for index, amount in more.items():
            before = self.base.get(index)
            held += self._fit((self.exact[index] if before is None else before) + amount)
            held -= 0 if before is None else self._fit(before)
        return held >= self.count


def at_max_freed(task: LiveTask) -> float:
    """GPUs that a victim frees. The quota of a portion is rounded, so the portion itself counts if it is larger."""
    return max(freed_gpus(task), task.portion * task.devices)


def is_short(tasks: Sequence[LiveTask], free: float, max_freed: float | None) -> bool:
    """Whether the tasks request more GPUs than are free and may be taken together.

    Each queue gives strictly less than its part of `max_freed`, so reaching that sum exactly is not enough.
    """
    if max_freed is None:
        return False
    missing = sum(asked_gpus(task) for task in tasks) - free
    return missing > EPSILON and missing >= max_freed - EPSILON


def has_slots(session: SchedulingSession, tasks: Sequence[LiveTask], victims: Iterable[LiveTask]) -> bool:
    """Whether the tasks could find room if some or all of these victims were moved, and all of them found room again.

    Take any size: a node has so many slots of it, and a task of n times the size takes at least n of them wherever it
    goes. A victim that stays where it is takes as many from both sides, so what fails for all victims fails for some.
    """
    sizes = [task.gpu for task in tasks if task.kind == KIND_WHOLE]
    if len(sizes) < len(tasks):
        return True
    free = session.free_gpus()
    freed: dict[int, float] = {}
    for task in victims:
        if task.node is not None:
            index = task.node.index
            freed[index] = freed.get(index, 0) + at_max_freed(task)
            # A node that is booked above its capacity may not get its own tasks back.
            if task.kind == KIND_WHOLE and free.exact[index] >= 0:
                sizes.append(task.gpu)
    for size in set(sizes):
        slots = free.slots(size)
        for index, amount in freed.items():
            before = free.exact[index]
            slots += count_slots(before + amount, size) - count_slots(before, size)
        if slots < sum(other // size for other in sizes):
            return False
    return True
