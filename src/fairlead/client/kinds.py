"""The kinds of workload that a server has, as data: their REST names and what can be done with them.

`kinds.json` is written from the server's own declarations by `python -m fairlead.cli.generate`, so that the SDK
imports nothing of the server and starts in milliseconds.
"""

import json
import os
from typing import NamedTuple


class KindEntry(NamedTuple):
    key: str
    #: The type in lists of workloads.
    title: str
    #: The segment of its REST path.
    rest: str
    #: The words of its command.
    command: tuple[str, ...]
    can_suspend: bool


def load_kinds() -> dict[str, KindEntry]:
    """Every kind by its key."""
    with open(os.path.join(os.path.dirname(__file__), "kinds.json"), encoding="utf-8") as file:
        entries = json.load(file)
    return {
        entry["key"]: KindEntry(
            entry["key"], entry["title"], entry["rest"], tuple(entry["command"]), entry["canSuspend"]
        )
        for entry in entries
    }
