"""How busy the GPUs of this machine are, by a library that has the interface of NVML."""

import os
from pathlib import Path

import msgspec
import pytest

from fairlead.engines.base import PodState
from fairlead.engines.local import journal
from fairlead.engines.local.attempts import AttemptFolders
from fairlead.engines.local.linux.nvml import DeviceMeter, DeviceUse, observe_devices
from fairlead.engines.local.linux.procfs import start_time
from fairlead.engines.local.nodes import parse_node
from fairlead.engines.local.usage import UsageMeter
from fairlead.model.records.organization import GpuDevice, Node
from fairlead.model.records.workload import LaunchRecord, Pod
from tests import builders
from tests.fake_nvml import GIBIBYTE, FakeNvml

pytestmark = [pytest.mark.debian("gcc"), pytest.mark.debian("libc6-dev")]


def test_devices_and_how_busy_they_are(tmp_path: Path) -> None:
    nvml = FakeNvml(tmp_path, "0", "87", "-")
    assert observe_devices(str(nvml.library))[1] == GpuDevice(1, "GPU-1", "NVIDIA Imaginary", 16 * 1024)
    meter = DeviceMeter(str(nvml.library))
    assert meter.observe() == {0: DeviceUse(0, GIBIBYTE), 1: DeviceUse(87, 2 * GIBIBYTE)}
    nvml.set("3", "-", "4")
    assert {index: use.percent for index, use in meter.observe().items()} == {0: 3, 2: 4}
    assert DeviceMeter("no-such-library.so.1").observe() == {}


@pytest.mark.parametrize(
    ("percents", "declared", "want"),
    [
        pytest.param(("0", "50"), (), True, id="every device tells"),
        pytest.param(("0", "-"), (), False, id="a device does not tell"),
        pytest.param(("0", "50"), ("here:gpus=2",), False, id="declared"),
        pytest.param(("0", "50"), ("here:cpu=1", "there:gpus=2"), False, id="declared on another node"),
        pytest.param(("0", "50"), ("here:cpu=1", "there:gpus=0"), True, id="a node without GPUs"),
        pytest.param((), (), False, id="no GPUs"),
    ],
)
def test_whether_all_gpus_are_measured(
    tmp_path: Path, percents: tuple[str, ...], declared: tuple[str, ...], want: bool
) -> None:
    nvml = FakeNvml(tmp_path, *percents)
    machine = Node(
        id="here", name="here", cpu_milli=1000, memory_bytes=GIBIBYTE, gpus=observe_devices(str(nvml.library))
    )
    nodes = [parse_node(text, machine) for text in declared] or [machine]
    assert UsageMeter(tmp_path, nodes, DeviceMeter(str(nvml.library))).measures_gpus is want


def run_here(folders: AttemptFolders, pod: Pod) -> None:
    """Write what the engine keeps of a running pod; its supervisor is this process."""
    key = pod.id, pod.attempt
    launched = msgspec.json.encode(LaunchRecord(builders.workload(), pod)).decode()
    record = {"state": PodState.RUNNING, "pid": os.getpid(), "start": start_time(os.getpid())}
    os.close(journal.claim(folders.journal(key), record, launched))


def test_the_gpus_of_a_pod(tmp_path: Path) -> None:
    nvml = FakeNvml(tmp_path, "0", "80", "40", "-")
    real = Node(id="here", name="here", cpu_milli=1000, memory_bytes=GIBIBYTE, gpus=observe_devices(str(nvml.library)))
    folders = AttemptFolders(str(tmp_path))
    folders.prepare()
    for id, node, devices, share in (
        ("both", "here", (1, 2), 1000),
        ("idle", "here", (0,), 1000),
        ("part", "here", (1,), 500),
        ("silent", "here", (0, 3), 1000),
        ("imaginary", "declared", (1,), 1000),
        ("none", "here", (), 0),
    ):
        run_here(folders, builders.pod(id=id, node=node, gpu_devices=devices, gpu_thousandths=share))
    nodes = [real, parse_node("declared:gpus=2", real)]
    found = {usage.id: usage for usage in UsageMeter(tmp_path, nodes, DeviceMeter(str(nvml.library))).observe()}
    assert (found["both"].gpu_percent, found["both"].gpu_memory_bytes) == (60.0, 5 * GIBIBYTE)
    assert (found["idle"].gpu_percent, found["idle"].gpu_memory_bytes) == (0.0, GIBIBYTE)
    for id in ("part", "silent", "imaginary", "none"):
        assert (found[id].gpu_percent, found[id].gpu_memory_bytes) == (None, None)
