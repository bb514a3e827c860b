"""Values that a browser or a program keeps for the server: encrypted, for one purpose, until a time.

Every server of the same installation can read them, so a sign-on may start on one server and end on another.
"""

import secrets

from fairlead.control.vault import Vault
from fairlead.model.clock import Clock, Millis
from fairlead.model.errors import Refused

_MAX_USED = 100_000
_TO_URL, _FROM_URL = str.maketrans("+/", "-_"), str.maketrans("-_", "+/")


class SealedValues:
    def __init__(self, vault: Vault, clock: Clock) -> None:
        self._vault = vault
        self._clock = clock
        #: The marks of values that were used on this server, and when they expire.
        self._used: dict[str, Millis] = {}

    def seal(self, purpose: str, lifetime: Millis, **values: str) -> str:
        """Text that is safe in cookies and URLs."""
        members = {**values, "mark": secrets.token_urlsafe(12), "expires": str(self._clock() + lifetime)}
        return self._vault.seal(members, purpose).translate(_TO_URL)

    def open(self, purpose: str, text: str) -> dict[str, str] | None:
        """The values; None if they were not sealed here, are for another purpose, or have expired."""
        try:
            values = self._vault.open(text.translate(_FROM_URL), purpose)
        except Refused:
            return None
        return values if int(values["expires"]) > self._clock() else None

    def use_once(self, values: dict[str, str]) -> bool:
        """Mark the values as used on this server; returns whether they were unused."""
        now = self._clock()
        if len(self._used) >= _MAX_USED:
            self._used = {mark: expires for mark, expires in self._used.items() if expires > now}
        if values["mark"] in self._used:
            return False
        self._used[values["mark"]] = int(values["expires"])
        return True
