"""Programs of the cluster and our server die while twenty workloads run; afterwards both agree, object by object."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from deploy.cluster import control
from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness
from tests.kubernetes.crowd import (
    Start,
    assert_all_end,
    assert_nothing_left,
    assert_settled,
    start_groups,
    start_real,
    start_trainings,
    until_some_run,
)

pytestmark = pytest.mark.kubernetes

MANY = 20


def kill_program(*names: str) -> Callable[[ClusterHarness], Any]:
    def kill(harness: ClusterHarness) -> None:
        for name in names:
            control.kill(harness.cluster.layout.folder, name)

    return kill


def kill_server(harness: ClusterHarness) -> None:
    harness.server.kill()
    harness.server.token = ""
    harness.server.start()


FAULTS: dict[str, tuple[Callable[[ClusterHarness], Any], Start]] = {
    "kube-apiserver": (kill_program("kube-apiserver"), start_trainings),
    "etcd": (kill_program("etcd"), start_trainings),
    "kube-controller-manager": (kill_program("kube-controller-manager"), start_trainings),
    "kai-scheduler": (kill_program("kai-scheduler"), start_trainings),
    "kai-binder": (kill_program("kai-binder"), start_trainings),
    "kai's controllers": (
        kill_program("kai-podgrouper", "kai-podgroupcontroller", "kai-queuecontroller", "kai-admission"),
        start_trainings,
    ),
    "lws": (kill_program("lws"), start_groups),
    "kubelet": (kill_program("kubelet"), start_real),
    "our server": (kill_server, start_trainings),
    "our server, with groups": (kill_server, start_groups),
    "our server, with containers": (kill_server, start_real),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_kill_during_twenty_workloads(harness: ClusterHarness, name: str) -> None:
    fault, start = FAULTS[name]
    members = start(harness, MANY)
    until_some_run(harness, members)
    fault(harness)
    assert_settled(harness, members)
    assert_all_end(harness)


def test_workloads_deleted_while_no_server_runs_leave_nothing(harness: ClusterHarness) -> None:
    """A server that died between its record and its act finishes the act when it is back."""
    for member in start_trainings(harness, MANY):
        harness.act("delete", member.id)
    kill_server(harness)
    assert_nothing_left(harness)


def test_a_kill_while_everything_is_deleted_leaves_nothing(harness: ClusterHarness) -> None:
    members = start_trainings(harness, MANY)
    until_some_run(harness, members)
    for member in members:
        harness.act("delete", member.id)
    control.kill(harness.cluster.layout.folder, "kube-apiserver")
    assert_nothing_left(harness)


def test_reaction_is_prompt(harness: ClusterHarness) -> None:
    """A pod's change is seen over REST without anybody polling the cluster."""
    workload = harness.train("prompt", gpus=0)
    harness.until_phase(workload, "Running")
    harness.kubectl("delete", "pod", "-n", harness.namespace, "--all", "--wait=false")
    began = time.monotonic()
    until(
        lambda: harness.server.phase(workload) != "Running" or len(harness.pods(workload)) > 1, "the change", PATIENCE
    )
    assert time.monotonic() - began < 30


def test_what_ended_before_a_restart_can_be_deleted_after_it(harness: ClusterHarness) -> None:
    workload = harness.train("old", gpus=0, seconds=1)
    harness.until_phase(workload, "Completed")
    kill_server(harness)
    assert harness.server.phase(workload) == "Completed"
    harness.act("delete", workload)
    assert_nothing_left(harness)
