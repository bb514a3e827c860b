"""States of a task inside a cycle as small integers, and the sets of states that the rules speak of."""

from __future__ import annotations

from typing import get_args

from fairlead.scheduling.model.snapshot import TaskStatus

#: As a snapshot writes them, in this order.
NAMES: tuple[str, ...] = get_args(TaskStatus)
(
    PENDING,
    GATED,
    ALLOCATED,
    PIPELINED,
    BINDING,
    BOUND,
    RUNNING,
    RELEASING,
    STUCK,
    SUCCEEDED,
    FAILED,
    UNKNOWN,
    DELETED,
) = range(len(NAMES))
BY_NAME = {name: number for number, name in enumerate(NAMES)}


def _table(*members: int) -> tuple[int, ...]:
    return tuple(1 if number in members else 0 for number in range(len(NAMES)))


#: Holds its place or is promised one.
ACTIVE = _table(ALLOCATED, PIPELINED, BINDING, BOUND, RUNNING)
#: Occupies its node or will: the active ones and those on their way out.
USED = _table(ALLOCATED, PIPELINED, BINDING, BOUND, RUNNING, RELEASING, STUCK)
#: Counts in the usage of its queue when a cycle begins.
HELD = _table(ALLOCATED, BINDING, BOUND, RUNNING)
ALIVE = _table(PENDING, GATED, ALLOCATED, PIPELINED, BINDING, BOUND, RUNNING)
