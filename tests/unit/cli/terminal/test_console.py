"""What a terminal would obey is shown, not sent: names and messages come from other people, too."""

import json

import pytest

from fairlead.cli.terminal.console import escape


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a\tb\nc ü", "a\tb\nc ü", id="text"),
        pytest.param("a\r\nb\r", "a\r\nb\r", id="lines of a raw terminal"),
        pytest.param("\x1b[34mRunning\x1b[0m", "\x1b[34mRunning\x1b[0m", id="our colours"),
        pytest.param("\x1b]0;title\x07", r"\u001b]0;title\u0007", id="the title of the window"),
        pytest.param("\x1b[8mhidden\x1b[2J", r"\u001b[8mhidden\u001b[2J", id="hidden text, and an empty screen"),
        pytest.param("done\rfailed\x9b1A\x7f", r"done\u000dfailed\u009b1A\u007f", id="text over other text"),
        pytest.param("a\u202eb", r"a\u202eb", id="text from right to left"),
    ],
)
def test_what_a_terminal_gets(text: str, want: str) -> None:
    assert escape(text) == want


def test_json_stays_json() -> None:
    value = "a\x85b\u202ec\x7f"
    assert json.loads(escape(json.dumps(value, ensure_ascii=False))) == value
