"""Copies a bucket's objects into a volume, and changed files back. Called in the pod's process on the local engine
(`local/storage/fetching.py`), or in a container beside it (`beside.py`).

Only the standard library, and loaded only by pods that mount a bucket. Objects are files by their keys; a key that is
not a path below the volume is refused. After the end, new and changed files are uploaded, and objects whose files were
deleted are removed; what others wrote meanwhile to other keys stays.
"""

import contextlib
import errno
import json
import os
import stat
import time
from collections.abc import Callable, Sequence

from fairlead.engines.buckets.client import Bucket, BucketObject, BucketSource

#: What was fetched: per key its size and the time of its file's last change.
Manifest = dict[str, tuple[int, int]]

_CHUNK = 1024 * 1024
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_REPORT_SECONDS = 1.0
#: What one request can carry to a bucket.
MAX_BYTES = 5 * 1024**3


def copy_in(fetch: BucketSource, folder: int, manifest: int) -> None:
    with Bucket(fetch) as bucket:
        objects = list(bucket.list())
        _check_room(folder, sum(stored.size for stored in objects), fetch.bucket)
        noted: Manifest = {}
        for stored in objects:
            noted[stored.key] = _copy_one(bucket, stored, folder)
    _save(manifest, noted)


def _check_room(folder: int, needed: int, bucket: str) -> None:
    disk = os.fstatvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    if needed > free:
        raise OSError(errno.ENOSPC, f"bucket '{bucket}' holds {needed} bytes and this machine's disk has {free} left")


def _copy_one(bucket: Bucket, stored: BucketObject, folder: int) -> tuple[int, int]:
    *parents, name = _names(stored.key)
    current = os.dup(folder)
    try:
        for parent in parents:
            current = _enter(current, parent)
        if not name:
            return 0, 0  # a key that ends in a slash stands for the folder
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(name, flags, 0o644, dir_fd=current)
        try:
            for piece in bucket.read(stored.key):
                os.write(file, piece)
            copied = os.fstat(file)
            return copied.st_size, copied.st_mtime_ns
        finally:
            os.close(file)
    finally:
        os.close(current)


def _names(key: str) -> list[str]:
    names = key.split("/")
    if any(name in ("", ".", "..") for name in names[:-1]) or names[-1] in (".", "..") or "\0" in key:
        raise ValueError(f"the object '{key[:200]}' has a key that is not a path below the volume")
    return names


def _enter(folder: int, name: str) -> int:
    """The folder of that name in another, made if needed; the other one is closed."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=folder)
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    finally:
        os.close(folder)


def _save(manifest: int, noted: Manifest) -> None:
    data = json.dumps(noted).encode()
    os.ftruncate(manifest, 0)
    os.pwrite(manifest, data, 0)


def _load(manifest: int) -> Manifest | None:
    data = os.pread(manifest, os.fstat(manifest).st_size, 0)
    return {key: (size, at) for key, (size, at) in json.loads(data).items()} if data else None


class UploadProgress:
    """Tells how far an upload is, at most once a second and not before its first second is over."""

    def __init__(self, bucket: str, sizes: Sequence[int], tell: Callable[[str], None]) -> None:
        self._bucket = bucket
        self._files, self._bytes = len(sizes), sum(sizes)
        self._tell = tell
        self._files_sent = self._bytes_sent = 0
        self._told_at = time.monotonic()

    def add_bytes(self, size: int) -> None:
        self._bytes_sent += size
        if time.monotonic() - self._told_at >= _REPORT_SECONDS:
            self._told_at = time.monotonic()
            self._tell(
                f"Uploading to bucket {self._bucket}: {self._files_sent} of {self._files} files, "
                f"{_format_size(min(self._bytes_sent, self._bytes))} of {_format_size(self._bytes)}"
            )

    def add_file(self) -> None:
        self._files_sent += 1


def _format_size(size: int) -> str:
    """In the largest decimal unit of which there is at least one."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} B"


def _report_to_nobody(_text: str) -> None:
    return None


def bring_back(fetch: BucketSource, folder: int, manifest: int, tell: Callable[[str], None] = _report_to_nobody) -> str:
    """Upload what changed; what could not be uploaded, or nothing. `tell` hears how far it is."""
    before = _load(manifest)
    if before is None:
        return ""  # it was never fetched whole, so nothing of it was changed
    present = dict(_walk(folder, ""))
    changed = [key for key, (size, at) in present.items() if before.get(key) != (size, at)]
    removed = [key for key in before if key not in present and not key.endswith("/")]
    too_large = [key for key in changed if present[key][0] > MAX_BYTES]
    progress = UploadProgress(fetch.bucket, [present[key][0] for key in changed if key not in too_large], tell)
    with Bucket(fetch) as bucket:
        bucket.on_sent = progress.add_bytes
        for key in changed:
            if key not in too_large:
                file = _open(folder, key)
                try:
                    bucket.write(key, file)
                finally:
                    os.close(file)
                before[key] = present[key]
                _save(manifest, before)
                progress.add_file()
        for key in removed:
            bucket.remove(key)
    return f"not uploaded, each is larger than {MAX_BYTES} bytes: {', '.join(too_large)}" if too_large else ""


def _open(folder: int, key: str) -> int:
    *parents, name = key.split("/")
    current = os.dup(folder)
    try:
        for parent in parents:
            child = os.open(parent, _FOLDER, dir_fd=current)
            os.close(current)
            current = child
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
    finally:
        os.close(current)


def _walk(folder: int, prefix: str) -> list[tuple[str, tuple[int, int]]]:
    """Every regular file below a folder as (key, (size, time)); links and the like are left out."""
    files = []
    for name in os.listdir(folder):
        state = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(state.st_mode):
            below = os.open(name, _FOLDER, dir_fd=folder)
            try:
                files += _walk(below, f"{prefix}{name}/")
            finally:
                os.close(below)
        elif stat.S_ISREG(state.st_mode):
            files.append((f"{prefix}{name}", (state.st_size, state.st_mtime_ns)))
    return files
