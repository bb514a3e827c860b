"""How the limits of a pod are enforced on this machine: by control groups, or if none can be made by weaker means.

The server asks it for the order's part and for what to tell the user beforehand.
"""

import os
import resource
import zlib

import msgspec

from fairlead.engines.local.launch_order import ProcessLimits
from fairlead.engines.local.linux import cgroups
from fairlead.model.pods.podset import PodContainer

Note = tuple[str, str]

_NO_GROUPS = "this server cannot write control groups"
#: The priority of a pod that may use less than one core, so that others go first.
_LOW_PRIORITY = 10
#: In shared mode no pod may use so many processes and threads that none are left for others.
MAX_PIDS = 16_384
MAX_FILES = 65_536


class LimitSupport(msgspec.Struct, frozen=True, kw_only=True):
    """What this machine has to enforce limits with."""

    groups: cgroups.Groups | None = None
    #: The cores that this server may use.
    cores: tuple[int, ...] = (0,)
    #: How many processes and threads the kernel can have at all.
    threads: int = 2 * MAX_PIDS
    #: How many open files and processes this server itself may have; it cannot give pods more.
    files: int = MAX_FILES
    processes: int = 2 * MAX_PIDS

    def has(self, controller: str) -> bool:
        return self.groups is not None and controller in self.groups.parents


def observe_means() -> LimitSupport:
    with open("/proc/sys/kernel/threads-max") as file:
        threads = int(file.read())
    return LimitSupport(
        groups=cgroups.observe(),
        cores=tuple(sorted(os.sched_getaffinity(0))),
        threads=threads,
        files=_bound(resource.RLIMIT_NOFILE, MAX_FILES),
        processes=_bound(resource.RLIMIT_NPROC, 2 * MAX_PIDS),
    )


def _bound(kind: int, maximum: int) -> int:
    hard = resource.getrlimit(kind)[1]
    return maximum if hard == resource.RLIM_INFINITY else min(hard, maximum)


def decide_pids(configured: int | None, is_shared: bool, means: LimitSupport) -> int | None:
    """The operator's number; without one, in shared mode at most half of what the kernel has, else no limit."""
    if configured is not None:
        return configured or None
    return min(MAX_PIDS, means.threads // 2) if is_shared else None


def render_limits(name: str, container: PodContainer, pids: int | None, means: LimitSupport) -> ProcessLimits:
    """The order's part: the groups to make, and what is done instead if there are none."""
    cpu, memory = container.cpu_limit_milli, container.memory_limit_bytes
    groups = None
    if means.groups is not None:
        groups = cgroups.plan(means.groups, name, cgroups.CgroupLimits(cpu, memory, pids))
    by_affinity = cpu is not None and not means.has("cpu")
    return ProcessLimits(
        groups=groups,
        memory_limit=memory,
        affinity=_cores(name, cpu or 0, means) if by_affinity else None,
        priority=_LOW_PRIORITY if by_affinity and (cpu or 0) < 1000 else None,
    )


def _cores(name: str, milli: int, means: LimitSupport) -> list[int]:
    """As many whole cores as the limit needs; the first one differs between pods."""
    count = min(len(means.cores), max(1, -(-milli // 1000)))
    begin = zlib.crc32(name.encode()) % len(means.cores)
    return sorted((means.cores * 2)[begin : begin + count])


def remarks(container: PodContainer, means: LimitSupport) -> list[Note]:
    """Limits that are not enforced as the spec says, and what is done instead."""
    notes = []
    milli = container.cpu_limit_milli
    if milli is not None and not means.has("cpu"):
        cores = len(_cores("", milli, means))
        lower = ", at a lower priority" if milli < 1000 else ""
        instead = f"the pod is limited to {cores} whole core{'s' if cores > 1 else ''} by affinity{lower}"
        notes.append(("compute.cpuCoreLimit", f"{_NO_GROUPS}: {instead}"))
    if container.memory_limit_bytes is not None and not means.has("memory"):
        instead = "the pod's memory is checked four times a second, and a pod over its limit is killed"
        notes.append(("compute.cpuMemoryLimit", f"{_NO_GROUPS}: {instead}"))
    return notes
