"""Formats of log lines: JSON objects for the log file, text for people. `app` installs the formatters.

Callers add fields with `extra={"fields": …}`: a request's id, its path, its status. Never secrets or bodies. Paths and
names come from clients, so control characters are escaped: no client can forge a line or steer a terminal.
"""

import json
import logging
import re

from fairlead.model.clock import iso

#: Characters that end a line or control a terminal.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def escape_controls(text: str) -> str:
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class JsonFormatter(logging.Formatter):
    """Time, level, logger, message, the record's own fields, and the trace of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        members: dict[str, object] = {
            "time": iso(int(record.created * 1000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            members.update(fields)
        if record.exc_info:
            members["trace"] = self.formatException(record.exc_info)
        return escape_controls(json.dumps(members, ensure_ascii=False, default=str))


class TextFormatter(logging.Formatter):
    """Level, logger and message; a trace keeps its lines."""

    def __init__(self) -> None:
        super().__init__("%(levelname)s:%(name)s:%(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # the name is logging's
        return escape_controls(super().formatMessage(record))
