"""What the pods of this machine, and the machine as a whole, use of its processors and memory: one look at /proc.

Handed to telemetry by `app`, and called from a thread: it reads much and changes nothing.
"""

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

from fairlead.engines.base import PodState
from fairlead.engines.local import journal
from fairlead.engines.local.attempts import AttemptFolders
from fairlead.model.resource_usage import MeasuredUsage, node_key

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Process(NamedTuple):
    parent: int
    start: int
    #: Of itself, and of children that it has waited for, in ticks.
    own: int
    waited: int
    resident: int


def observe_usage(data_dir: str | Path) -> list[MeasuredUsage]:
    """Of every pod whose supervisor lives, and of the machine."""
    processes = _observe_processes()
    below: dict[int, list[int]] = {}
    for pid, process in processes.items():
        below.setdefault(process.parent, []).append(pid)
    usages = [_observe_machine()]
    root = AttemptFolders(str(data_dir)).root
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(f"{root}/live"):
            record = journal.load(f"{root}/live/{name}")
            if record is None or record.get("state") != PodState.RUNNING:
                continue
            supervisor = processes.get(record["pid"])
            if supervisor is not None and supervisor.start == record["start"]:
                usages.append(_add_up(name.rpartition(".")[0], record["pid"], processes, below))
    return usages


def _add_up(pod_id: str, root: int, processes: dict[int, Process], below: dict[int, list[int]]) -> MeasuredUsage:
    """All processes below a supervisor, with those that have ended and were waited for; without itself."""
    ticks, resident = processes[root].waited, 0
    pids = list(below.get(root, ()))
    for pid in pids:  # grows while it is walked
        ticks += processes[pid].own + processes[pid].waited
        resident += processes[pid].resident
        pids += below.get(pid, ())
    return MeasuredUsage(pod_id, ticks / _TICKS, resident * _PAGE)


def _observe_processes() -> dict[int, Process]:
    processes = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue  # it ended while we looked
        own, waited = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
        processes[int(name)] = Process(int(fields[1]), int(fields[19]), own, waited, int(fields[21]))
    return processes


def _observe_machine() -> MeasuredUsage:
    with open("/proc/stat", encoding="ascii") as file:
        # user, nice, system, idle, waiting for disks, and interrupts of two sorts
        ticks = list(map(int, file.readline().split()[1:8]))
    with open("/proc/meminfo", encoding="ascii") as file:
        memory = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in file}
    busy = sum(ticks) - ticks[3] - ticks[4]
    return MeasuredUsage(node_key(os.uname().nodename), busy / _TICKS, memory["MemTotal"] - memory["MemAvailable"])
