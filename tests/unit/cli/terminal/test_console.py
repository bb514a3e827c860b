"""What a terminal would obey is shown, not sent: names and messages come from other people, too."""

import pytest

from fairlead.cli.terminal.console import escape


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a\tb\nc ü", "a\tb\nc ü", id="text"),
        pytest.param("a\r\nb\r", "a\r\nb\r", id="lines of a raw terminal"),
        pytest.param("\x1b[34mRunning\x1b[0m", "\x1b[34mRunning\x1b[0m", id="our colours"),
        pytest.param("\x1b]0;title\x07", r"\x1b]0;title\x07", id="the title of the window"),
        pytest.param("\x1b[8mhidden\x1b[2J", r"\x1b[8mhidden\x1b[2J", id="hidden text, and an empty screen"),
        pytest.param("done\rfailed\x9b1A\x7f", r"done\rfailed\x9b1A\x7f", id="text over other text"),
        pytest.param("a\u202eb", r"a\u202eb", id="text from right to left"),
    ],
)
def test_what_a_terminal_gets(text: str, want: str) -> None:
    assert escape(text) == want
