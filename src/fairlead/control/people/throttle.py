"""Slows down unknown callers: those who guess passwords, and those who make it send requests to the identity provider.

`authentication.py` asks before it checks a secret, `sign_on/sign_on.py` before it sends a request to the provider. Kept
in memory, for each server on its own.
"""

import ipaddress

import msgspec

from fairlead.model.clock import SECOND, Clock, Millis
from fairlead.model.errors import TooMuch

#: Failures before the first delay. Several people may share an address, behind a router or a reverse proxy.
FREE_FAILURES_OF_ACCOUNT = 10
FREE_FAILURES_OF_ADDRESS = 50
#: The delay doubles with each further failure.
FIRST_DELAY: Millis = 1 * SECOND
MAX_DELAY: Millis = 60 * SECOND
#: Failures are forgotten after this time without another.
FORGET: Millis = 900 * SECOND
#: The most accounts and addresses that are remembered; the longest unchanged go first.
MAX_REMEMBERED = 10_000
_LONGEST_NAME = 256

#: An account by type and name, or an address.
Key = tuple[str, ...]


class SignInFailures(msgspec.Struct):
    count: int
    last_at: Millis
    blocked_until: Millis


class SignInThrottle:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: dict[Key, SignInFailures] = {}

    def check(self, type: str, name: str, address: str) -> None:
        """Raise `TooMuch` while the account or the address has to wait."""
        now = self._clock()
        known = [self._failures.get(key) for key, _ in _keys(type, name, address)]
        until = max((failures.blocked_until for failures in known if failures is not None), default=0)
        if until > now:
            seconds = -(-(until - now) // SECOND)
            raise TooMuch(f"Too many failed sign-ins; try again in {seconds} s", seconds)

    def record_failure(self, type: str, name: str, address: str) -> None:
        now = self._clock()
        for key, free in _keys(type, name, address):
            before = self._failures.pop(key, None)
            count = 1 if before is None or now - before.last_at > FORGET else before.count + 1
            # A shift by more than this would only be cut down to the largest delay again.
            delay = min(FIRST_DELAY << min(count - free - 1, 10), MAX_DELAY) if count > free else 0
            self._failures[key] = SignInFailures(count, now, now + delay)
        while len(self._failures) > MAX_REMEMBERED:
            del self._failures[next(iter(self._failures))]

    def record_success(self, type: str, name: str) -> None:
        """Forget the account's failures. Those of the address stay: else one known account would free all guesses."""
        self._failures.pop(_account(type, name), None)


class RequestThrottle:
    """Lets each address send `burst` requests at once, and then one per `interval`."""

    def __init__(self, clock: Clock, burst: int, interval: Millis) -> None:
        self._clock = clock
        self._burst = burst
        self._interval = interval
        #: By network: when its requests so far will have been paid for, at one per interval.
        self._paid_at: dict[str, Millis] = {}

    def admit(self, address: str) -> Millis:
        """Count a request from this address; returns 0, or how long it has to wait: then it is not counted."""
        now, network = self._clock(), network_of(address)
        paid_at = max(now, self._paid_at.pop(network, 0))
        wait = max(0, paid_at - now - (self._burst - 1) * self._interval)
        self._paid_at[network] = paid_at if wait else paid_at + self._interval
        while len(self._paid_at) > MAX_REMEMBERED:
            del self._paid_at[next(iter(self._paid_at))]
        return wait


def network_of(address: str) -> str:
    """An IPv4 address itself; of an IPv6 address the /64, because one machine can take any address in it."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(parsed.ipv4_mapped or parsed.packed[:8].hex())


def _keys(type: str, name: str, address: str) -> tuple[tuple[Key, int], ...]:
    account = (_account(type, name), FREE_FAILURES_OF_ACCOUNT)
    return (account, ((network_of(address),), FREE_FAILURES_OF_ADDRESS)) if address else (account,)


def _account(type: str, name: str) -> Key:
    return (type, name[:_LONGEST_NAME])
