"""The time at which a wait ends."""

import time

#: A socket with a timeout of 0 does not even read what has arrived already.
_NO_TIME = 0.001


class Deadline:
    """The time at which a wait ends; None is never."""

    def __init__(self, seconds: float | None) -> None:
        self._at = None if seconds is None else time.monotonic() + seconds

    def left(self) -> float | None:
        return None if self._at is None else max(self._at - time.monotonic(), _NO_TIME)

    def is_over(self) -> bool:
        return self.left() == _NO_TIME
