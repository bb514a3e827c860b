"""One line on why a workload waits, for one reader: what it waits for, who holds that and for how long. Pure.

The point comes first, because progress lines and tables show little more than 60 characters.
"""

from collections.abc import Sequence
from typing import NamedTuple

from fairlead.model.clock import DAY, SECOND, Millis
from fairlead.scheduling import Reason, format_reason
from fairlead.scheduling.messages import find_lack, format_lack, format_others, whole_of

_NAMED = 2
_MINUTE, _HOUR = 60 * SECOND, 3600 * SECOND


class HeadlineHolder(NamedTuple):
    #: As the reader may see it.
    workload: str
    #: Who submitted it: `you` or a name; empty if the reader may not know.
    owner: str
    since: Millis | None


def format_headline(reason: Reason, holders: Sequence[HeadlineHolder], now: Millis) -> str:
    """The sentence of the reason, with the holders if it waits for one resource on nodes that are large enough."""
    cause = find_lack(reason)
    if reason.code != "NoNodeFits" or cause is None or not holders:
        return format_reason(reason)
    others = format_others(reason)
    waiting = format_reason(reason).partition(":")[0]
    held_by = f"held by {_format_holders(holders, now)}"
    if cause.free:
        return f"{waiting}: {format_lack(cause)}, the rest is {held_by}{others}."
    return (
        f"{waiting}: {whole_of(cause)} {'is' if cause.largest == 1 and cause.nodes == 1 else 'are'} {held_by}{others}."
    )


def _format_holders(holders: Sequence[HeadlineHolder], now: Millis) -> str:
    sentences = [_format_holder(holder, now) for holder in holders]
    first, more = sentences[:_NAMED], len(sentences) - _NAMED
    if more > 0:
        return f"{', '.join(first)} and {more} {'other' if more == 1 else 'others'}"
    return " and ".join(first)


def _format_holder(holder: HeadlineHolder, now: Millis) -> str:
    facts = [holder.owner] if holder.owner else []
    if holder.since is not None:
        facts.append(format_span(now - holder.since))
    return f"{holder.workload} ({', '.join(facts)})" if facts else holder.workload


def format_span(span: Millis) -> str:
    """A duration in its largest unit: `40 s`, `12 min`, `3 h`, `2 d`."""
    for unit, name, most in ((SECOND, "s", _MINUTE), (_MINUTE, "min", _HOUR), (_HOUR, "h", 2 * DAY)):
        if span < most:
            return f"{max(span, 0) // unit} {name}"
    return f"{span // DAY} d"
