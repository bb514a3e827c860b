"""Files that a command reads: the text or the JSON object of a file, or of standard input."""

import json
import os

from fairlead.cli.command import Invocation
from fairlead.cli.flags import UsageError
from fairlead.client.json_object import Json

_STANDARD_INPUT = "-"


def read_text(invocation: Invocation, path: str) -> str:
    """The text of a file; `-` is standard input."""
    environment = invocation.environment
    try:
        if path == _STANDARD_INPUT:
            return environment.stdin.read()
        with open(os.path.join(environment.folder, path), encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text.") from None


def read_json_file(invocation: Invocation, path: str) -> Json:
    """The JSON object in a file; `-` is standard input."""
    try:
        content = json.loads(read_text(invocation, path))
    except ValueError as error:
        raise UsageError(f"{path} is not valid JSON: {error}.") from error
    if not isinstance(content, dict):
        raise UsageError(f"{path} must contain one JSON object.")
    return content
