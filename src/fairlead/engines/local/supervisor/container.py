"""The supervisor's part of a container: its files and network before the start, what became of it, its removal.

Also called by the engine for what a lost supervisor left. Loaded by the fork server too, so it imports little.
"""

import contextlib
import errno
import os
import select
import signal
import time
from typing import Any

from fairlead.engines.local.linux import programs, syscalls
from fairlead.engines.local.storage import sources, staging

#: In the runtime's words: the machine's network (as `containers.py` writes it).
NETWORK = "--network=host"
#: Why a pod whose container is not there yet does not run, in the word of Kubernetes.
MAKING = "ContainerCreating"
#: Exit codes by which a runtime may say that it could not run the image, and that of a container that was killed.
_OF_RUNTIME, _KILLED = (125, 126, 127), 137
#: A runtime that takes longer to answer is given up on.
SECONDS = 30.0
#: Archives of images can be large.
LOAD_SECONDS = 1800.0


def prepare(container: dict[str, Any]) -> int:
    """Make what the runtime needs; an open file that can be read when it has made the container. Raises OSError."""
    os.makedirs(container["sign"], mode=0o700, exist_ok=True)
    if not container["staged"]:
        _prepare_unstaged(container)
    return syscalls.watch_folder(container["sign"])


def has_sign(watch: int) -> bool:
    return bool(select.select([watch], [], [], 0)[0])


def _prepare_unstaged(container: dict[str, Any]) -> None:
    """Where the runtime sees the machine as it is: its files and the folders that it binds."""
    os.makedirs(container["folder"], mode=0o700, exist_ok=True)
    staging.write_files(container)
    for volume in container["volumes"]:
        if volume["kind"] == "folder":
            sources.make_folder(volume, container)


def connect(order: dict[str, Any], namespace: int) -> None:
    """Tell the runtime of the pod's own network, which this process holds open."""
    arguments, plan = order["argv"], order["network"]
    files = [f"--volume={source}:{target}:ro" for target, source in plan["files"]]
    own = [f"--network=ns:/proc/{os.getpid()}/fd/{namespace}", f"--hostname={plan['hostname']}", "--no-hosts", *files]
    place = arguments.index(NETWORK)
    order["argv"] = [*arguments[:place], *own, *arguments[place + 1 :]]


def conclude(order: dict[str, Any], status: int | None, *, is_made: bool, is_stopped: bool) -> bool:
    """Remove what is left of the container; whether the kernel ended it for its memory.

    Each question to a runtime costs as much as a start: none is asked of a container that it removed by itself. One
    that was told to stop while it still made the container leaves that behind.
    """
    container, environment = order["container"], order["env"]
    for name in container["files"]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{container['folder']}/{name}")
    code = -1 if status is None else os.waitstatus_to_exitcode(status)
    if container["leaves"] and is_made and not is_stopped and code >= 0 and code not in _OF_RUNTIME:
        return False
    killed = code in (_KILLED, -signal.SIGKILL) and container["memory_limit"] is not None
    ran_out = killed and ask(container["inspect"], environment).strip() == b"true"
    ask(container["remove"], environment)
    return ran_out


def beside(container: dict[str, Any] | None, request: dict[str, Any]) -> dict[str, Any]:
    """A request to run a command beside the pod's own, as the runtime is asked for it."""
    if container is None:
        return request
    terminal = ["--tty"] if request["tty"] else []
    return {**request, "argv": [*container["exec"], *terminal, container["name"], *request["argv"]]}


def explain(container: dict[str, Any] | None, code: int, *, is_made: bool) -> str:
    """What an exit code of the runtime's command may mean beyond itself."""
    if container is None:
        return ""
    if not is_made:
        return "; the runtime could not run the image, its words are in the log"
    if code == _KILLED and container["memory_limit"]:
        # Not every runtime tells who did it.
        return f"; it was killed, perhaps for its memory limit of {container['memory_limit']} bytes"
    return ""


def load(order: dict[str, Any]) -> None:
    """Give an engine the image that lies in a file, and run it by the name that it has there. Raises OSError.

    What goes wrong is said in the pod's output, which this process writes to.
    """
    container, arguments = order["container"], order["argv"]
    answer = ask(container["load"], order["env"], seconds=LOAD_SECONDS, is_quiet=False)
    names = [line.partition(b": ")[2].strip() for line in answer.splitlines() if line.startswith(b"Loaded image")]
    if not names:
        raise OSError(errno.EINVAL, "its words are in the log", container["load"][-1].partition("=")[2])
    arguments[arguments.index(container["image"])] = names[-1].decode()


def ask(arguments: list[str], environment: dict[str, str], seconds: float = SECONDS, *, is_quiet: bool = True) -> bytes:
    """What a command of the runtime answers; nothing when it fails, is not there or does not come to an end."""
    program = programs.find(arguments[0])
    if program is None:
        return b""
    ours, theirs = os.pipe2(os.O_CLOEXEC)
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    actions = [(os.POSIX_SPAWN_DUP2, nothing, 0), (os.POSIX_SPAWN_DUP2, theirs, 1)]
    if is_quiet:
        actions.append((os.POSIX_SPAWN_DUP2, nothing, 2))
    try:
        pid = os.posix_spawn(program, arguments, environment, file_actions=actions)
    except OSError:
        os.close(ours)
        return b""
    finally:
        os.close(theirs)
        os.close(nothing)
    answer = _read(ours, time.monotonic() + seconds)
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
