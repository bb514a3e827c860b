"""Formats of log lines: JSON objects for the log file, text for people; `app` sets them up.

Callers add fields with `extra={"fields": …}`: a request's id, its path, its status. Never secrets or bodies. Paths and
names come from clients, so control characters are escaped: no client can forge a line or steer a terminal.
"""

import json
import logging
import logging.handlers
import re
from pathlib import Path

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


def set_up_logging(folder: Path, *, to_stderr: bool) -> None:
    """Log JSON lines to a file that is rotated at 10 MB; optionally to stderr too."""
    folder.mkdir(parents=True, exist_ok=True)
    file = logging.handlers.RotatingFileHandler(folder / "server.log", maxBytes=10 << 20, backupCount=3)
    file.setFormatter(JsonFormatter())
    handlers: list[logging.Handler] = [file]
    if to_stderr:
        terminal = logging.StreamHandler()
        terminal.setFormatter(TextFormatter())
        handlers.append(terminal)
    logging.basicConfig(level=logging.INFO, handlers=handlers)
