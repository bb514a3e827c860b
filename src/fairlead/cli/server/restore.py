"""`restore`: reads a backup into the data folder, what a cluster knows of its organization, or both.

No server may run meanwhile.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import Flag, UsageError
from fairlead.cli.server.backup import FLAGS, find_database
from fairlead.cli.session.background import open_lock
from fairlead.cli.session.settings import data_folder, next_command
from fairlead.cli.terminal.console import Console
from fairlead.cli.terminal.progress import Progress
from fairlead.client import ClientError
from fairlead.client.access.local import HOLDER
from fairlead.engines.kubernetes.install.recovery import recover_organization
from fairlead.model.errors import FairleadError
from fairlead.store.archive import restore_archive

_FROM_CLUSTER = "from-cluster"
#: What a server with an empty database takes over at its start.
_RECOVERED = "recovered.json"
_FLAGS = (
    *FLAGS,
    Flag(_FROM_CLUSTER, "Read what the objects in a Kubernetes cluster know", "boolean"),
    Flag("kubeconfig", "Kubeconfig of the cluster", placeholder="FILE", default="$KUBECONFIG"),
    Flag("cluster-id", "Installation to recover, if the cluster has several", placeholder="ID"),
)
_DETAILS = """fairlead restore FILE                  reads a backup
fairlead restore --from-cluster        reads departments, projects and node pools
fairlead restore FILE --from-cluster   adds those that were created after it

With --from-cluster, the next `fairlead serve --engine kubernetes` on this data
folder takes over the installation and adopts all workloads that have a custom
resource, with their running pods. Accounts, secrets, assets and history are not
in the cluster. A PostgreSQL database must be empty."""


def commands(_noun: str) -> tuple[Command, ...]:
    summary = "Restore the server's data from a backup or from a cluster"
    return (Command("", summary, _restore, _FLAGS, "[FILE]", 0, 1, details=_DETAILS),)


def _restore(invocation: Invocation) -> int:
    is_from_cluster = bool(invocation.get(_FROM_CLUSTER))
    if not is_from_cluster and not invocation.names:
        raise UsageError("Name a backup, or use --from-cluster.")
    folder, database = Path(data_folder(invocation)), find_database(invocation)
    console = Console(invocation)
    with _unused(invocation, folder):
        if Path(database).exists() and not invocation.get("force"):
            raise UsageError(f"{folder} contains a database already; --force overwrites it.")
        source = " and ".join([*invocation.names, *(["the cluster"] if is_from_cluster else [])])
        try:
            with Progress(console, f"Restoring {folder} from {source}"):
                # Before anything is changed, because the cluster may not answer.
                recovered = _recover(invocation) if is_from_cluster else None
                if invocation.names:
                    restore_archive(Path(invocation.environment.folder, invocation.names[0]), folder, database)
                else:
                    _remove(database)
                if recovered is not None:
                    _keep(recovered, folder)
        except FairleadError as error:
            raise ClientError(str(error)) from error
    start = next_command(invocation, "serve --engine kubernetes" if is_from_cluster else "server start")
    console.say(f"Restored into {folder}. Start the server with `{start}`.")
    return OK


@contextmanager
def _unused(invocation: Invocation, folder: Path) -> Iterator[None]:
    """Keep servers from using the folder."""
    with open_lock(str(folder), HOLDER) as holder:
        try:
            fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            stop = next_command(invocation, "server stop")
            raise ClientError(f"A server is using {folder}. Stop it first with `{stop}`.") from None
        yield


def _recover(invocation: Invocation) -> bytes:
    return recover_organization(invocation.get("kubeconfig", ""), invocation.get("cluster-id", ""))


def _remove(database: str) -> None:
    for ending in ("", "-wal", "-shm"):
        Path(database + ending).unlink(missing_ok=True)


def _keep(content: bytes, folder: Path) -> None:
    partial = folder / f"{_RECOVERED}.partial"
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, folder / _RECOVERED)
