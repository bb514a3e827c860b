"""Fills a pod's volume from a bucket, or waits for the pod's end and writes changes back; run in containers beside it.

`python3 -m fairlead.engines.buckets.beside in` or `… back`, with these few files alone: only the standard library. The
Kubernetes engine makes such containers (`render/buckets.py`); all settings come as environment variables.
"""

import os
import shutil
import signal
import sys
from typing import NamedTuple

from fairlead.engines.buckets import copying

#: Copying a bucket fails after this time, or if its service is silent for so long.
_SECONDS, _SILENCE = 6 * 3600.0, 60.0


class _Source(NamedTuple):
    url: str
    bucket: str
    access: str
    secret: str
    seconds: float = _SECONDS
    silence: float = _SILENCE


def main(verb: str) -> int:
    folder = os.environ["BUCKET_FOLDER"]
    data, notes = os.path.join(folder, "data"), os.path.join(folder, "notes")
    fetch = _Source(
        url=os.environ["BUCKET_URL"],
        bucket=os.environ["BUCKET"],
        access=os.environ.get("BUCKET_ACCESS", ""),
        secret=os.environ.get("BUCKET_SECRET", ""),
    )
    try:
        return _copy_in(fetch, data, notes) if verb == "in" else _wait_and_bring_back(fetch, data, notes)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{getattr(error, 'strerror', None) or error}\n")
        return 1


def _copy_in(fetch: _Source, data: str, notes: str) -> int:
    if os.path.exists(notes) and os.path.getsize(notes):
        return 0  # the pod is restarted, with its volume as it left it
    shutil.rmtree(data, ignore_errors=True)
    os.makedirs(data)
    # The pod's own user may be another.
    os.chmod(data, 0o777)  # noqa: S103 - a folder of this pod alone
    copying.copy_in(fetch, _folder(data), _notes(notes))
    return 0


def _wait_and_bring_back(fetch: _Source, data: str, notes: str) -> int:
    """The cluster sends TERM to containers beside a pod's own when that one has ended."""
    signal.sigwait({signal.SIGTERM})
    failure = copying.bring_back(fetch, _folder(data), _notes(notes))
    sys.stderr.write(f"{failure}\n" if failure else "")
    return 1 if failure else 0


def _folder(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY)


def _notes(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


if __name__ == "__main__":
    # As the first process of its container it would not end by a signal that it does not expect.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM} if sys.argv[1] == "back" else set())
    sys.exit(main(sys.argv[1]))
