"""Indices of an array of tasks, as Slurm writes them."""

import pytest

from fairlead.model.array import indices_of, read_array, read_positions, split_into_steps, write_positions


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("0-3", ((0, 1, 2, 3), None)),
        ("0-99%10", (tuple(range(100)), 10)),
        ("1,3,5-9:2", ((1, 3, 5, 7, 9), None)),
        ("7", ((7,), None)),
        ("0-1%9", ((0, 1), 2)),
    ],
)
def test_read(text: str, want: tuple[tuple[int, ...], int | None]) -> None:
    assert read_array(text) == want


@pytest.mark.parametrize(
    "text", ["", "a", "3-1", "0-9%", "0-9%x", "0-9%0", "0-9:0", "-1", "0-200000", "0-60000,70000-130000"]
)
def test_what_is_not_an_array(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_array(text)


@pytest.mark.parametrize(
    ("text", "tasks", "want"),
    [
        ("1-3", 3, (1, 2, 3)),
        ("5", 3, (5, 1, 2)),
        ("1-9", 2, (1, 2)),
        ("", 2, (0, 1)),
        ("what", 2, (0, 1)),
    ],
    ids=["as many as tasks", "fewer", "more", "none", "not an array"],
)
def test_indices_of_tasks(text: str, tasks: int, want: tuple[int, ...]) -> None:
    assert indices_of(text, tasks) == want


@pytest.mark.parametrize(
    ("text", "want"), [("", set()), ("0-2,5", {0, 1, 2, 5}), ("3", {3})], ids=["none", "ranges", "one"]
)
def test_positions(text: str, want: set[int]) -> None:
    assert read_positions(text) == want
    assert write_positions(want) == text


def test_invalid_positions() -> None:
    assert read_positions("by hand") == frozenset()


@pytest.mark.parametrize(
    ("indices", "want"),
    [
        ((), []),
        ((7,), [(7, 1, 1)]),
        ((1, 2, 3, 10, 20), [(1, 1, 3), (10, 10, 2)]),
        ((5, 3, 1, 9), [(5, -2, 3), (9, 1, 1)]),
    ],
    ids=["none", "one", "two ranges", "backwards"],
)
def test_steps(indices: tuple[int, ...], want: list[tuple[int, int, int]]) -> None:
    assert split_into_steps(indices) == want
