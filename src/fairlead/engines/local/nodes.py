"""The nodes of this machine: as it is found (cores, memory, GPUs), or as the operator declares them.

`observe_machine` reads the machine; what a declaration leaves out is as on the machine.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from fairlead.engines.local.linux.nvml import MEBIBYTE, observe_devices
from fairlead.model.clock import Millis
from fairlead.model.errors import Invalid
from fairlead.model.quantity import BadQuantity, thousandths, whole
from fairlead.model.records.organization import GpuDevice, Node, Taint

_NAME = re.compile(r"[a-z0-9A-Z]([-a-z0-9A-Z.]*[a-z0-9A-Z])?")
_KEYS = ("cpu", "memory", "gpus", "gpu-memory", "gpu-model", "labels", "taints", "pods")
_FORM = "NAME:cpu=4,memory=16Gi,gpus=8,gpu-memory=80Gi,gpu-model=A100,labels=a=b;c=d,pods=110,example.com/resource=2"


def observe_machine(now: Millis) -> Node:
    """This machine as one node; a cgroup's limits count as its size."""
    name = os.uname().nodename
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Node(
        id=name,
        name=name,
        cpu_milli=min(len(os.sched_getaffinity(0)) * 1000, *_cpu_limits()),
        memory_bytes=min(memory, *_memory_limits()),
        gpus=observe_devices(),
        created_at=now,
    )


def device_memory(nodes: Iterable[Node], name: str) -> int:
    """The bytes of the smallest GPU of a node; 0 without GPUs."""
    devices = next((node.gpus for node in nodes if node.name == name), ())
    return min((device.memory_mib for device in devices), default=0) * MEBIBYTE


def _cgroups(controller: str) -> list[Path]:
    """The folders of our cgroup and those above it, for one controller, in both layouts."""
    folders: list[Path] = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        for root in [f"/sys/fs/cgroup/{controllers}"] if controllers else ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]:
            group_path = Path(root + path)
            folders += [group_path, *(parent for parent in group_path.parents if str(parent).startswith(root))]
    return folders


def _memory_limits() -> list[int]:
    limits = [2**63]
    for folder in _cgroups("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            with contextlib.suppress(OSError, ValueError):
                limits.append(int((folder / name).read_text()))
    return limits


def _cpu_limits() -> list[int]:
    limits = [2**31]
    for folder in _cgroups("cpu"):
        with contextlib.suppress(OSError, ValueError):
            quota, period = map(int, (folder / "cpu.max").read_text().split())
            limits.append(quota * 1000 // period)
        with contextlib.suppress(OSError, ValueError):
            quota = int((folder / "cpu.cfs_quota_us").read_text())
            if quota > 0:
                limits.append(quota * 1000 // int((folder / "cpu.cfs_period_us").read_text()))
    return limits


def parse_node(text: str, machine: Node) -> Node:
    """A node from its one-line form; what it does not say is as on the machine."""
    head, colon, rest = text.partition(":")
    name, members = (head, rest) if colon and "=" not in head else (machine.name, text)
    values: dict[str, Any] = {}
    for member in filter(None, (part.strip() for part in members.split(","))):
        key, equals, value = member.partition("=")
        if not equals:
            raise Invalid(f"node '{text}': '{member}' has no value; the form is {_FORM}")
        values[key] = value
    for key in ("labels", "taints"):
        if key in values:
            values[key] = [part for part in values[key].split(";") if part]
    return _node(name, values, machine)


def parse_nodes(document: str, machine: Node) -> tuple[Node, ...]:
    """Nodes from a YAML document: a list of mappings, or one under `nodes`."""
    try:
        content = yaml.safe_load(document)
    except yaml.YAMLError as error:
        raise Invalid(f"the nodes file is not valid YAML: {error}") from error
    listed = content.get("nodes") if isinstance(content, Mapping) else content
    if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
        raise Invalid("the nodes file is not a list of nodes; write a list of mappings with name, cpu, memory, gpus …")
    nodes = []
    for each in listed:
        values = {_dashed(str(key)): value for key, value in each.items() if key not in ("name", "resources")}
        values |= each.get("resources") or {}
        nodes.append(_node(str(each.get("name", machine.name)), values, machine))
    return tuple(nodes)


def _dashed(key: str) -> str:
    """`gpuMemory` as `gpu-memory`."""
    return re.sub(r"(?<=[a-z])([A-Z])", lambda match: "-" + match[1].lower(), key)


def _node(name: str, values: Mapping[str, Any], machine: Node) -> Node:
    if not _NAME.fullmatch(name) or len(name) > 253:
        raise Invalid(f"'{name}' is not a valid node name; use letters, digits, dots and dashes")
    unknown = [key for key in values if key not in _KEYS and "/" not in key]
    if unknown:
        raise Invalid(f"node {name}: '{unknown[0]}' is not known; the form is {_FORM}")
    try:
        return Node(
            id=name,
            name=name,
            cpu_milli=thousandths(str(values["cpu"])) if "cpu" in values else machine.cpu_milli,
            memory_bytes=whole(str(values["memory"])) if "memory" in values else machine.memory_bytes,
            gpus=_gpus(values) if "gpus" in values else machine.gpus,
            pods=whole(str(values["pods"])) if "pods" in values else machine.pods,
            extended={key: whole(str(value)) for key, value in values.items() if "/" in key},
            labels=_labels(values.get("labels")),
            taints=tuple(_taint(str(each)) for each in values.get("taints") or ()),
            created_at=machine.created_at,
            declared=tuple(key for key in ("cpu", "memory", "gpus") if key in values),
        )
    except BadQuantity as error:
        raise Invalid(f"node {name}: {error}") from error


def _gpus(values: Mapping[str, object]) -> tuple[GpuDevice, ...]:
    memory = whole(str(values.get("gpu-memory", "0"))) // MEBIBYTE
    model = str(values.get("gpu-model", ""))
    return tuple(GpuDevice(index, "", model, memory) for index in range(whole(str(values["gpus"]))))


def _labels(given: Any) -> dict[str, str]:
    if isinstance(given, Mapping):
        return {str(key): str(value) for key, value in given.items()}
    return {key: value for key, _, value in (str(each).partition("=") for each in given or ())}


def _taint(text: str) -> Taint:
    """`key=value:Effect` as kubectl writes it."""
    rest, colon, effect = text.rpartition(":")
    key, _, value = (rest if colon else text).partition("=")
    return Taint(key, value, effect if colon else "NoSchedule")
