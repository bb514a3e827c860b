"""Which passwords people may choose."""

import pytest

from fairlead.control.people.passwords import find_weakness


@pytest.mark.parametrize(
    ("password", "want"),
    [
        pytest.param("long enough", "shorter than 12", id="11 characters"),
        pytest.param("Ada.Lovelace.1815", "the name of the account", id="the own name"),
        pytest.param("abababababab", "fewer than 5 different", id="two letters"),
        pytest.param("password1234", "tried first", id="a common word and digits"),
        pytest.param("P@ssw0rd2026!", "tried first", id="replaced letters"),
        pytest.param("passwordpassword", "tried first", id="a common word twice"),
        pytest.param("Welcome-Admin-01", "tried first", id="two common words"),
        pytest.param("correct horse battery staple", "tried first", id="the famous one"),
        pytest.param("123456789012", "tried first", id="digits in a row"),
        pytest.param("839274018273", "tried first", id="digits only"),
        pytest.param("qwertyuiopasdf", "tried first", id="a row of keys"),
        pytest.param("1q2w3e4r5t6y", "tried first", id="a zigzag of keys"),
        pytest.param("nmlkjihgfedcba"[2:], "tried first", id="the alphabet backwards"),
    ],
)
def test_what_everybody_tries_is_refused(password: str, want: str) -> None:
    assert want in find_weakness(password, "ada.lovelace@example.com")


@pytest.mark.parametrize(
    "password", ["rivers climb slowly", "tK8-vv2mPq-0r", "pass the salted herring", "passw" * 100 + "x"]
)
def test_other_long_ones_are_accepted(password: str) -> None:
    assert find_weakness(password, "ada.lovelace@example.com") == ""


def test_a_short_name_may_be_part_of_a_password() -> None:
    assert find_weakness("rivers climb slowly", "al@example.com") == ""


def test_the_whole_address_is_refused_also_for_a_short_name() -> None:
    assert find_weakness("al@example.com1", "al@example.com") == "contains the name of the account"
