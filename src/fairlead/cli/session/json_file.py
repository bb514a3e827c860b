"""JSON from a file that a flag names, or from standard input. Read by `submit` and `template create`."""

import json
import os
from typing import Any

from fairlead.cli.command import Invocation
from fairlead.cli.flags import UsageError


def read_json_file(invocation: Invocation, path: str) -> dict[str, Any]:
    """The one object that a file holds; `-` is standard input."""
    around = invocation.surroundings
    try:
        if path == "-":
            content = json.load(around.stdin)
        else:
            with open(os.path.join(around.folder, path), encoding="utf-8") as file:
                content = json.load(file)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise UsageError(f"{path} is no JSON: {error}.") from error
    if not isinstance(content, dict):
        raise UsageError(f"{path} must hold one JSON object.")
    return content
