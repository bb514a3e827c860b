"""Counts the requests of one service in slots of time, for moving averages. Holds numbers only.

Used by `traffic.py`. Times are seconds of a monotonic clock.
"""

from fairlead.control.decide.autoscale import Rates

#: The number of slots of the longest window.
SLOTS = 60


class RateSlot:
    __slots__ = ("answers", "busy", "latency", "number", "requests")

    def __init__(self, number: int) -> None:
        self.number = number
        self.requests = 0
        #: Completed answers, and the seconds that they took.
        self.answers = 0
        self.latency = 0.0
        #: The integral of concurrent requests over time.
        self.busy = 0.0


class Totals:
    """Since the start: requests, completed answers, and the seconds that they took."""

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
        self._length = window / SLOTS
        self._slots: list[RateSlot] = []
        self._since = now
        self._last = now
        self.in_flight = 0
        self.totals = Totals()

    def enter(self, now: float) -> None:
        self._advance(now)
        self._slot(now).requests += 1
        self.totals.requests += 1
        self.in_flight += 1

    def leave(self, now: float, seconds: float | None) -> None:
        """A request has ended; `seconds` is how long its answer took, None if it had none."""
        self._advance(now)
        self.in_flight -= 1
        if seconds is not None:
            slot = self._slot(now)
            slot.answers += 1
            slot.latency += seconds
            self.totals.count(seconds)

    def over(self, now: float, window: float) -> Rates:
        """Averages over the last `window` seconds, or since counting began if that is less."""
        self._advance(now)
        span = max(min(window, now - self._since), self._length)
        first = (now - window) / self._length
        counted = [each for each in self._slots if each.number + 1 > first]
        answers = sum(each.answers for each in counted)
        latency = sum(each.latency for each in counted)
        return Rates(
            concurrency=sum(each.busy for each in counted) / span,
            throughput=sum(each.requests for each in counted) / span,
            latency=latency / answers * 1000 if answers else None,
        )

    def _slot(self, now: float) -> RateSlot:
        number = int(now / self._length)
        if not self._slots or self._slots[-1].number != number:
            self._slots.append(RateSlot(number))
            oldest = number - SLOTS
            while self._slots[0].number < oldest:
                del self._slots[0]
        return self._slots[-1]

    def _advance(self, now: float) -> None:
        """Add the time since the last change, slot by slot; time before the longest window is dropped."""
        began, self._last = self._last, now
        if not self.in_flight:
            return
        began = max(began, now - SLOTS * self._length)
        while began < now:
            slot = self._slot(began)
            end = min(now, (slot.number + 1) * self._length)
            if end <= began:
                end = min(now, began + self._length)
            slot.busy += (end - began) * self.in_flight
            began = end
