"""Lets processes of one test run take turns with what the machine or the checkout has only once."""

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def take_turns(name: str) -> Iterator[None]:
    """Wait until no other process holds it."""
    with (Path(tempfile.gettempdir()) / f"fairlead-tests-{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
