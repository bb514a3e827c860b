"""Tasks that are said to fit again do so in every order that is tried; compared with placing them one by one."""

import random

import pytest

from fairlead.scheduling.solver.packing import all_fit_again


def fit_in_order(rooms: dict[int, int], idle: dict[int, int], order: list[int]) -> bool:
    """The plain way: where it fits now, then on the fullest node, then the first by name."""
    left = dict(rooms)
    for size in order:
        fitting = [node for node, room in left.items() if room >= size]
        if not fitting:
            return False
        left[min(fitting, key=lambda node: (idle.get(node, 0) < size, left[node], node))] -= size
    return True


@pytest.mark.parametrize("seed", range(300))
def test_what_is_said_to_fit_fits_in_any_order(seed: int) -> None:
    dice = random.Random(seed)
    capacity, choices = dice.choice(((8, (1, 1, 4, 8)), (8, (1, 2, 8)), (8, (1, 1, 1, 4)), (6, (1, 3, 6)), (8, (4, 8))))
    rooms, idle, tasks = {}, {}, []
    for node in range(dice.randint(2, 6)):
        left, gone = dice.randint(1, capacity), 0
        if dice.random() < 0.2:
            idle[node] = dice.randint(1, 3)
            left -= idle[node]
        while (size := dice.choice(choices)) <= left - gone:
            gone += size
            tasks.append(size)
        rooms[node] = gone + idle.get(node, 0)
    sizes = {size: tasks.count(size) for size in set(tasks)}
    if all_fit_again(rooms, idle, sizes):
        orders = [sorted(tasks), sorted(tasks, reverse=True), *(dice.sample(tasks, len(tasks)) for _ in range(60))]
        assert all(fit_in_order(rooms, idle, order) for order in orders)


@pytest.mark.parametrize(
    ("rooms", "idle", "sizes", "want"),
    [
        pytest.param([8, 8], {}, {1: 8, 8: 1}, True, id="ones-fill-one-node"),
        pytest.param([5, 5, 5], {}, {1: 3, 4: 3}, False, id="ones-break-up-a-slot"),
        pytest.param([1, 1, 1, 4, 4, 4], {}, {1: 3, 4: 3}, True, id="ones-fill-small-gaps-first"),
        pytest.param([4, 8, 8], {}, {1: 8, 4: 1, 8: 1}, True, id="three-sizes"),
        pytest.param([5, 4], {0: 1}, {1: 4, 4: 1}, True, id="idle-gpus-first"),
        pytest.param([8, 8], {0: 1}, {1: 3, 4: 1, 8: 1}, False, id="an-idle-gpu-beside-an-empty-node"),
        pytest.param([8, 8], {}, {2: 2, 4: 1, 8: 1}, False, id="too-many-sizes"),
        pytest.param([6, 6], {}, {1: 12}, True, id="ones-only"),
    ],
)
def test_what_is_known(rooms: list[int], idle: dict[int, int], sizes: dict[int, int], want: bool) -> None:
    assert all_fit_again(dict(enumerate(rooms)), idle, sizes) is want
