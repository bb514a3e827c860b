"""Orders to a running cluster's supervisor, by the socket in its folder: from `up`, from tests that break things.

Works from outside the cluster's namespaces, because a socket in the file system is reached from everywhere.
"""

import contextlib
import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deploy.cluster.errors import ClusterError


class NotRunning(ClusterError):
    pass


def order(folder: Path, **request: Any) -> dict[str, Any]:
    try:
        with folder_handle(folder) as handle, socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30)
            connection.connect(f"/proc/self/fd/{handle}/control.sock")
            with connection.makefile("rw") as stream:
                stream.write(json.dumps(request) + "\n")
                stream.flush()
                answer: dict[str, Any] = json.loads(stream.readline() or '{"error": "no answer"}')
    except (FileNotFoundError, ConnectionError) as error:
        raise NotRunning(f"no cluster runs in {folder}; make cluster-up starts one") from error
    except PermissionError as error:
        raise ClusterError(f"The cluster in {folder} takes orders from root only. Try with sudo.") from error
    if "error" in answer:
        raise ClusterError(f"the cluster's supervisor refused {request.get('do')}: {answer['error']}")
    return answer


@contextlib.contextmanager
def folder_handle(folder: Path) -> Iterator[int]:
    """Through it, because a socket's path may have 107 letters only."""
    handle = os.open(folder, os.O_PATH)
    try:
        yield handle
    finally:
        os.close(handle)


def start(folder: Path, name: str, command: list[str], environment: dict[str, str]) -> None:
    order(folder, do="start", name=name, command=command, environment=environment)


def start_again(folder: Path, name: str) -> None:
    """One that `stop` stopped."""
    order(folder, do="start", name=name)


def stop(folder: Path, name: str) -> None:
    """KILL, and not started again."""
    order(folder, do="stop", name=name)


def drop(folder: Path, name: str) -> None:
    """As `stop`, and it is no part of the cluster any more."""
    order(folder, do="stop", name=name, dropped=True)


def kill(folder: Path, name: str, number: int = signal.SIGKILL) -> None:
    """A signal; if it dies of it, it is started again."""
    order(folder, do="kill", name=name, signal=int(number))


def is_running(folder: Path) -> bool:
    try:
        order(folder, do="status")
    except NotRunning:
        return False
    return True


def observe(folder: Path) -> dict[str, dict[str, Any]]:
    programs: dict[str, dict[str, Any]] = order(folder, do="status")["programs"]
    return programs
