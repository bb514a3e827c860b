"""Generates ids of records and suffixes of names. `app` puts them into the context."""

import os
import secrets
import string

from fairlead.model.clock import Clock

_SUFFIX_ALPHABET = string.ascii_lowercase + string.digits


class GrowingIds:
    """UUIDs of version 7: they begin with the time, so that new records are neighbours in the database's index.

    Random bytes are read from the system in blocks, because one call per id would cost more than everything else.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._drawn = b""
        self._position = 0

    def next(self) -> str:
        if self._position == len(self._drawn):
            self._drawn, self._position = os.urandom(2560), 0
        portion = self._drawn[self._position : self._position + 10]
        self._position += 10
        text = (self._clock().to_bytes(6) + portion).hex()
        variant = "89ab"[portion[2] & 3]
        return f"{text[:8]}-{text[8:12]}-7{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"


def new_suffix() -> str:
    """The suffix of a name that was given as a prefix."""
    return "".join(secrets.choice(_SUFFIX_ALPHABET) for _ in range(5))
