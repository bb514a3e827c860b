"""Whether evicted tasks of whole GPUs all find a place again, in whatever order they are placed.

Each goes to the fullest node with room for it; a task of one GPU first to nodes with an idle GPU. A node with r free
GPUs has r // s slots of size s. A task of a multiple of s takes as many slots as it is large. A task of one GPU costs a
slot only if it enters a node with a multiple of s free; then it takes s of them to cost the next one. So tasks of one
GPU cost the most slots if they all come first: they fill node after node. If there are slots enough even then, no
other order fails.

A second, larger size S must be a multiple of s, and no node may have more than S free. Then a smaller task enters a
node with S free only if no other has room for it. As slots of size s suffice, more than enough such nodes are left.
"""

from __future__ import annotations

from collections.abc import Mapping


def all_fit_again(rooms: Mapping[int, int], idle: Mapping[int, int], sizes: Mapping[int, int]) -> bool:
    """False if there is no telling.

    `rooms`: free GPUs by node once all tasks are evicted; `idle`: those free before, of nodes that have some;
    `sizes`: numbers of tasks by size.
    """
    large = sorted(size for size in sizes if size > 1)
    if not large:
        return True
    size, largest = large[0], large[-1]
    if len(large) > 2 or max(idle.values(), default=0) >= size:
        return False
    slots = sum(room // size for room in rooms.values()) - sizes[size]
    if largest > size:
        if largest % size or max(rooms.values()) > largest or any(rooms[node] >= largest for node in idle):
            return False
        slots -= sizes[largest] * (largest // size)
    ones = sizes.get(1, 0)
    for room in (*sorted(rooms[node] for node in idle), *sorted(rooms[node] for node in rooms if node not in idle)):
        filled = min(ones, room)
        ones -= filled
        slots -= room // size - (room - filled) // size
        if not ones:
            break
    return slots >= 0
