"""Reads and writes whole small files, such as those of /proc, /sys and /etc.

Loaded by the fork server too, so it imports little.
"""

import contextlib


def read(path: str) -> str:
    """The text of a file; empty if it cannot be read."""
    with contextlib.suppress(OSError), open(path, errors="replace") as file:
        return file.read()
    return ""


def write(path: str, text: str) -> None:
    """Raises OSError with the path."""
    with open(path, "w") as file:
        file.write(text)
