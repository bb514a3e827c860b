"""Control groups in both layouts: found by the server, made and entered on a pod's way to its command, removed after.

`observe` says which controllers this server can delegate; `plan` computes; the rest acts, in the supervisor and its
fork. Loaded by the fork server too, so it imports little. It must never touch a group that it did not make itself.
"""

import contextlib
import os
from collections.abc import Sequence
from typing import NamedTuple

from fairlead.engines.local.linux import small_files

ROOT = "/sys/fs/cgroup"
CONTROLLERS = ("cpu", "memory", "pids")
PREFIX = "fairlead-"
_LEAF, _ASIDE = "fairlead.server", "fairlead"
_PERIOD = 100_000
#: Between its making and its first process a group is empty; never for as long as this.
_YOUNG_SECONDS = 60
#: The kernel takes no shorter share of a period.
_MIN_QUOTA = 1_000


class CgroupPlan(NamedTuple):
    """The groups of one pod: the layout, a folder per controller, and (file, text, whether it must succeed)."""

    version: int
    folders: dict[str, str]
    writes: Sequence[tuple[str, str, bool]]


class Groups(NamedTuple):
    """Where groups can be made: the layout, and per controller the folder that new ones go into."""

    version: int
    parents: dict[str, str]


class CgroupLimits(NamedTuple):
    """What a pod is kept to; None for no limit."""

    cpu_milli: int | None = None
    memory_bytes: int | None = None
    pids: int | None = None


def observe(
    root: str = ROOT, membership: str = "/proc/self/cgroup", controllers: tuple[str, ...] = CONTROLLERS
) -> Groups | None:
    """The groups that this process can make, or None. In version 2 it may have to make room for them first."""
    try:
        with open(membership) as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return None
    older: dict[str, str] = {}
    for _, names, path in lines:
        for controller in names.split(","):
            folder = f"{root}/{names}{path}".rstrip("/")
            if controller in controllers and os.access(f"{folder}/cgroup.procs", os.W_OK):
                older[controller] = folder
    if older:
        return Groups(1, older)
    own = next((path for _, names, path in lines if not names), None)
    return None if own is None else _observe_newer(root, f"{root}{own}".rstrip("/"), controllers)


def _observe_newer(root: str, own: str, controllers: tuple[str, ...]) -> Groups | None:
    """Beside the group of a service, otherwise in our own, otherwise beside all others.

    A service manager puts the next process of a service into the service's own group. The kernel refuses that once the
    group hands controllers on, which it does for as long as pods with limits live below it: no restart would succeed.
    """
    beside = [f"{root}/{_ASIDE}", f"{os.path.dirname(own)}/{_ASIDE}"]
    is_service = own.endswith(".service")
    for folder in dict.fromkeys((*beside, own) if is_service else (own, beside[0])):
        with contextlib.suppress(OSError):
            if folder != own:
                _enable(os.path.dirname(folder), controllers)
                os.makedirs(folder, exist_ok=True)
            elif not _make_room(own):
                continue
            enabled = _enable(folder, controllers)
            if enabled:
                return Groups(2, dict.fromkeys(enabled, folder))
    return None


def _enable(folder: str, controllers: tuple[str, ...]) -> list[str]:
    """Let the groups below `folder` have the controllers that it has; which those are."""
    with open(f"{folder}/cgroup.controllers") as file:
        available = [name for name in file.read().split() if name in controllers]
    with open(f"{folder}/cgroup.subtree_control") as file:
        missing = [name for name in available if name not in file.read().split()]
    if missing:
        small_files.write(f"{folder}/cgroup.subtree_control", " ".join(f"+{name}" for name in missing))
    return available


def _make_room(own: str) -> bool:
    """Move our own processes into a leaf: only a group without processes hands its controllers on.

    False when others live there too: they are not ours to move.
    """
    with open(f"{own}/cgroup.procs") as file:
        members = [int(line) for line in file.read().split()]
    if any(not _is_ours(pid) for pid in members):
        return False
    if members:
        os.makedirs(f"{own}/{_LEAF}", exist_ok=True)
        for pid in members:
            small_files.write(f"{own}/{_LEAF}/cgroup.procs", str(pid))
    return True


