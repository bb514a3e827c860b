"""Logs as one JSON object per line. `app` installs the formatter.

Callers add fields with `extra={"fields": …}`: a request's id, its path, its status. Never secrets or bodies.
"""

import json
import logging

from fairlead.model.clock import iso


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
        return json.dumps(members, ensure_ascii=False, default=str)
