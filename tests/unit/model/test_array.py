"""Indices of an array of tasks, as Slurm writes them."""

import pytest

from fairlead.model.array import read_array


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
