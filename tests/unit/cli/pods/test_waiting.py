"""The progress line of a workload that has no pods yet."""

from typing import cast

import pytest

from fairlead.cli.pods.waiting import progress_line
from fairlead.cli.session.session import ServerSession


@pytest.mark.parametrize(
    ("message", "want"),
    [
        (None, "train: Creating"),
        ("Creating", "train: Creating"),
        ("podman pulls the image x.", "train: Creating · podman pulls the image x"),
    ],
)
def test_a_phase_is_shown_once(message: str | None, want: str) -> None:
    # The server is asked only about pending workloads.
    nobody = cast(ServerSession, None)
    assert progress_line(nobody, {"name": "train", "phase": "Creating", "phaseMessage": message}) == want
