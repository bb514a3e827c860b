"""Times that people write: `14:05`, `2026-10-01 08:00`, `10m` before now. Without a zone they are in UTC, as shown."""

from datetime import UTC, datetime, timedelta

from fairlead.cli.command import Invocation
from fairlead.cli.flags import UsageError, read_duration

_DAY = timedelta(days=1)


def read_time(invocation: Invocation, flag: str, end: float) -> float:
    """Seconds since 1970: a duration before `end`, a time of day (the last one before `end`), or a date and time."""
    text = str(invocation.get(flag))
    try:
        return end - read_duration(text)
    except ValueError:
        pass
    latest = datetime.fromtimestamp(end, UTC)
    try:
        if ":" in text and "-" not in text:
            moment = datetime.fromisoformat(f"{latest:%Y-%m-%d}T{text}")
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return (moment if moment <= latest else moment - _DAY).timestamp()
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--{flag} must be like 30m, 14:05, 2026-10-01 or 2026-10-01T08:00, not '{text}'.") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(max(0.0, seconds), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
