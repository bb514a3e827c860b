"""The type of objects that are plain data: a REST spec, or a part of one, before or after it has its declared type."""

from typing import Any

Plain = dict[str, Any]
