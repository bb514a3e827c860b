"""Fills volumes from elsewhere before a pod's command starts, and uploads changes of buckets after its end.

Runs in the pod's process: inside its isolation and network, under its user. The constructor runs before that, while the
host is in sight. It loads the client of buckets only for pods that need it: a module that the fork server has loaded is
memory in every supervisor.
"""

import importlib
import os
import signal
from collections.abc import Callable
from typing import Protocol

from fairlead.engines.local.launch_order import BucketFetch, Fetches
from fairlead.engines.local.storage import git

_BUCKETS = "fairlead.engines.buckets.copying"


class FetchFailed(Exception):
    """Something could not be fetched or uploaded; the text says what and why, and nothing secret."""


class BucketCopier(Protocol):
    """The module `buckets/copying.py`."""

    def copy_in(self, fetch: BucketFetch, folder: int, manifest: int) -> None: ...
    def bring_back(self, fetch: BucketFetch, folder: int, manifest: int, tell: Callable[[str], None]) -> str: ...


class Fetching:
    """One pod's fetches. The client and the manifests of what was fetched are opened while the host is in sight."""

    def __init__(self, fetches: Fetches) -> None:
        self._fetches = fetches
        self._copier: BucketCopier | None = importlib.import_module(_BUCKETS) if fetches.buckets else None
        self._manifests: dict[str, int] = {}
        for bucket in fetches.buckets:
            os.makedirs(os.path.dirname(bucket.manifest), mode=0o700, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self._manifests[bucket.at] = os.open(bucket.manifest, flags, 0o600)

    def run(self) -> None:
        """Fill every volume; raises FetchFailed. TERM ends this process at once."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for repository in self._fetches.git:
            try:
                git.clone(repository)
            except (OSError, ValueError) as error:
                raise FetchFailed(f"{repository.field}: {_message_of(error)}") from error
        if self._copier is None:
            return
        for bucket in self._fetches.buckets:
            try:
                self._copier.copy_in(bucket, _open_folder(bucket.at), self._manifests[bucket.at])
            except (OSError, ValueError) as error:
                raise FetchFailed(f"{bucket.field}: {_message_of(error)}") from error

    def upload_changes(self, tell: Callable[[str], None]) -> str:
        """Upload what changed in buckets' volumes; what failed, or nothing. `tell` hears how far it is."""
        if self._copier is None:
            return ""
        failures = []
        for bucket in self._fetches.buckets:
            try:
                failure = self._copier.bring_back(bucket, _open_folder(bucket.at), self._manifests[bucket.at], tell)
            except (OSError, ValueError) as error:
                failure = _message_of(error)
            if failure:
                failures.append(f"{bucket.field}: {failure}")
        return "; ".join(failures)


def _open_folder(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _message_of(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})" if error.filename else error.strerror
    return str(error) or type(error).__name__
