"""The supervisor's part of a container: its variables in a file before the start, what became of it, its removal.

Also called by the engine for what a lost supervisor left. Loaded by the fork server too, so it imports little.
"""

import contextlib
import os
import select
import signal
import time
from typing import Any

#: A runtime that takes longer to answer is given up on.
SECONDS = 30.0
_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}


def prepare(container: dict[str, Any]) -> None:
    """Write the variables where only their owner reads them; raises OSError."""
    os.makedirs(os.path.dirname(container["file"]), mode=0o700, exist_ok=True)
    descriptor = os.open(container["file"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.writelines(line + "\n" for line in container["lines"])


def conclude(container: dict[str, Any]) -> bool:
    """Remove the container and its file; whether the kernel ended it for its memory."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(container["file"])
    ran_out = ask(container["inspect"]).strip() == b"true"
    ask(container["remove"])
    return ran_out


def beside(container: dict[str, Any] | None, request: dict[str, Any]) -> dict[str, Any]:
    """A request to run a command beside the pod's own, as the runtime is asked for it."""
    if container is None:
        return request
    terminal = ["--tty"] if request["tty"] else []
    return {**request, "argv": [*container["exec"], *terminal, container["name"], *request["argv"]]}


def explain(container: dict[str, Any] | None, code: int) -> str:
    """What an exit code of the runtime's command may mean beyond itself."""
    if container is None:
        return ""
    if code == 137 and container["memory_limit"]:
        # Not every runtime tells who did it.
        return f"; it was killed, perhaps for its memory limit of {container['memory_limit']} bytes"
    return "; the runtime could not run the image, its words are in the log" if code in (125, 126, 127) else ""


def ask(arguments: list[str]) -> bytes:
    """What a command of the runtime answers; nothing when it fails, is not there or does not come to an end."""
    ours, theirs = os.pipe2(os.O_CLOEXEC)
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    actions = [(os.POSIX_SPAWN_DUP2, nothing, 0), (os.POSIX_SPAWN_DUP2, theirs, 1), (os.POSIX_SPAWN_DUP2, nothing, 2)]
    try:
        pid = os.posix_spawnp(arguments[0], arguments, _ENVIRONMENT, file_actions=actions)
    except OSError:
        os.close(ours)
        return b""
    finally:
        os.close(theirs)
        os.close(nothing)
    answer = _read(ours, time.monotonic() + SECONDS)
    if answer is None:
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
    return answer or b""


def _read(source: int, deadline: float) -> bytes | None:
    """Everything up to the end; None when that does not come in time."""
    pieces: list[bytes] = []
    with os.fdopen(source, "rb", buffering=0) as pipe:
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                return None
            piece = pipe.read(65_536)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
