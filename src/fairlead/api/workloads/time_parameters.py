"""Query parameters that name a time in the past: an ISO time, or a revision of the store."""

from fairlead.api.http.body import query_text, wrong_parameter
from fairlead.api.http.operation import Call, Parameter
from fairlead.control.cycles.load import load_time_of
from fairlead.model.clock import Millis, from_iso

AT = Parameter(
    name="at",
    schema={"type": "string"},
    description="Ask about the last scheduling cycle at or before this time (ISO 8601), or at this revision.",
)
#: A number with more digits is not a revision.
_DIGITS = 15


async def read_time(call: Call, name: str) -> Millis | None:
    """The time that a parameter names; None if it is not given."""
    text = query_text(call, name)
    if not text:
        return None
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS:
        return await load_time_of(call.context, int(text))
    try:
        return from_iso(text)
    except (ValueError, OverflowError):
        raise wrong_parameter(name, "must be a time such as 2026-10-01T08:00:00Z, or a revision") from None
