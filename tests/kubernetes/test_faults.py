"""Programs of the cluster and our server die while twenty workloads run; afterwards both agree, object by object."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from deploy.cluster import control
from tests.e2e.server import until
from tests.kubernetes.room import PATIENCE, Room

pytestmark = [pytest.mark.kubernetes, pytest.mark.xdist_group("kubernetes")]

MANY = 20


def start_many(room: Room) -> list[str]:
    """Some that end well, some that fail, some that run on."""
    made = []
    for number in range(MANY):
        seconds = None if number % 4 == 3 else 2 + number % 3
        code = 5 if number % 4 == 2 else 0
        made.append(room.train(f"many-{number}", gpus=0, seconds=seconds, code=code, backoffLimit=0))
    return made


def wanted_phase(number: int) -> str:
    return {2: "Failed", 3: "Running"}.get(number % 4, "Completed")


def check_agreement(room: Room, workloads: list[str]) -> None:
    """Every workload is where it should be, and the cluster has exactly the objects that this takes."""
    for number, workload in enumerate(workloads):
        found = (
            room.until_phase(workload, "Completed", "Failed")
            if number % 4 != 3
            else room.until_phase(workload, "Running")
        )
        assert found["phase"] == wanted_phase(number), (number, found["phase"], found["phaseMessage"])
    jobs = {job["metadata"]["labels"]["fairlead/workload-id"]: job for job in room.objects("jobs")}
    assert set(jobs) == set(workloads)
    for workload in workloads:
        ours = {pod["id"]: pod for pod in room.pods(workload)}
        theirs = {
            pod["metadata"]["uid"]: pod
            for pod in room.objects("pods")
            if pod["metadata"]["labels"]["fairlead/workload-id"] == workload
        }
        assert set(theirs) <= set(ours), workload
        running = [pod for pod in theirs.values() if pod["status"]["phase"] == "Running"]
        assert room.server.workload(workload)["runningPods"] == len(running)


def kill_program(name: str) -> Callable[[Room], Any]:
    def kill(room: Room) -> None:
        control.kill(room.cluster.layout.folder, name)

    return kill


def kill_server(room: Room) -> None:
    room.server.kill()
    room.server.token = ""
    room.server.start()


FAULTS: dict[str, Callable[[Room], Any]] = {
    "kube-apiserver": kill_program("kube-apiserver"),
    "etcd": kill_program("etcd"),
    "kube-controller-manager": kill_program("kube-controller-manager"),
    "kai-scheduler": kill_program("kai-scheduler"),
    "kai-binder": kill_program("kai-binder"),
    "our server": kill_server,
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_kill_during_twenty_workloads(room: Room, name: str) -> None:
    workloads = start_many(room)
    until(lambda: any(room.server.phase(one) == "Running" for one in workloads[:3]), "a first pod", PATIENCE)
    FAULTS[name](room)
    check_agreement(room, workloads)
    room.delete_all()
    assert room.names("jobs,pods,podgroups") == []


def test_workloads_deleted_while_no_server_runs_leave_nothing(room: Room) -> None:
    """A server that died between its record and its act finishes the act when it is back."""
    workloads = start_many(room)
    for workload in workloads:
        room.act("delete", workload)
    kill_server(room)
    until(lambda: room.names("jobs,pods,podgroups") == [], "an empty namespace", PATIENCE)


def test_reaction_is_prompt(room: Room) -> None:
    """A pod's change is seen over REST without anybody polling the cluster."""
    workload = room.train("prompt", gpus=0)
    room.until_phase(workload, "Running")
    room.kubectl("delete", "pod", "-n", room.namespace, "--all", "--wait=false")
    began = time.monotonic()
    until(lambda: room.server.phase(workload) != "Running" or len(room.pods(workload)) > 1, "the change", PATIENCE)
    assert time.monotonic() - began < 30


def test_what_ended_before_a_restart_can_be_deleted_after_it(room: Room) -> None:
    workload = room.train("old", gpus=0, seconds=1)
    room.until_phase(workload, "Completed")
    kill_server(room)
    assert room.server.phase(workload) == "Completed"
    room.act("delete", workload)
    until(lambda: room.names("jobs,pods,podgroups") == [], "an empty namespace", PATIENCE)
