"""Spans of time as people read them."""

import pytest

from fairlead.cli.terminal.times import age, shown_time, span


@pytest.mark.parametrize(
    ("seconds", "want"),
    [(None, ""), (0, "0s"), (59.9, "59s"), (61, "1m1s"), (600, "10m"), (3700, "1h1m"), (90_000, "1d1h"), (-5, "0s")],
)
def test_span(seconds: float | None, want: str) -> None:
    assert span(seconds) == want


def test_age() -> None:
    assert age("2026-01-01T00:00:00.500Z", 1_767_225_690.5) == "1m30s"
    assert age(None, 0) == ""


def test_shown_time() -> None:
    assert shown_time("2026-01-01T02:00:00.123+02:00") == "2026-01-01 00:00:00Z"
