"""Time as whole milliseconds since 1970 in UTC: plain integers that sort and subtract.

The model reads no clock; whoever needs the time is handed a `Clock` by `app`.
"""

from collections.abc import Callable
from datetime import UTC, datetime

#: Milliseconds since 1970-01-01T00:00:00Z.
Millis = int
#: Returns the current time. No room reads the time in another way.
Clock = Callable[[], Millis]

SECOND: Millis = 1000
DAY: Millis = 86_400 * SECOND


def iso(instant: Millis) -> str:
    """The time as REST writes it: `2022-01-01T03:49:52.531Z`."""
    moment = datetime.fromtimestamp(instant / 1000, UTC)
    # `%Y` does not fill early years up to four digits.
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}.{instant % 1000:03d}Z"


def in_words(instant: Millis) -> str:
    """As messages to people say it, to the second."""
    return f"{datetime.fromtimestamp(instant / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def from_iso(text: str) -> Millis:
    """The time that an ISO 8601 string names; a string without a zone is read as UTC."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)
