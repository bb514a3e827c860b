"""Fills a pod's volume from a bucket, or waits for the pod's end and writes changes back; run in containers beside it.

`python3 -m fairlead.engines.buckets.beside in` or `… back`, with these few files alone: only the standard library. The
Kubernetes engine makes such containers (`render_s3.py`); everything comes by variables.
"""

import os
import shutil
import signal
import sys

from fairlead.engines.buckets import copying

#: A bucket that takes longer to copy, or a service that is silent for so long, is given up.
_SECONDS, _SILENCE = 6 * 3600.0, 60.0


def main(verb: str) -> int:
    place = os.environ["BUCKET_FOLDER"]
    data, notes = os.path.join(place, "data"), os.path.join(place, "notes")
    fetch = {
        "bucket": os.environ["BUCKET"],
        "url": os.environ["BUCKET_URL"],
        "access": os.environ.get("BUCKET_ACCESS", ""),
        "secret": os.environ.get("BUCKET_SECRET", ""),
        "seconds": _SECONDS,
        "silence": _SILENCE,
    }
    try:
        return _copy_in(fetch, data, notes) if verb == "in" else _wait_and_bring_back(fetch, data, notes)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{getattr(error, 'strerror', None) or error}\n")
        return 1


def _copy_in(fetch: copying.Fetch, data: str, notes: str) -> int:
    if os.path.exists(notes) and os.path.getsize(notes):
        return 0  # the pod is made up again, with its volume as it left it
    shutil.rmtree(data, ignore_errors=True)
    os.makedirs(data)
    # The pod's own user may be another.
    os.chmod(data, 0o777)  # noqa: S103 - a folder of this pod alone
    copying.copy_in(fetch, _folder(data), _notes(notes))
    return 0


def _wait_and_bring_back(fetch: copying.Fetch, data: str, notes: str) -> int:
    """The cluster tells containers that stand beside a pod's own to end when that one has ended."""
    signal.sigwait({signal.SIGTERM})
    words = copying.bring_back(fetch, _folder(data), _notes(notes))
    sys.stderr.write(f"{words}\n" if words else "")
    return 1 if words else 0


def _folder(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY)


def _notes(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


if __name__ == "__main__":
    # As the first process of its container it would not end by a signal that it does not expect.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM} if sys.argv[1] == "back" else set())
    sys.exit(main(sys.argv[1]))