def _is_ours(pid: int) -> bool:
    """Whether it is this process or one below it."""
    while pid > 1:
        if pid == os.getpid():
            return True
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            return False
    return False


def plan(groups: Groups, name: str, limits: CgroupLimits) -> CgroupPlan | None:
    """The groups of one pod; None if they can enforce none of its limits."""
    wanted = {"cpu": limits.cpu_milli, "memory": limits.memory_bytes, "pids": limits.pids}
    writes: list[tuple[str, str, bool]] = []
    folders = {}
    for controller, value in wanted.items():
        if value is not None and controller in groups.parents:
            folder = folders[controller] = f"{groups.parents[controller]}/{PREFIX}{name}"
            render = _older if groups.version == 1 else _newer
            writes += [(f"{folder}/{file}", text, must) for file, text, must in render(controller, value)]
    if not folders:
        return None
    return CgroupPlan(groups.version, folders, writes)


def _quota(milli: int) -> int:
    return max(_MIN_QUOTA, milli * _PERIOD // 1000)


def _older(controller: str, value: int) -> list[tuple[str, str, bool]]:
    """(file, text, whether it must succeed)"""
    if controller == "cpu":
        return [("cpu.cfs_period_us", str(_PERIOD), True), ("cpu.cfs_quota_us", str(_quota(value)), True)]
    if controller == "memory":
        return [
            ("memory.limit_in_bytes", str(value), True),
            # Not there on kernels that do not count swap.
            ("memory.memsw.limit_in_bytes", str(value), False),
        ]
    return [("pids.max", str(value), True)]


def _newer(controller: str, value: int) -> list[tuple[str, str, bool]]:
    if controller == "cpu":
        return [("cpu.max", f"{_quota(value)} {_PERIOD}", True)]
    if controller == "memory":
        return [
            ("memory.max", str(value), True),
            ("memory.swap.max", "0", False),
            ("memory.oom.group", "1", False),
        ]
    return [("pids.max", str(value), True)]


# In the supervisor, and in the fork that becomes the command


def make(groups: CgroupPlan) -> None:
    """Raises OSError with the file at which the kernel refused."""
    for folder in dict.fromkeys(groups.folders.values()):
        os.makedirs(folder, exist_ok=True)
    for path, text, must in groups.writes:
        try:
            small_files.write(path, text)
        except OSError:
            if must:
                raise


def enter(groups: CgroupPlan) -> None:
    """Put this process in, and with it everything that it starts."""
    for folder in dict.fromkeys(groups.folders.values()):
        small_files.write(f"{folder}/cgroup.procs", "0")


def is_out_of_memory(groups: CgroupPlan) -> bool:
    """Whether the kernel killed a process of the pod because of its memory limit."""
    folder = groups.folders.get("memory")
    if folder is None:
        return False
    name = "memory.oom_control" if groups.version == 1 else "memory.events"
    with contextlib.suppress(OSError), open(f"{folder}/{name}") as file:
        for line in file:
            key, _, count = line.partition(" ")
            if key == "oom_kill":
                return int(count) > 0
    return False


def remove(groups: CgroupPlan) -> None:
    for folder in dict.fromkeys(groups.folders.values()):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def sweep(groups: Groups, name: str) -> None:
    """Remove what a lost supervisor left of a pod; a group that still has processes stays."""
    for folder in dict.fromkeys(groups.parents.values()):
        with contextlib.suppress(OSError):
            os.rmdir(f"{folder}/{PREFIX}{name}")


def sweep_all(groups: Groups, now: float) -> None:
    """Remove groups of servers whose data folder is gone. Groups in use stay, and young ones, which may soon be."""
    for parent in dict.fromkeys(groups.parents.values()):
        for name in os.listdir(parent):
            folder = f"{parent}/{name}"
            if name.startswith(PREFIX):
                with contextlib.suppress(OSError):
                    if now - os.stat(folder).st_mtime > _YOUNG_SECONDS:
                        os.rmdir(folder)
