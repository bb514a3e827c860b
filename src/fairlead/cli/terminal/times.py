"""Times and durations for people: `3m`, `2h5m`, `4d`."""

from datetime import UTC, datetime


def age(moment: object, now: float) -> str:
    """The age of an ISO time."""
    if not moment:
        return ""
    return span(now - datetime.fromisoformat(str(moment)).timestamp())


def span(seconds: float | None) -> str:
    """A duration in at most two units."""
    if seconds is None:
        return ""
    remaining = max(int(seconds), 0)
    if remaining < 60:
        return f"{remaining}s"
    if remaining < 3600:
        return f"{remaining // 60}m{remaining % 60}s" if remaining < 600 else f"{remaining // 60}m"
    if remaining < 86_400:
        return f"{remaining // 3600}h{remaining % 3600 // 60}m"
    return f"{remaining // 86_400}d{remaining % 86_400 // 3600}h"


def shown_time(moment: object) -> str:
    """An ISO time without fractions of a second, in UTC."""
    if not moment:
        return ""
    return f"{datetime.fromisoformat(str(moment)).astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
