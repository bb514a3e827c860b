"""The JSON that the server sends and takes. Members of objects are documented in its OpenAPI schema."""

import json
from typing import Any

from fairlead.client.errors import ServerError

Json = dict[str, Any]


def read_json(status: int, body: bytes) -> object:
    """The JSON of an answer; None if it has no body."""
    try:
        return json.loads(body) if body else None
    except ValueError as error:
        raise ServerError(status, "The answer is not JSON. Is this the address of a Fairlead server?") from error


def read_loosely(body: bytes) -> object:
    """The JSON of an answer, or its text if it is something else."""
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")
