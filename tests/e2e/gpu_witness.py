"""A job that tells on the scheduler: it takes a tenth of a GPU's locks for every tenth of the GPU that it was given.

Called as `gpu_witness.py FOLDER TENTHS SECONDS LINGER`; the seconds count from when FOLDER/go is there. The locks are
the kernel's, so they go with the process however it ends. If the others hold too many of them, the GPU was given away
twice, and that is written down.
"""

import fcntl
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType


def take(path: Path) -> int | None:
    """The lock's descriptor, or None if somebody else has it."""
    held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        return None
    return held


def take_tenths(folder: Path, device: str, tenths: int) -> bool:
    held: set[int] = set()
    deadline = time.monotonic() + 0.5
    # A lock that was taken a moment ago may be free now: only a lack that lasts is a crime.
    while time.monotonic() < deadline:
        for slot in range(10):
            if len(held) < tenths and slot not in held and take(folder / f"gpu-{device}-{slot}") is not None:
                held.add(slot)
        if len(held) == tenths:
            return True
        time.sleep(0.01)
    return False


def main() -> int:
    folder, tenths, seconds, linger = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])

    def leave(_signal: int, _frame: FrameType | None) -> None:
        time.sleep(linger)
        os._exit(143)

    signal.signal(signal.SIGTERM, leave)
    name, devices = os.environ["RUNAI_JOB_NAME"], os.environ["CUDA_VISIBLE_DEVICES"].split(",")
    for device in devices:
        if not take_tenths(folder, device, tenths):
            (folder / f"crime-{name}").write_text(f"{name} was given GPU {device}, which others hold")
    (folder / f"ran-{name}").touch()
    # Until then everybody holds on to what they were given, however long the others take to come.
    while not (folder / "go").exists():
        time.sleep(0.01)
    time.sleep(seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
