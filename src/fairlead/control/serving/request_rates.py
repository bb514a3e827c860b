"""Counts the requests of one service in slices of time, for means over the last moments. Holds numbers only.

Used by `traffic.py`; times are seconds of one clock that never goes back.
"""

from fairlead.control.decide.autoscale import Rates

#: Into how many slices the longest window is cut.
SLICES = 60


class RateSlot:
    __slots__ = ("answers", "busy", "latency", "number", "requests")

    def __init__(self, number: int) -> None:
        self.number = number
        self.requests = 0
        #: Answers that ended, and the seconds that they took.
        self.answers = 0
        self.latency = 0.0
        #: The integral of requests at once over time.
        self.busy = 0.0


class Totals:
    """Over all time: requests, answers that ended, and the seconds that they took."""

    __slots__ = ("answers", "latency", "requests")

    def __init__(self) -> None:
        self.requests = 0
        self.answers = 0
        self.latency = 0.0

    def count(self, seconds: float) -> None:
        self.answers += 1
        self.latency += seconds


class RequestRates:
    def __init__(self, window: float, now: float) -> None:
        self._length = window / SLICES
        self._slices: list[RateSlot] = []
        self._since = now
        self._last = now
        self.in_flight = 0
        self.totals = Totals()

    def enter(self, now: float) -> None:
        self._advance(now)
        self._slice(now).requests += 1
        self.totals.requests += 1
        self.in_flight += 1

    def leave(self, now: float, seconds: float | None) -> None:
        """A request is over; `seconds` is how long its answer took, None where there was none to be timed."""
        self._advance(now)
        self.in_flight -= 1
        if seconds is not None:
            here = self._slice(now)
            here.answers += 1
            here.latency += seconds
            self.totals.count(seconds)

    def rates(self, now: float, window: float) -> Rates:
        """Means over the last `window` seconds, or since counting began if that is less."""
        self._advance(now)
        span = max(min(window, now - self._since), self._length)
        first = (now - window) / self._length
        counted = [each for each in self._slices if each.number + 1 > first]
        answers = sum(each.answers for each in counted)
        latency = sum(each.latency for each in counted)
        return Rates(
            concurrency=sum(each.busy for each in counted) / span,
            throughput=sum(each.requests for each in counted) / span,
            latency=latency / answers * 1000 if answers else None,
        )

    def _slice(self, now: float) -> RateSlot:
        number = int(now / self._length)
        if not self._slices or self._slices[-1].number != number:
            self._slices.append(RateSlot(number))
            oldest = number - SLICES
            while self._slices[0].number < oldest:
                del self._slices[0]
        return self._slices[-1]

    def _advance(self, now: float) -> None:
        """Add the time since the last change, slice by slice; what lies before the longest window is let go."""
        began, self._last = self._last, now
        if not self.in_flight:
            return
        began = max(began, now - SLICES * self._length)
        while began < now:
            here = self._slice(began)
            end = min(now, (here.number + 1) * self._length)
            if end <= began:
                end = min(now, began + self._length)
            here.busy += (end - began) * self.in_flight
            began = end
