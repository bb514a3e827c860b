"""Programs that a container's runtime could not start: the exit code that a shell would give, as on one machine. Pure.

Read for a pod's own command and for commands beside it. containerd has 128 for every such end, others have their own.
"""

import re

from fairlead.engines.kubernetes.client import objects

#: How container runtimes report a program that they could not start: runc's message, or crun's.
_NOT_STARTED = re.compile(r"exec: \".*|executable file .*", re.DOTALL)
_NOT_FOUND = ("not found", "no such file or directory")
_REASONS = frozenset({"StartError", "ContainerCannotRun"})


def read_failed_start(message: str) -> tuple[str, int] | None:
    """What a runtime says about a program that it could not start, and the exit code; None for another message."""
    match = _NOT_STARTED.search(message)
    if match is None:
        return None
    error = match[0].removesuffix(": unknown")
    return error, 127 if any(each in error.lower() for each in _NOT_FOUND) else 126


def exit_code_of(terminated: objects.Terminated) -> int:
    failed = read_failed_start(terminated.message) if terminated.reason in _REASONS else None
    return terminated.exit_code if failed is None else failed[1]
