"""What clients send cannot make a second line of a log line."""

import json
import logging
import sys

import pytest

from fairlead.api.server.json_log import JsonFormatter, TextFormatter

FORGED = "/x\n\x1b[31mERROR:fairlead:forged\x9b\u2028"


def record(message: str, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("fairlead.api", logging.INFO, "", 0, "GET %s 404", (message,), None)
    made.fields = fields
    return made


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()], ids=["file", "terminal"])
def test_control_characters_are_escaped(formatter: logging.Formatter) -> None:
    line = formatter.format(record(FORGED, path=FORGED))
    assert line.isprintable()
    assert "\\u009b" in line


def test_the_log_file_holds_what_was_sent() -> None:
    assert json.loads(JsonFormatter().format(record(FORGED, path=FORGED)))["path"] == FORGED


def test_a_trace_keeps_its_lines() -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        made = record("/")
        made.exc_info = sys.exc_info()
    assert TextFormatter().format(made).splitlines()[-1] == "ValueError: broken"
