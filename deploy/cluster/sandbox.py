"""The room a cluster runs in: own processes, mounts, network and control groups; all end with its first process.

`open_sandbox` makes it and starts the supervisor as that first process, `close_sandbox` ends it and removes what the
kernel does not remove by itself (control groups and files), with nothing but the folder's path to go by: that works
after any crash. Used by `__main__`.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from deploy.cluster.errors import ClusterError
from deploy.cluster.layout import Layout, name_of

ROOT = Path(__file__).parents[2]
UPLINK, LEAF = "uplink", "supervisor"
PATIENCE = 60.0


def open_sandbox(layout: Layout) -> None:
    """Start the supervisor in namespaces of its own and connect it with this machine by a cable."""
    groups = make_groups(layout.name)
    words = ("--mount", "--net", "--pid", "--cgroup", "--uts", "--ipc", "--fork", "--kill-child")
    supervisor = [sys.executable, "-m", "deploy.cluster.supervisor", str(layout.folder)]
    with open(layout.path("logs", "supervisor.log"), "ab") as log:
        process = subprocess.Popen(
            ["unshare", *words, *supervisor],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=lambda: enter_groups(groups),
        )
    wait_for(lambda: has_own_network(process.pid), "the cluster's network namespace")
    leave_tops(groups, process.pid)
    connect(layout, process.pid)
    if process.stdin:
        process.stdin.write(b"connected\n")
        process.stdin.close()
    # It is to outlive this process, which needs no warning of that.
    process.returncode = 0


def connect(layout: Layout, pid: int) -> None:
    """A cable between this machine and the cluster, the way to its pods and services; it goes when either end does."""
    name = layout.name
    run_ip("link", "add", name, "type", "veth", "peer", "name", UPLINK, "netns", str(pid))
    run_ip("address", "add", f"{layout.machine}/24", "dev", name)
    run_ip("link", "set", name, "up")
    for there in (layout.pods, layout.services):
        run_ip("route", "add", str(there), "via", layout.address, "dev", name)


def run_ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def has_own_network(pid: int) -> bool:
    return os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net")


def hierarchies() -> list[Path]:
    """Every mounted tree of control groups: one in the newer layout, one per controller in the older."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if after.startswith(("cgroup ", "cgroup2 ")):
            found.append(Path(before.split()[4]))
    return found


def make_groups(name: str) -> list[Path]:
    made = []
    for tree in hierarchies():
        group = tree / name
        group.mkdir(exist_ok=True)
        # In the older layout a group of processors begins with none, and nobody may enter it.
        for setting in ("cpuset.cpus", "cpuset.mems"):
            if (group / setting).exists() and (tree / setting).exists():
                (group / setting).write_text((tree / setting).read_text())
        made.append(group)
    return made


def enter_groups(groups: list[Path]) -> None:
    for group in groups:
        (group / "cgroup.procs").write_text("0")


def leave_tops(groups: list[Path], pid: int) -> None:
    """In the newer layout only a group without processes hands controllers on; the supervisor goes to the same leaf."""
    for group in groups:
        if (group / "cgroup.controllers").exists():
            (group / LEAF).mkdir(exist_ok=True)
            (group / LEAF / "cgroup.procs").write_text(str(pid))


def members(name: str) -> set[int]:
    """Every process of the cluster, containers included: all were born in its groups and cannot leave them."""
    return {
        int(pid)
        for tree in hierarchies()
        for listed in (tree / name).rglob("cgroup.procs")
        for pid in read_or_nothing(listed).split()
    }


def read_or_nothing(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def has_groups(name: str) -> bool:
    return any((tree / name).exists() for tree in hierarchies())


def is_open(folder: Path) -> bool:
    return bool(members(name_of(folder)))


def first_process(folder: Path) -> int | None:
    """The supervisor, by the number that this machine knows it by."""
    for pid in members(name_of(folder)):
        known = re.search(r"^NSpid:(.*)$", read_or_nothing(Path(f"/proc/{pid}/status")), re.MULTILINE)
        if known and known[1].split() == [str(pid), "1"]:
            return pid
    return None


def close_sandbox(folder: Path, keep_files: bool = False) -> None:
    name = name_of(folder)
    wait_for(lambda: not kill(members(name)), "the cluster's processes to end")
    wait_for(lambda: not remove_groups(name), "the cluster's control groups to empty")
    # The kernel takes the network apart some time after the last process in it.
    wait_for(lambda: not remove_link(name), "the cluster's network to end")
    if keep_files:
        return
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        raise ClusterError(f"{folder} could not be removed whole; see what is left there")


def kill(pids: set[int]) -> set[int]:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return pids


def remove_groups(name: str) -> list[Path]:
    """What could not be removed yet."""
    left = []
    for tree in hierarchies():
        for group in [*deepest_first(tree / name), tree / name]:
            try:
                group.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                left.append(group)
    return left


def deepest_first(group: Path) -> Iterator[Path]:
    found = [path for path in group.rglob("*") if path.is_dir()]
    yield from sorted(found, key=lambda path: len(path.parts), reverse=True)


def remove_link(name: str) -> bool:
    """Whether it was still there."""
    if not re.fullmatch(r"flc-[0-9a-f]{8}", name) or not Path("/sys/class/net", name).exists():
        return False
    subprocess.run(["ip", "link", "delete", name], capture_output=True)
    return True


def wait_for(is_done: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    deadline = time.monotonic() + patience
    while not is_done():
        if time.monotonic() > deadline:
            raise ClusterError(f"waited {patience:.0f} s in vain for {what}")
        time.sleep(0.05)
