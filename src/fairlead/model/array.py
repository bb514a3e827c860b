"""The indices of an array of tasks, as Slurm writes them: `0-99%10`, `1,3,5-9`, `0-15:4`. Pure."""

import re
from collections.abc import Iterable

#: The annotation that names the indices of a workload's pods; without it they are counted from 0.
ANNOTATION = "fairlead/array"
#: The variable in which a pod finds its index.
VARIABLE = "FAIRLEAD_ARRAY_INDEX"
_PART = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")
_MAX_TASKS = 100_000


def read_array(text: str) -> tuple[tuple[int, ...], int | None]:
    """The indices, and how many may run at once if that is limited; raises ValueError if it is not an array."""
    parts, percent, limit = text.strip().partition("%")
    indices: dict[int, None] = {}
    for part in parts.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"'{part}' is not an index or a range such as 0-99")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or step < 1 or (last - first) // step >= _MAX_TASKS:
            raise ValueError(
                f"'{part}' is not a range from a smaller to a larger index of at most {_MAX_TASKS:,} tasks"
            )
        indices |= dict.fromkeys(range(first, last + 1, step))
    if percent and not (limit.isdecimal() and int(limit) > 0):
        raise ValueError(f"'%{limit}' must be % followed by how many may run at once")
    if len(indices) > _MAX_TASKS:
        raise ValueError(f"an array has at most {_MAX_TASKS:,} tasks")
    return tuple(indices), min(int(limit), len(indices)) if percent else None


def indices_of(text: str, tasks: int) -> tuple[int, ...]:
    """The index of each task as an annotation says; tasks that it does not name have their position, from 0."""
    try:
        indices = read_array(text)[0]
    except ValueError:
        indices = ()
    return (*indices[:tasks], *range(len(indices), tasks))


def read_positions(text: str) -> frozenset[int]:
    """Positions written as `0-4,7`; none if it is empty or something else."""
    try:
        return frozenset(read_array(text)[0])
    except ValueError:
        return frozenset()


def write_positions(positions: Iterable[int]) -> str:
    """Positions as `0-4,7`, in their order."""
    ranges: list[tuple[int, int]] = []
    for position in sorted(positions):
        if ranges and position == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], position)
        else:
            ranges.append((position, position))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def split_into_steps(indices: Iterable[int]) -> list[tuple[int, int, int]]:
    """Indices, in their order, as ranges: (first, step, number of indices)."""
    ranges: list[tuple[int, int, int]] = []
    for index in indices:
        first, step, number = ranges[-1] if ranges else (0, 0, 0)
        if number == 1:
            ranges[-1] = (first, index - first, 2)
        elif number and index == first + step * number:
            ranges[-1] = (first, step, number + 1)
        else:
            ranges.append((index, 1, 1))
    return ranges
