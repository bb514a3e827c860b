"""What /proc tells about processes: who they are beyond a pid, whose children, how much memory.

Loaded by the fork server too, so it imports little. Reads only; killing is the caller's.
"""

import os

#: The variable by which a process of a pod is recognised when its supervisor is gone.
MARKER = "FAIRLEAD_ATTEMPT"


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def start_time(pid: int) -> int | None:
    """When the process began, in clock ticks since boot; with pid and boot id it names one process for ever."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    # A zombie has ended; only its parent has not looked yet.
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def is_alive(pid: int, started: int, boot: str) -> bool:
    return boot == boot_id() and start_time(pid) == started


def children(pid: int) -> list[int]:
    """The direct children, of all threads."""
    pids: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                pids += map(int, file.read().split())
    except OSError:
        pass  # it ended while we looked
    return pids


def descendants(pid: int) -> list[int]:
    """All below `pid`, parents before their children."""
    pids = children(pid)
    for each in pids:  # grows while it is walked
        pids += children(each)
    return pids


def is_below(pid: int, root: int) -> bool:
    """Whether `root` is among the ancestors of a process."""
    while pid > 1 and pid != root:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            return False
    return pid == root


def marked(mark: str) -> list[int]:
    """Processes whose environment carries our mark."""
    wanted = f"{MARKER}={mark}".encode()
    pids = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    pids.append(int(name))
        except OSError:
            continue  # ended, or not ours to read
    return pids


def process_identity() -> str:
    """This process as a text by which another process can check whether it is gone."""
    return f"{os.uname().nodename}/{boot_id()}/{os.getpid()}/{start_time(os.getpid())}"


def is_dead_process(holder: str) -> bool:
    """Whether the process of that identity was on this machine and is surely gone."""
    mine, theirs = process_identity().split("/"), holder.split("/")
    if len(theirs) != 4 or mine[0] != theirs[0]:
        return False
    return mine[1] != theirs[1] or str(start_time(int(theirs[2]))) != theirs[3]
