"""The type of JSON objects that the server sends and takes. Their members are documented in its OpenAPI schema."""

from typing import Any

Json = dict[str, Any]
