"""What the pods of this machine, and the machine as a whole, use of its processors, memory and GPUs.

Handed to telemetry by `app`, and called from a thread: it reads much and changes nothing.
"""

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import msgspec

from fairlead.engines.base import PodState
from fairlead.engines.local import journal
from fairlead.engines.local.attempts import AttemptFolders, Key
from fairlead.engines.local.linux.nvml import DeviceMeter, DeviceUse
from fairlead.model.records.organization import Node
from fairlead.model.records.workload import LaunchRecord
from fairlead.model.resource_usage import MeasuredUsage, node_key

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_WHOLE = 1000


class Process(NamedTuple):
    parent: int
    start: int
    #: Of itself, and of children that it has waited for, in ticks.
    own: int
    waited: int
    resident: int


class UsageMeter:
    """`nodes`: those of the engine. The GPUs of a declaration need not exist, so their use is not measured."""

    def __init__(self, data_dir: str | Path, nodes: Sequence[Node], devices: DeviceMeter) -> None:
        self._folders = AttemptFolders(str(data_dir))
        self._measured = {node.name for node in nodes if node.gpus and "gpus" not in node.declared}
        self._devices = devices
        observed = self._observe_devices()
        with_gpus = [node for node in nodes if node.gpus]
        #: Whether it is known of every GPU how busy it is.
        self.measures_gpus = bool(with_gpus) and all(
            node.name in self._measured and all(device.index in observed for device in node.gpus) for node in with_gpus
        )

    def observe(self) -> list[MeasuredUsage]:
        """The usage of every pod whose supervisor lives, and of the machine."""
        running = self._find_running()
        processes = _observe_processes() if running else {}
        below: dict[int, list[int]] = {}
        for pid, process in processes.items():
            below.setdefault(process.parent, []).append(pid)
        devices = self._observe_devices()
        usages = [_observe_machine()]
        for key, record in running.items():
            supervisor = processes.get(record["pid"])
            if supervisor is not None and supervisor.start == record["start"]:
                usage = _add_up(key[0], record["pid"], processes, below)
                usages.append(self._with_gpus(usage, self._folders.load_record(key), devices) if devices else usage)
        return usages

    def _find_running(self) -> dict[Key, dict[str, Any]]:
        """The journals of the attempts that run."""
        running = {}
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(f"{self._folders.root}/live"):
                pod_id, _, attempt = name.rpartition(".")
                record = journal.load(self._folders.journal((pod_id, int(attempt))))
                if record is not None and record.get("state") == PodState.RUNNING:
                    running[pod_id, int(attempt)] = record
        return running

    def _observe_devices(self) -> dict[int, DeviceUse]:
        return self._devices.observe() if self._measured else {}

    def _with_gpus(self, usage: MeasuredUsage, launch_record: bytes, devices: Mapping[int, DeviceUse]) -> MeasuredUsage:
        """With the use of the pod's own GPUs; for parts of a GPU it is not known who uses it."""
        try:
            pod = msgspec.json.decode(launch_record, type=LaunchRecord).pod
        except msgspec.MsgspecError:
            return usage
        if pod.node not in self._measured or pod.gpu_thousandths != _WHOLE or not pod.gpu_devices:
            return usage
        used = [devices[index] for index in pod.gpu_devices if index in devices]
        if len(used) < len(pod.gpu_devices):
            return usage
        return msgspec.structs.replace(
            usage,
            gpu_percent=fmean(use.percent for use in used),
            gpu_memory_bytes=sum(use.memory_bytes for use in used),
        )


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
