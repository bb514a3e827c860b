"""Fills volumes from elsewhere before a pod's command starts, and brings changes back after its end.

Runs in the pod's process: inside its isolation and network, under its user. `load` runs before that, while the host is
in sight; it loads what only some pods need, because what the fork server has loaded, every supervisor carries.
"""

import importlib
import os
import signal
from typing import Any, Protocol

from fairlead.engines.local.storage import git

Fetch = dict[str, Any]

_S3 = "fairlead.engines.buckets.copying"


class FetchFailed(Exception):
    """Something could not be fetched or brought back; the text says what, why, and nothing secret."""


class BucketClient(Protocol):
    """What `buckets/copying.py` does for a volume."""

    def copy_in(self, fetch: Fetch, folder: int, manifest: int) -> None: ...
    def bring_back(self, fetch: Fetch, folder: int, manifest: int) -> str: ...


class Fetching:
    """One pod's fetches. The program and the notes of what was fetched are opened while the host is in sight."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._fetches: list[Fetch] = order["fetches"]
        kinds = {fetch["kind"] for fetch in self._fetches}
        self._store: BucketClient | None = importlib.import_module(_S3) if "s3" in kinds else None
        self._manifests: dict[str, int] = {}
        for fetch in self._fetches:
            if "manifest" in fetch:
                os.makedirs(os.path.dirname(fetch["manifest"]), mode=0o700, exist_ok=True)
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
                self._manifests[fetch["at"]] = os.open(fetch["manifest"], flags, 0o600)

    def run(self) -> None:
        """Fill every volume; raises FetchFailed. Told to end meanwhile, this process just ends."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for fetch in self._fetches:
            try:
                if fetch["kind"] == "git":
                    git.clone(fetch)
                elif self._store is not None:
                    folder = os.open(fetch["at"], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                    self._store.copy_in(fetch, folder, self._manifests[fetch["at"]])
            except (OSError, ValueError) as error:
                raise FetchFailed(f"{fetch['field']}: {_words(error)}") from error

    def bring_back(self) -> str:
        """Write changes back where that is possible; what could not be, in words."""
        failures = []
        for fetch in self._fetches:
            if fetch["kind"] == "git" or self._store is None:
                continue
            try:
                folder = os.open(fetch["at"], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                failure = self._store.bring_back(fetch, folder, self._manifests[fetch["at"]])
            except (OSError, ValueError) as error:
                failure = _words(error)
            if failure:
                failures.append(f"{fetch['field']}: {failure}")
        return "; ".join(failures)


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})" if error.filename else error.strerror
    return str(error) or type(error).__name__
