"""Codes of links that work once and only for a short time. They are kept in memory, by the server that made them."""

import secrets
from typing import Generic, NamedTuple, TypeVar

from fairlead.model.clock import SECOND, Clock, Millis

T = TypeVar("T")
LINK_LIFETIME: Millis = 120 * SECOND
_MAX_CODES = 10_000


class _Entry(NamedTuple, Generic[T]):
    value: T
    expires: Millis


class OneTimeCodes(Generic[T]):
    """Codes, and what each of them stands for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: dict[str, _Entry[T]] = {}

    def issue(self, value: T) -> str:
        now = self._clock()
        if len(self._entries) >= _MAX_CODES:
            self._entries = {code: entry for code, entry in self._entries.items() if entry.expires > now}
        code = secrets.token_urlsafe(24)
        self._entries[code] = _Entry(value, now + LINK_LIFETIME)
        return code

    def redeem(self, code: str) -> T | None:
        """What the code stands for; None if it is unknown, was used, or has expired. It cannot be used again."""
        entry = self._entries.pop(code, None)
        return entry.value if entry is not None and entry.expires > self._clock() else None
