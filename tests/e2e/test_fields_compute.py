"""Every compute field of a training has its effect: in scheduling, as a limit that holds, or in its environment."""

from collections.abc import Iterator
from typing import Any

import pytest

from fairlead.engines.local.linux import cgroups
from tests.e2e.fields import conditions, look
from tests.e2e.server import Server, until

GROUPS = cgroups.observe()
NODE = "here:cpu=4,memory=4Gi,gpus=4,gpu-memory=16Gi,example.com/dongle=2"
#: Devices that are cut into slices are not given whole.
SLICES = "slices:cpu=1,memory=1Gi,gpus=0,nvidia.com/mig-1g.5gb=1"
SEES = "echo $CUDA_VISIBLE_DEVICES/$NVIDIA_VISIBLE_DEVICES/$RUNAI_NUM_OF_GPUS/$GPU_PORTION/$RUNAI_GPU_MEMORY_LIMIT"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A personal server with one declared node."""
    folder = tmp_path_factory.mktemp("machine") / "data"
    server = Server(folder, "--personal", "--node", NODE, "--node", SLICES, "--retry-delay", "20").start()
    yield server
    server.close()


def assert_counted(server: Server, name: str, fits: dict[str, Any], does_not: dict[str, Any]) -> None:
    """What fits runs; what does not beside it waits until the first is gone."""
    first = server.run(f"{name}-first", "/bin/sleep", "600", compute=fits)
    server.until_phase(first, "Running")
    second = server.run(f"{name}-second", "/bin/true", compute=does_not)
    server.until_phase(second, "Pending")
    until(lambda: server.workload(second).get("phaseMessage"), "a reason to wait")
    assert server.phase(second) == "Pending"
    assert server.call("DELETE", f"/api/v1/workloads/trainings/{first}").status == 202
    server.until_phase(second, "Completed")


def test_cpu_core_request(machine: Server) -> None:
    assert_counted(machine, "cpu", {"cpuCoreRequest": 3}, {"cpuCoreRequest": 1.5})


def test_cpu_memory_request(machine: Server) -> None:
    assert_counted(machine, "memory", {"cpuMemoryRequest": "3Gi"}, {"cpuMemoryRequest": "1100Mi"})


def test_cpu_core_limit(machine: Server) -> None:
    turn = (
        "import time; b, u = time.monotonic(), time.process_time()\n"
        "while time.monotonic() - b < 1.5: pass\n"
        "print((time.process_time() - u) / (time.monotonic() - b))"
    )
    workload = machine.run("cpu-limit", "python3", f'-c "{turn}"', compute={"cpuCoreLimit": 0.2})
    machine.until_phase(workload, "Completed")
    told = conditions(machine, workload, "NotEnforced").get("compute.cpuCoreLimit", "")
    if GROUPS is not None and "cpu" in GROUPS.parents:
        assert float(machine.logs(workload)) < 0.35
        assert told == ""
    else:
        assert "by affinity" in told


def test_cpu_memory_limit(machine: Server) -> None:
    hungry = "import time; held = [(b'x' * 2**23, time.sleep(0.01)) for _ in range(64)]; time.sleep(60)"
    compute = {"cpuMemoryLimit": "64Mi"}
    workload = machine.run("memory-limit", "python3", f'-c "{hungry}"', compute=compute, backoffLimit=0)
    ended = machine.until_phase(workload, "Failed")
    assert "memory" in ended["phaseMessage"]
    events = machine.call("GET", f"/api/v1/workloads/{workload}/events").body.decode()
    assert "OOMKilled" in events + ended["phaseMessage"]


def test_gpu_devices_request(machine: Server) -> None:
    assert look(machine, "devices", SEES, compute={"gpuDevicesRequest": 2}) == "0,1/0,1/2/1/"
    assert look(machine, "no-devices", SEES) == "/void/0//"
    assert_counted(machine, "gpus", {"gpuDevicesRequest": 3}, {"gpuDevicesRequest": 2})


def test_gpu_request_type(machine: Server) -> None:
    compute = {"gpuDevicesRequest": 1, "gpuRequestType": "portion", "gpuPortionRequest": 0.5}
    assert look(machine, "by-portion", SEES, compute=compute).split("/")[2:4] == ["0.5", "0.5"]
    compute = {"gpuDevicesRequest": 1, "gpuRequestType": "memory", "gpuMemoryRequest": "4Gi"}
    assert look(machine, "by-memory", SEES, compute=compute).split("/")[2:4] == ["0.25", "0.25"]


def test_gpu_portion_request(machine: Server) -> None:
    share = {"gpuDevicesRequest": 4, "gpuRequestType": "portion", "gpuPortionRequest": 0.6}
    assert_counted(machine, "portion", share, {**share, "gpuPortionRequest": 0.5})


def test_gpu_portion_limit(machine: Server) -> None:
    compute = {"gpuRequestType": "portion", "gpuPortionRequest": 0.25, "gpuPortionLimit": 0.5}
    assert look(machine, "portion-limit", SEES, compute=compute).endswith(f"/{8 * 2**30}")


def test_gpu_memory_request(machine: Server) -> None:
    share = {"gpuRequestType": "memory", "gpuMemoryRequest": "9Gi"}
    running = [machine.run(f"memory-{index}", "/bin/sleep", "600", compute=share) for index in range(4)]
    for workload in running:
        machine.until_phase(workload, "Running")
    last = machine.run("memory-last", "/bin/true", compute={**share, "gpuMemoryRequest": "8Gi"})
    machine.until_phase(last, "Pending")
    assert until(lambda: machine.message(last), "a reason to wait")
    assert machine.phase(last) == "Pending"
    assert machine.call("DELETE", f"/api/v1/workloads/trainings/{running[0]}").status == 202
    machine.until_phase(last, "Completed")
    for workload in running[1:]:
        machine.call("DELETE", f"/api/v1/workloads/trainings/{workload}")


def test_gpu_memory_limit(machine: Server) -> None:
    compute = {"gpuRequestType": "memory", "gpuMemoryRequest": "4Gi", "gpuMemoryLimit": "8Gi"}
    workload = machine.run("gpu-memory-limit", "/bin/sh", f"-c '{SEES}'", compute=compute)
    machine.until_phase(workload, "Completed")
    assert machine.logs(workload).strip().endswith("/8Gi")
    assert "the process must keep to it" in conditions(machine, workload, "NotEnforced")["compute.gpuMemoryLimit"]


def test_mig_profile(machine: Server) -> None:
    assert look(machine, "slice", "echo $NODE_NAME", compute={"migProfile": "1g.5gb"}) == "slices"
    none = machine.run("slice-none", "/bin/true", compute={"migProfile": "7g.80gb"})
    until(lambda: "mig-7g.80gb" in str(machine.workload(none).get("phaseMessage")), "the reason to wait")


def test_extended_resources(machine: Server) -> None:
    def asks(quantity: str) -> dict[str, Any]:
        return {"extendedResources": [{"resource": "example.com/dongle", "quantity": quantity}]}

    assert_counted(machine, "dongles", asks("2"), asks("1"))
    left_out = {"extendedResources": [{"resource": "example.com/none", "quantity": "1", "exclude": True}]}
    assert look(machine, "no-dongles", "echo ran", compute=left_out) == "ran"


def test_environment_of_a_thousand_variables_and_a_long_argument(machine: Server) -> None:
    variables = [{"name": f"V{number}", "value": "x" * 50} for number in range(1000)]
    assert look(machine, "many", "env | grep -c ^V", environmentVariables=variables) == "1000"
