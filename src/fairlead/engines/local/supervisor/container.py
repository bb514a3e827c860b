"""The supervisor's part of a container: its files and network before the start, how it ended, its removal.

The engine also calls it, for containers that a lost supervisor left. Loaded by the fork server too, so it imports
little.
"""

import contextlib
import errno
import os
import select
import signal
import time
from collections.abc import Sequence

from fairlead.engines.local.launch_order import CommandLine, ContainerRun, NetworkPlan
from fairlead.engines.local.linux import programs, syscalls
from fairlead.engines.local.storage import sources, staging
from fairlead.engines.local.wire import HOST_NETWORK, Message

#: The reason of a pod whose container does not exist yet; Kubernetes uses the same word.
MAKING = "ContainerCreating"
#: Exit codes by which a runtime may say that it could not run the image, and that of a container that was killed.
_OF_RUNTIME, _KILLED = (125, 126, 127), 137
#: A runtime that takes longer than this is stopped.
SECONDS = 30.0
#: Archives of images can be large.
LOAD_SECONDS = 1800.0


def prepare(container: ContainerRun) -> int:
    """Make what the runtime needs; an open file that can be read when it has made the container. Raises OSError."""
    os.makedirs(container.sign, mode=0o700, exist_ok=True)
    if not container.staged:
        _prepare_unstaged(container)
    return syscalls.watch_folder(container.sign)


def is_made(watch: int) -> bool:
    return bool(select.select([watch], [], [], 0)[0])


def _prepare_unstaged(container: ContainerRun) -> None:
    """If the runtime sees the machine as it is: write its files and make the folders that it binds."""
    os.makedirs(container.folder, mode=0o700, exist_ok=True)
    staging.write_files(container)
    for volume in container.mounts.volumes:
        if volume.kind == "folder":
            sources.make_folder(volume, container.mounts)


def join_network(argv: Sequence[str], plan: NetworkPlan, namespace: int, container: ContainerRun) -> list[str]:
    """The runtime's command with the pod's own network, which this process holds open."""
    files = [f"--volume={source}:{target}:ro" for target, source in plan.files]
    own = [f"--network=ns:/proc/{os.getpid()}/fd/{namespace}"]
    if container.enters_network:
        own = [HOST_NETWORK, "--uts=private"]
    if container.pull:
        argv = ["--pull=never" if word.startswith("--pull=") else word for word in argv]
    index = argv.index(HOST_NETWORK)
    return [*argv[:index], *own, f"--hostname={plan.hostname}", "--no-hosts", *files, *argv[index + 1 :]]


def pull_image(container: ContainerRun, environment: dict[str, str]) -> None:
    """Pull the image unless it is here. The runtime's errors go to the pod's output. Raises OSError."""
    if not container.pull or (container.find_image and run(container.find_image, environment)):
        return
    if not run(container.pull, environment, seconds=LOAD_SECONDS, is_quiet=False):
        raise OSError(errno.EINVAL, "see its output in the log", container.image)


def remove(
    container: ContainerRun, environment: dict[str, str], status: int | None, *, is_made: bool, is_stopped: bool
) -> bool:
    """Remove what is left of the container; whether the kernel killed it because of its memory limit.

    Each call of a runtime costs as much as a start, so there is none for a container that it removed by itself. A
    container that was stopped while the runtime still made it is left behind.
    """
    for name in container.files:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{container.folder}/{name}")
    code = -1 if status is None else os.waitstatus_to_exitcode(status)
    if container.leaves and is_made and not is_stopped and code >= 0 and code not in _OF_RUNTIME:
        return False
    was_killed = code in (_KILLED, -signal.SIGKILL) and container.memory_limit is not None
    is_out_of_memory = was_killed and run(container.inspect, environment).strip() == b"true"
    run(container.remove, environment)
    return is_out_of_memory


def exec_in(container: ContainerRun | None, request: Message) -> Message:
    """A request to run a command beside the pod's own, as a command of the runtime."""
    if container is None:
        return request
    terminal = ["--tty"] if request["tty"] else []
    return {**request, "argv": [*container.exec, *terminal, container.name, *request["argv"]]}


def explain(container: ContainerRun | None, code: int, *, is_made: bool) -> str:
    """What an exit code of the runtime's command may mean beyond itself."""
    if container is None:
        return ""
    if not is_made:
        return "; the runtime could not run the image, see its output in the log"
    if code == _KILLED and container.memory_limit:
        # Not every runtime says who did it.
        return f"; it was killed, perhaps because of its memory limit of {container.memory_limit} bytes"
    return ""


def load_image(container: ContainerRun, command: CommandLine) -> CommandLine:
    """Load the image that lies in a file; the command that runs it by the name that it has there. Raises OSError.

    The runtime's errors go to the pod's output, which this process writes to.
    """
    load = container.load or ()
    answer = run(load, command.env, seconds=LOAD_SECONDS, is_quiet=False)
    names = [line.partition(b": ")[2].strip() for line in answer.splitlines() if line.startswith(b"Loaded image")]
    if not names:
        raise OSError(errno.EINVAL, "see its output in the log", load[-1].partition("=")[2])
    index = command.argv.index(container.image)
    return command._replace(argv=[*command.argv[:index], names[-1].decode(), *command.argv[index + 1 :]])


def run(
    arguments: Sequence[str], environment: dict[str, str], seconds: float = SECONDS, *, is_quiet: bool = True
) -> bytes:
    """The output of a command of the runtime; empty if it fails, is missing or takes too long."""
    program = programs.find(arguments[0])
    if program is None:
        return b""
    ours, theirs = os.pipe2(os.O_CLOEXEC)
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    actions = [(os.POSIX_SPAWN_DUP2, nothing, 0), (os.POSIX_SPAWN_DUP2, theirs, 1)]
    if is_quiet:
        actions.append((os.POSIX_SPAWN_DUP2, nothing, 2))
    try:
        pid = os.posix_spawn(program, list(arguments), environment, file_actions=actions)
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
    """Everything up to the end; None if that does not come in time."""
    pieces: list[bytes] = []
    with os.fdopen(source, "rb", buffering=0) as pipe:
        while True:
            seconds_left = deadline - time.monotonic()
            if seconds_left <= 0 or not select.select([pipe], [], [], seconds_left)[0]:
                return None
            piece = pipe.read(65_536)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
