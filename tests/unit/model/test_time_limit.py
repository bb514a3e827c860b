"""Times as sbatch writes them."""

import pytest

from fairlead.model.time_limit import read_slurm_time


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("30", 1800),
        ("30:15", 1815),
        ("12:00:00", 43_200),
        ("2-0", 172_800),
        ("1-12:30", 131_400),
        ("3-00:00:01", 259_201),
        ("0", None),
        ("UNLIMITED", None),
        ("8h", None),
        ("", None),
    ],
)
def test_read_slurm_time(text: str, want: int | None) -> None:
    assert read_slurm_time(text) == want
