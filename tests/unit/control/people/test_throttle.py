"""How failed sign-ins slow down the next ones."""

from fairlead.control.people import throttle
from fairlead.control.people.throttle import RequestThrottle, SignInThrottle, network_of
from fairlead.model.clock import SECOND
from fairlead.model.errors import TooMuch


class Guesser:
    """Tries wrong passwords as fast as it is let, over a clock that it moves."""

    def __init__(self) -> None:
        self.now = 0
        self.throttle = SignInThrottle(lambda: self.now)

    def guess(self, name: str = "ada", address: str = "10.0.0.1") -> int:
        """Seconds to wait; 0 if the guess was checked."""
        try:
            self.throttle.check("user", name, address)
        except TooMuch as error:
            return error.retry_after_seconds
        self.throttle.record_failure("user", name, address)
        return 0

    def guess_for(self, seconds: int, **who: str) -> int:
        checked = 0
        until = self.now + seconds * SECOND
        while self.now < until:
            wait = self.guess(**who)
            checked += not wait
            self.now += wait * SECOND
        return checked


def test_guesses_of_an_account_come_to_a_crawl() -> None:
    guesser = Guesser()
    assert [guesser.guess() for _ in range(12)] == [0] * 11 + [1]
    # 1, 2, 4, … seconds, then one a minute.
    assert guesser.guess_for(3600) == 6 + 58
    assert guesser.guess(name="eve", address="10.0.0.2") == 0


def test_one_address_cannot_try_many_accounts() -> None:
    guesser = Guesser()
    checked = sum(not guesser.guess(name=f"user-{number}") for number in range(1000))
    assert checked == throttle.FREE_FAILURES_OF_ADDRESS + 1
    assert guesser.guess(name="ada", address="10.0.0.2") == 0


def test_a_right_password_frees_its_account_only() -> None:
    guesser = Guesser()
    for number in range(throttle.FREE_FAILURES_OF_ADDRESS):
        guesser.guess(name=f"user-{number}")
    for _ in range(5):
        guesser.guess(address="10.0.0.2")
    guesser.throttle.record_success("user", "ada")
    assert [guesser.guess(address="10.0.0.2") for _ in range(11)] == [0] * 11
    assert guesser.guess(name="bob") == 0
    assert guesser.guess(name="bob") == 1


def test_failures_are_forgotten() -> None:
    guesser = Guesser()
    for _ in range(11):
        guesser.guess()
    guesser.now += throttle.FORGET + 1
    assert [guesser.guess() for _ in range(11)] == [0] * 11


def test_it_remembers_no_more_than_it_should() -> None:
    guesser = Guesser()
    for number in range(throttle.MAX_REMEMBERED + 10):
        guesser.throttle.record_failure("user", f"user-{number}", "")
    assert len(guesser.throttle._failures) == throttle.MAX_REMEMBERED


def test_requests_get_through_at_their_pace() -> None:
    now = 0
    requests = RequestThrottle(lambda: now, 3, 2 * SECOND)
    assert [requests.admit("10.0.0.1") for _ in range(5)] == [0, 0, 0, 2 * SECOND, 2 * SECOND]
    assert requests.admit("10.0.0.2") == 0
    now = 3 * SECOND
    assert [requests.admit("10.0.0.1") for _ in range(2)] == [0, 1 * SECOND]
    now = 3600 * SECOND
    assert [requests.admit("10.0.0.1") for _ in range(4)] == [0, 0, 0, 2 * SECOND]
    for number in range(throttle.MAX_REMEMBERED + 10):
        requests.admit(f"host-{number}")
    assert len(requests._paid_at) == throttle.MAX_REMEMBERED


def test_one_machine_does_not_count_as_many() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1") != network_of("2001:db8:0:1::1")
    assert network_of("::ffff:10.0.0.1") == network_of("10.0.0.1") != network_of("::ffff:10.0.0.2")
    assert network_of("") == ""
    guesser = Guesser()
    checked = sum(not guesser.guess(name=f"user-{number}", address=f"2001:db8::{number}") for number in range(100))
    assert checked == throttle.FREE_FAILURES_OF_ADDRESS + 1
